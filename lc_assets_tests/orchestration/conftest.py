"""What tests of the Dagster assets share."""

from collections.abc import Iterator

import dagster as dg
import pytest

from lc_assets.assets import plots


def _without_drawing(patched: pytest.MonkeyPatch) -> None:
    def blank(title: str, /, *_: object, **__: object) -> dg.MetadataValue:
        return dg.MetadataValue.md(f"![{title}]({plots.inline(b'')})")

    for name in ("bars", "histogram", "timeline", "curves", "columns", "shares"):
        patched.setattr(plots, name, blank)


@pytest.fixture(autouse=True)
def _plain_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no plots in a test's own runs: they take a third of a materialization's time.

    A lake that a module's tests share is built before this, with its plots.
    """
    _without_drawing(monkeypatch)


@pytest.fixture(scope="module")
def without_plots() -> Iterator[None]:
    """Draw no plots in runs that a module's tests share."""
    with pytest.MonkeyPatch.context() as patched:
        _without_drawing(patched)
        yield
