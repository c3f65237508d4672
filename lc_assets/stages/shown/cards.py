"""What the UI shows of assets for people: what the published data set is."""

from lc_assets.build.showing import Markdown, Shown, inline
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.stages.reports import data_set_card as card


def data_set_card(_context: BuildContext, built: Built) -> Shown:
    """Of `data_set_card`."""
    page = built.published.folder / card.PAGE
    text = (built.published.folder / card.README).read_text("utf-8").split("\n---\n", 1)[1]
    for name in card.PLOTS:
        text = text.replace(
            f"({name})", f"({inline((built.published.folder / name).read_bytes())})"
        )
    return Shown(values={"card": Markdown(text), "page": page.absolute()})
