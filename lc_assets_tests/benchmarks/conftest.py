"""Mark every test in this folder as a benchmark, so that no ordinary test run includes it."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from lc_assets.arrow_without_pandas import keep_pandas_out


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here; the hook is given the items of every folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.benchmark)


@pytest.fixture(scope="module")
def as_in_a_command() -> Iterator[None]:
    """Without pandas, and with garbage collected as seldom as in a command."""
    keep_pandas_out()
    before = gc.get_threshold()
    gc.set_threshold(400_000)
    yield
    gc.set_threshold(*before)
