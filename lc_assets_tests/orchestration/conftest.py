"""What tests of the Dagster assets share."""

import pytest

from lc_assets_tests.materializations import skip_plots


@pytest.fixture(autouse=True)
def _plain_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no plots in a test's own runs.

    A lake that a module's tests share is built before this, with its plots.
    """
    skip_plots(monkeypatch)
