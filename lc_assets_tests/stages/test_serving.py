"""Nothing withdrawn is served: every artefact is held against the lists as they are now, and fails
until it is made again.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.lookups import ScannedTable
from lc_assets.lake.receipts import RECEIPT, Receipt, decode_json, with_checksum
from lc_assets.lake.versions import write_receipt
from lc_assets.orchestration.assets import WHOLE, findings_of
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage.row_lineage import row_index, rows_in
from lc_assets.stages.withdrawal.contents import (
    CHECK,
    SERVED,
    nothing_withdrawn_is_served,
)
from lc_assets.text.links.addresses import values_of
from lc_assets_tests.builders import SNAPSHOTS
from lc_assets_tests.withdrawing import ALONE_NEW, ALONE_OLD, COPIED, NEW, OLD, id_of

OF_NEW = [
    f"token_grid/{NEW}",
    f"megatron_rows/{NEW}",
    f"packed_rows/{NEW}",
    "longcrawl/all",
    "longcrawl_flat/all",
    "blended_mix/by-tokens",
    "blended_mix/one-sided",
]
OF_OLD = [f"token_grid/{OLD}", f"megatron_rows/{OLD}", f"packed_rows/{OLD}"]


@pytest.fixture(scope="module")
def whole(lake_with_copies):
    return lake_with_copies


@pytest.fixture
def lake(whole, tmp_path):
    return whole.copy(tmp_path)


def served(lake, name):
    return nothing_withdrawn_is_served(lake.lake, lake.context.recipe, lake.published(name))


def look_up(lake):
    stage_named("withdrawn_documents").build(lake.context, "all")


def test_without_a_list_nothing_is_asked(lake):
    lake.list_file.write_text("kind,value,reason,date\n")
    assert all(served(lake, name).passed for name in OF_NEW + OF_OLD)


def test_everything_stale_fails_until_it_is_made_again(lake):
    """The list names a row of the new snapshot: all that serves it fails, and names look-up and
    document; made again, it passes.
    """
    name = id_of(NEW, ALONE_NEW)
    lake.say(("document", name))
    for of in OF_NEW:
        found = served(lake, of)
        assert not found.passed
        assert "older than the lists" in found.message
        assert f"1 withdrawn documents are served, such as {name}" in found.message
    look_up(lake)
    assert [of for of in OF_NEW + OF_OLD if not served(lake, of).passed] == OF_NEW
    lake.build()
    assert all(served(lake, of).passed for of in OF_NEW + OF_OLD)


def test_each_artefact_fails_by_itself(lake):
    """Made again one by one along the chain: what has not been made yet still serves the old rows,
    and says so.
    """
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    look_up(lake)
    for snapshot in SNAPSHOTS:
        stage_named("snapshot_withdrawals").build(lake.context, snapshot)
    left = list(OF_NEW)
    for stage, key in (
        ("token_grid", NEW),
        ("megatron_rows", NEW),
        ("longcrawl", "all"),
        ("longcrawl_flat", "all"),
        ("blended_mix", "by-tokens"),
        ("blended_mix", "one-sided"),
    ):
        if stage == "token_grid":
            for before in ("removed_documents", "token_documents", "packing_tokens"):
                stage_named(before).build(lake.context, key)
        stage_named(stage).build(lake.context, key)
        left.remove(f"{stage}/{key}")
        assert [of for of in OF_NEW if not served(lake, of).passed] == left


def test_the_same_content_is_looked_for_too(lake):
    """What is listed has no row; what is served is its near duplicate, which only the look-up can
    know.
    """
    lake.say(("document", id_of(NEW, COPIED + 1)))
    assert not served(lake, f"token_grid/{OLD}").passed
    look_up(lake)
    found = served(lake, f"token_grid/{OLD}")
    assert not found.passed
    assert id_of(OLD, COPIED + 1) in found.message
    lake.build()
    assert served(lake, f"token_grid/{OLD}").passed


def test_a_snapshot_that_was_not_looked_through_fails(lake):
    """The documents of a snapshot were filtered anew after the look-up: who is withdrawn of it is
    not known.
    """
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    lake.build()
    keys = lake.published(f"document_keys/{OLD}")
    partition = lake.lake.partition("document_keys", OLD)
    (partition.folder / "current.json").write_text(
        (partition.folder / "current.json").read_text().replace(keys.digest, "0" * 64)
    )
    receipt = keys.home / "receipt.json"
    receipt.write_text(receipt.read_text().replace(keys.digest, "0" * 64))
    write_receipt(keys.home, with_checksum(decode_json(receipt, Receipt)))
    found = served(lake, f"token_grid/{OLD}")
    assert not found.passed
    assert f"made before document_keys/{OLD}" in found.message


def test_a_row_table_that_holds_a_withdrawn_document_fails(lake):
    """Spoilt: a row of the rebuilt grid bears the withdrawn document's name, by id, by address, by
    digest; index or no index.
    """
    line = lake.document(id_of(NEW, ALONE_NEW))
    lake.say(("document", line["id"]), ("url", line["url"]), ("digest", line["digest"]))
    lake.build()
    grid = lake.published(f"token_grid/{NEW}")
    shutil.rmtree(lake.lake.partition("row_lineage", NEW).folder)
    sound = (grid.home / "rows.parquet").read_bytes()
    for column in ("id", "url", "digest"):
        spoil(grid.home / "rows.parquet", column, line[column])
        found = served(lake, grid.name)
        assert not found.passed, column
        assert "1 withdrawn documents are served" in found.message
        (grid.home / "rows.parquet").write_bytes(sound)
    assert served(lake, grid.name).passed


def spoil(path, column, value):
    table = pq.read_table(path)
    values = [value, *table[column].to_pylist()[1:]]
    pq.write_table(
        table.set_column(table.schema.get_field_index(column), column, pa.array(values)), path
    )


def test_an_index_and_a_table_find_the_same(lake):
    """For every value of every document of either snapshot, and for values of none."""
    grids = [lake.published(f"token_grid/{snapshot}") for snapshot in SNAPSHOTS]
    tables = [ScannedTable(grid.home / "rows.parquet") for grid in grids]
    lines = [line for table in tables for line in pq.read_table(table.path).to_pylist()]
    kinds = ("document", "url", "domain", "digest")
    every = sorted(
        {(kind, value) for line in lines for kind in kinds for value in values_of(kind, line)}
        | {("url", "example.org/none")}
    )
    for grid, table in zip(grids, tables, strict=True):
        index = rows_in(row_index(lake.lake, grid))
        for one in every:
            assert [line["id"] for line in table.find(*one)] == [
                line["id"] for line in index.find(*one)
            ]
        found = [(number, line["id"]) for number, line in index.find_all(every)]
        assert [(number, line["id"]) for number, line in table.find_all(every)] == found
        assert {name for _, name in found} == set(pq.read_table(table.path)["id"].to_pylist())


def test_it_is_a_check_of_all_that_serves(lake):
    """The check of each asset tests it by the recipe of the run; what cannot be read fails in
    words.
    """
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    for stage in SERVED - {"longpack_documents"}:
        key = {
            "token_grid": OLD,
            "megatron_rows": OLD,
            "packed_rows": OLD,
            "blended_mix": "by-tokens",
        }.get(stage, "all")
        (found,) = findings_of(
            lake.lake, stage_named(stage), key, {CHECK}, recipe=lake.context.recipe
        )
        assert (found.check, found.passed) == (CHECK, False)
    assert {found.name for found in map(stage_named, SERVED)} == {
        "token_grid",
        "longcrawl",
        "longcrawl_flat",
        "megatron_rows",
        "blended_mix",
        "longpack_documents",
        "packed_rows",
    }
    shutil.rmtree(lake.lake.partition("token_grid", OLD).folder)
    (found,) = findings_of(
        lake.lake, stage_named("blended_mix"), "by-tokens", {CHECK}, recipe=lake.context.recipe
    )
    assert not found.passed
    assert "cannot be checked" in found.message


def test_checks_fail_where_a_receipt_is_damaged(lake):
    """They do not raise, which Dagster would show as a failed run without a check."""
    receipt = lake.lake.partition("token_grid", OLD).require().home / RECEIPT
    receipt.write_bytes(receipt.read_bytes()[:-9])
    chosen = {CHECK, WHOLE}
    findings = findings_of(
        lake.lake, stage_named("token_grid"), OLD, chosen, recipe=lake.context.recipe
    )
    assert {(found.check, found.passed) for found in findings} == {(CHECK, False), (WHOLE, False)}
    assert {found.message.partition(str(receipt))[0] for found in findings} == {
        "cannot be checked: CorruptFile: "
    }


def test_another_policy_than_the_look_ups_fails(lake):
    """The lists are the same, but what counts as the same content is not."""
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    recipe = lake.context.recipe
    other = msgspec.structs.replace(
        recipe,
        withdrawn_documents=msgspec.structs.replace(
            recipe.withdrawn_documents, same_content="stays"
        ),
    )
    lake = replace(lake, context=replace(lake.context, recipe=other))
    assert not served(lake, f"token_grid/{OLD}").passed


def test_a_look_up_that_never_was_fails(lake):
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    shutil.rmtree(Path(lake.lake.partition("withdrawn_documents").folder))
    assert "never materialized" in served(lake, f"token_grid/{NEW}").message
