"""Reading the grids' rows for the flat copy."""

import numpy as np
import pytest

from lc_assets.formats.arrays.order import write_order
from lc_assets.stages.rows.longcrawl_flat import OrderedRows
from lc_assets_tests.grid_builders import ids, write_lake


@pytest.mark.parametrize(
    "order",
    [
        [("2023-06", row) for row in range(5)],
        [("2023-06", row) for row in (4, 2, 1)],
        [("2023-06", 0), ("2023-14", 0), ("2023-06", 1), ("2023-06", 3), ("2023-14", 2)],
    ],
    ids=["one grid", "not ascending", "two grids, with gaps"],
)
def test_rows_are_read_in_their_order(tmp_path, order):
    grids = {name: ids(6, 32, seed=seed) for seed, name in enumerate(("2023-06", "2023-14"))}
    root = write_lake(tmp_path, grids, {name: rows[:1] for name, rows in grids.items()})
    folder, names = root / "longcrawl" / "all" / "v7", list(grids)
    sources = np.array([names.index(name) for name, _ in order], np.uint16)
    write_order(folder, "train", sources, np.array([row for _, row in order], np.uint32))
    found = OrderedRows(root, folder, "train").read(range(1, len(order)), slice(8, 24))
    assert found.tolist() == [grids[name][row, 8:24].tolist() for name, row in order[1:]]
