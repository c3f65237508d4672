"""The audit of a lake: it passes on what the stages wrote, and finds each kind of fault, made here
behind their backs.
"""

import ast
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.rows import MegatronSettings
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.stages.releases import audited_files, auditing
from lc_assets.stages.releases.auditing import Audit
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.withdrawing import ALONE_OLD, COPIED, NEW, OLD, id_of, withdrawing_lake


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


def faults(lake, entries=()):
    """What was wrong, by what and where."""
    found = Audit(lake.lake, frozenset(entries)).run()
    return {(one.what, one.where): one.fault for one in found if one.wrong}


def file_of(lake, name, path):
    return lake.published(name).home / path


def other_token(reader, row):
    """Change one token of a row in place."""
    rows = reader.read()
    rows[row, 3] = (rows[row, 3] + 1) % reader.vocab_size
    reader.write(range(reader.n_rows), rows)


def column_changed(path, name, change):
    """Rewrite a table with one column changed; ``change`` gets and returns a list."""
    table = pq.read_table(path)
    lines = [
        line | {name: value}
        for line, value in zip(table.to_pylist(), change(table[name].to_pylist()), strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(lines, schema=table.schema), path)


def test_a_sound_lake_passes_and_everything_was_compared(lake):
    found = Audit(lake.lake).run()
    assert [one.sentence for one in found if one.wrong] == []
    compared = {}
    for one in found:
        compared[one.what] = compared.get(one.what, 0) + one.compared
    grids = [lake.published(f"token_grid/{key}").receipt.counts for key in (OLD, NEW)]
    n_rows = sum(counts.extra[f"{split} rows"] for counts in grids for split in SPLITS)
    assert compared["order"] == compared["flat rows"] == compared["texts"] == n_rows
    assert compared["withdrawn"] == compared["train and heldout"] == 2 * n_rows
    packed = [lake.published(f"packed_rows/{key}").receipt.counts for key in (OLD, NEW)]
    n_packed = sum(counts.extra[f"{split} rows"] for counts in packed for split in SPLITS)
    n_pieces = sum(counts.extra["pieces"] for counts in packed)
    assert compared["rows"] == n_rows + n_packed
    assert compared["Megatron files"] == n_rows + n_pieces
    assert compared["mixes"] == sum(
        lake.published(f"blended_mix/{name}").receipt.counts.kept
        for name in ("by-tokens", "one-sided")
    )
    assert compared["documents"] > n_rows


def test_a_changed_token_of_a_grid_is_found_in_all_that_is_made_of_it(lake):
    other_token(GridReader(file_of(lake, f"token_grid/{OLD}", "train.zarr")), 1)
    assert faults(lake) == {
        ("rows", f"token_grid/{OLD}"): "train row 1",
        ("Megatron files", f"megatron_rows/{OLD}"): "train.bin",
        ("flat rows", "longcrawl_flat/all"): "train.zarr",
    }


def test_a_changed_token_of_a_packed_row_is_found(lake):
    other_token(GridReader(file_of(lake, f"packed_rows/{NEW}", "train.zarr")), 0)
    assert faults(lake) == {
        ("rows", f"packed_rows/{NEW}"): "train row 0",
        ("Megatron files", f"packed_rows/{NEW}"): "train.bin",
    }


def test_a_changed_flat_row_is_found(lake):
    other_token(FlatReader(file_of(lake, "longcrawl_flat/all", "heldout.zarr")), 0)
    assert faults(lake) == {("flat rows", "longcrawl_flat/all"): "heldout.zarr"}


@pytest.mark.parametrize("stage", ["megatron_rows", "packed_rows"])
def test_a_changed_token_of_megatron_is_found(lake, stage):
    path = file_of(lake, f"{stage}/{OLD}", "train.bin")
    ids = np.memmap(path, "<u2", "r+")
    ids[5] += 1
    assert faults(lake) == {("Megatron files", f"{stage}/{OLD}"): "train.bin"}


def test_a_row_under_another_name_shift_or_number_is_found(lake):
    path = file_of(lake, f"token_grid/{OLD}", "rows.parquet")
    good = path.read_bytes()
    for name, change in (
        ("shift", lambda values: [values[0] + 1, *values[1:]]),
        ("row", lambda values: [1, 0, *values[2:]]),
        ("document", lambda values: [values[1], *values[1:]]),
        ("token_shard", lambda values: [*values[1:], values[0]]),
    ):
        path.write_bytes(good)
        column_changed(path, name, change)
        assert ("rows", f"token_grid/{OLD}") in faults(lake), name


def test_a_row_served_twice_is_found(lake):
    """The second row is the first once more, token by token."""
    grid = lake.published(f"token_grid/{OLD}").home
    reader = GridReader(grid / "train.zarr")
    rows = reader.read()
    table = pq.read_table(grid / "rows.parquet")
    lines = table.to_pylist()
    lines[1] = lines[0] | {"row": 1}
    rows[1] = rows[0]
    reader.write(range(reader.n_rows), rows)
    pq.write_table(pa.Table.from_pylist(lines, schema=table.schema), grid / "rows.parquet")
    found = faults(lake)
    assert found["rows", f"token_grid/{OLD}"] == "a stretch of a document is in two rows"


def test_a_document_on_both_sides_is_found_across_kinds_of_rows(lake):
    """A document that is trained on in the grid is said to be held out there."""
    path = file_of(lake, f"packed_rows/{OLD}", "spans.parquet")
    first = pq.read_table(path).to_pylist()[0]
    assert first["split"] == "train"
    grid = file_of(lake, f"token_grid/{OLD}", "rows.parquet")
    ids = pq.read_table(grid)["id"].to_pylist()
    sides = pq.read_table(grid)["split"].to_pylist()
    assert sides[ids.index(first["id"])] == "train"
    column_changed(
        grid,
        "split",
        lambda values: [
            "heldout" if name == first["id"] else side
            for name, side in zip(ids, values, strict=True)
        ],
    )
    found = faults(lake)
    assert found[("train and heldout", f"packed_rows/{OLD}")] == first["id"]


def test_an_order_that_names_a_row_twice_is_found(lake):
    path = file_of(lake, "longcrawl/all", "train_row.npy")
    rows = np.load(path)
    sources = np.load(path.with_name("train_source.npy"))
    first, second = np.flatnonzero(sources == 0)[:2]
    rows[second] = rows[first]
    np.save(path, rows)
    assert ("order", "longcrawl/all") in faults(lake)


@pytest.mark.parametrize("name", ["available", "used"])
def test_counts_of_a_mix_that_are_not_the_rows_are_found(lake, name):
    path = file_of(lake, "blended_mix/by-tokens", "mix.json")
    mix = json.loads(path.read_bytes())
    mix["sources"][0][name] += 1
    path.write_text(json.dumps(mix))
    (fault,) = faults(lake).values()
    assert fault.startswith(f"megatron_rows/{OLD}: ")


def test_an_epoch_is_one_whatever_megatron_is_asked_for(tmp_path):
    """Megatron's index of 300 samples goes through the rows many times; a mix's epoch does not."""
    made = withdrawing_lake(
        tmp_path, megatron_rows=MegatronSettings(sequence_length=24, samples=300)
    )
    assert faults(made) == {}
    path = file_of(made, "blended_mix/by-tokens", "mix.json")
    mix = json.loads(path.read_bytes())
    mix["sources"][0]["available"] = 300
    path.write_text(json.dumps(mix))
    assert faults(made).keys() == {("mixes", "blended_mix/by-tokens")}


@pytest.mark.parametrize(
    "entry",
    [
        lambda line: ("document", line["id"]),
        lambda line: ("url", line["url"].removeprefix("https://www.")),
        lambda line: ("domain", "site5.example.org"),
        lambda line: ("digest", line["digest"]),
        lambda line: ("digest", line["text_digest"]),
    ],
    ids=["document", "url", "domain", "digest", "text"],
)
def test_what_a_list_names_is_found_before_anything_is_built(lake, entry):
    line = lake.document(id_of(OLD, ALONE_OLD))
    found = faults(lake, {entry(line)})
    assert found["withdrawn", f"token_grid/{OLD}"].endswith(f"/{ALONE_OLD}")
    assert ("withdrawn", f"packed_rows/{OLD}") in found


def test_what_was_withdrawn_once_is_sought_by_its_copies_too(lake):
    """The copy was withdrawn with the listed document; a version that serves it is found, although
    the list does not name it.
    """
    copy = id_of(NEW, COPIED)
    entry = ("document", id_of(OLD, COPIED))
    before = {key: lake.published(f"token_grid/{key}") for key in (OLD, NEW)}
    lake.say(entry)
    lake.build()
    assert faults(lake, {entry}) == {}
    for key, grid in before.items():
        lake.lake.partition("token_grid", key).point_at(grid)
    found = faults(lake, {entry})
    served = {line["id"] for line in lake.rows(NEW)}
    assert (copy in served) == (("withdrawn", f"token_grid/{NEW}") in found)
    assert ("withdrawn", f"token_grid/{OLD}") in found


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (f"filtered_documents/{OLD}", "*.documents.parquet"),
        (f"token_documents/{NEW}", "*.dropped.parquet"),
        (f"removed_documents/{NEW}", "decisions.parquet"),
    ],
)
def test_a_lost_line_of_a_table_is_found(lake, name, pattern):
    paths = sorted(lake.published(name).home.glob(pattern))
    path = next(path for path in paths if pq.read_metadata(path).num_rows)
    pq.write_table(pq.read_table(path).slice(1), path)
    assert ("documents", name) in faults(lake)


def test_it_shares_no_code_with_the_stages():
    """Of the stages' package it imports its own modules alone; of the builds' package, nothing."""
    for module in (auditing, audited_files):
        tree = ast.parse(Path(module.__file__).read_text())
        names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        ours = {name for name in names if name.startswith(("lc_assets.stages", "lc_assets.builds"))}
        assert ours <= {audited_files.__name__}
