"""docs/zarr.md: its examples run in the folder of a lake, each program's where it is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

import lc_assets as lc
from lc_assets.errors import BadInput
from lc_assets_tests.builders import build_all, tiny_context
from lc_assets_tests.test_papers import ROOT, blocks

POINTER, *EXAMPLES = blocks(ROOT / "docs" / "zarr.md", "python3")


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """A folder with a lake of two snapshots in ``lake``."""
    folder = tmp_path_factory.mktemp("zarr")
    build_all(tiny_context(folder))
    return folder


def program_of(example: str) -> str:
    """The package that an example imports, besides ours."""
    return next(name for name in re.findall(r"^import (\w+)", example, re.M) if name != "lc_assets")


@pytest.mark.parametrize("example", EXAMPLES, ids=program_of)
def test_the_example_reads_the_rows(example, lake, monkeypatch):
    """An example's batch is what our reader gives."""
    pytest.importorskip(program_of(example))
    monkeypatch.chdir(lake)
    names: dict = {}
    exec(POINTER + example, names)  # noqa: S102 - our own page
    if program_of(example) == "jax":
        return
    expected = lc.open("lake/token_grid/2023-06").rows.read(slice(0, 8), slice(0, 64))
    np.testing.assert_array_equal(np.asarray(names["batch"]), expected)


def test_a_path_of_one_array(lake):
    """A partition's and a version's array have a path, packed rows too; the global order has
    none.
    """
    partition = lake / "lake" / "token_grid" / "2023-06"
    path = Path(lc.open(partition).path)
    assert path == Path(lc.open(path.parent).path) == Path(lc.open(path).path)
    assert path.parent.parent == partition
    with pytest.raises(BadInput, match="longcrawl_flat"):
        _ = lc.open(lake / "lake").path
