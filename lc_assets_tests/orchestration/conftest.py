"""What tests of the Dagster assets share."""

import pytest

from lc_assets_tests.telling import leave_plots_out


@pytest.fixture(autouse=True)
def _plain_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no plots in a test's own runs.

    A lake that a module's tests share is built before this, with its plots.
    """
    leave_plots_out(monkeypatch)
