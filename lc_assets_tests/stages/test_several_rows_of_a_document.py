"""Several rows cut out of one document: each stretch once, all on one side, the first row as it
was, the rest counted.
"""

import numpy as np
import pytest

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.stages.lineage.spans import span_of_row
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets_tests.builders import SNAPSHOTS, TINY_ROW_TOKENS, tiny_context
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot

OLD, _ = SNAPSHOTS
STAGES = [*BEFORE_TOKENS, "token_documents", "token_grid"]


def grid_of(folder, upstream=None, **gridding):
    settings = GriddingSettings(row_tokens=TINY_ROW_TOKENS, heldout_fraction=0.2, **gridding)
    return build_snapshot(tiny_context(folder, upstream=upstream, token_grid=settings), OLD, STAGES)


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    """One row of a document, and up to three."""
    folder = tmp_path_factory.mktemp("rows")
    one = grid_of(folder / "one")
    return one, grid_of(folder / "three", upstream=folder / "one" / "upstream", rows_per_document=3)


def test_each_row_is_its_stretch_of_its_document(grids):
    _, three = grids
    tokens = three["token_documents"].published.folder
    n_seen = 0
    for line in rows_table(three["token_grid"].published).to_pylist():
        row = GridReader(three["token_grid"].published.folder / f"{line['split']}.zarr").read(
            slice(line["row"], line["row"] + 1)
        )[0]
        document = MegatronReader(tokens / line["token_shard"])[line["document"]]
        start = line["stretch"] * TINY_ROW_TOKENS
        np.testing.assert_array_equal(
            np.roll(row, -line["shift"]), document[start : start + TINY_ROW_TOKENS]
        )
        n_seen += 1
    assert n_seen > three["token_grid"].counts.kept


def test_no_whole_stretch_is_left_out_and_the_rest_is_counted(grids):
    _, three = grids
    table = rows_table(three["token_grid"].published).to_pylist()
    parts: dict[str, list[int]] = {}
    lengths = {line["id"]: line["n_tokens"] for line in table}
    for line in table:
        parts.setdefault(line["id"], []).append(line["stretch"])
    for name, found in parts.items():
        assert sorted(found) == list(range(min(3, lengths[name] // TINY_ROW_TOKENS)))
    behind = sum(lengths.values()) - len(table) * TINY_ROW_TOKENS
    assert three["token_grid"].counts.extra["tokens behind the rows"] == behind > 0
    assert max(map(len, parts.values())) > 1


def test_a_documents_rows_are_on_one_side(grids):
    _, three = grids
    sides: dict[str, set[str]] = {}
    for line in rows_table(three["token_grid"].published).to_pylist():
        sides.setdefault(line["id"], set()).add(line["split"])
    assert all(len(side) == 1 for side in sides.values())


def test_first_rows_keep_their_draws(grids):
    """A document's first row has the priority, shift and side that it has alone; the others have
    their own.
    """
    one, three = (rows_table(built["token_grid"].published).to_pylist() for built in grids)
    drawn = [
        {
            line["id"]: (line["priority"], line["shift"], line["split"])
            for line in table
            if line["stretch"] == 0
        }
        for table in (one, three)
    ]
    assert drawn[0] == drawn[1]
    assert len({line["priority"] for line in three}) == len(three)


def test_a_trace_says_which_stretch(grids):
    _, three = grids
    grid = three["token_grid"].published
    lines = rows_table(grid).to_pylist()
    found = [span_of_row(grid, line) for line in lines if line["stretch"] == 1]
    assert found
    assert all(row.document_start == row.row_stop for row in found)
