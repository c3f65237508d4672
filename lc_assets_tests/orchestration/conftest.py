"""What tests of the Dagster assets share."""

from collections.abc import Iterator

import pytest

from lc_assets.stages.showing import Plot


def _without_drawing(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Plot, "png", lambda _plot: b"")


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
