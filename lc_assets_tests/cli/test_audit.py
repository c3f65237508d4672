"""``lc audit``: what was compared, one line per fault, and the exit status."""

import json

import pytest

from lc_assets.formats.arrays.grid import GridReader
from lc_assets.stages.releases.releasing import release
from lc_assets_tests.builders import recipe_file
from lc_assets_tests.withdrawing import ALONE_OLD, OLD, id_of


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


def test_the_command_prints_what_was_compared_and_ends_with_1_at_a_fault(lc, lake, tmp_path):
    recipe = recipe_file(tmp_path / "recipe.toml", lake.context.recipe)
    said = lc("audit", lake.lake.root, "--recipe", recipe)
    assert said.code == 0
    assert said.err == ""
    assert "0 with faults" in said.out
    lake.list_file.write_text(
        f"kind,value,reason,date\ndocument,{id_of(OLD, ALONE_OLD)},asked for,2026-03-01\n"
    )
    said = lc("audit", lake.lake.root, "--recipe", recipe, "--json")
    assert said.code == 1
    lines = json.loads(said.out)["comparisons"]
    assert {line["where"] for line in lines if line["wrong"]} == {
        f"token_grid/{OLD}",
        f"packed_rows/{OLD}",
    }
    assert said.err.splitlines() == [
        f"{line['where']}: withdrawn: 1 wrong, such as {id_of(OLD, ALONE_OLD)}"
        for line in lines
        if line["wrong"]
    ]


def test_a_release_is_audited_as_it_was_named(lc, lake):
    """The published grid has a fault that the released one has not, which only serves what was
    withdrawn since.
    """
    release(lake.lake, "v1", lake.context.recipe)
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    reader = GridReader(lake.published(f"token_grid/{OLD}").home / "train.zarr")
    rows = reader.read()
    rows[0, 0] += 1
    reader.write(range(reader.n_rows), rows)
    assert lc("audit", lake.lake.root).code == 1
    said = lc("audit", lake.lake.root, "--release", "v1")
    assert said.err.count(f": withdrawn: 1 wrong, such as {id_of(OLD, ALONE_OLD)}") == 2
    assert len(said.err.splitlines()) == 2
