"""What the UI shows of published versions: a function per stage, with the stage's name."""

from importlib import import_module

from lc_assets.builds.showing import Shown
from lc_assets.builds.stage import BuildContext, Built, Stage


def shown(stage: Stage, context: BuildContext, built: Built) -> Shown:
    """What a stage shows of a published version, by its own function or that with its name."""
    modules = (import_module(f"{__name__}.{name}") for name in ("documents", "reports", "rows"))
    named = next(
        (found for module in modules if (found := getattr(module, stage.name, None))), None
    )
    show = stage.show or named
    return show(context, built) if show else Shown()
