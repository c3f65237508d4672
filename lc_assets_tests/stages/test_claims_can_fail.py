"""A check that cannot fail is a defect: each claim of each stage is shown a wrong version and must
say so.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of, run_check
from lc_assets.builds.sharding import SHARDS_FILE
from lc_assets.builds.stage import CheckInput
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.receipts import encode_json
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, PAGE
from lc_assets_tests.builders import TinyLake, tiny_lake

NEW = "2023-14"


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> TinyLake:
    return tiny_lake(tmp_path_factory.mktemp("lake"))


def key_of(stage: str) -> str:
    return {
        "withdrawn_documents": "all",
        "data_set_card": "all",
        "longcrawl": "all",
        "longcrawl_flat": "all",
        "blended_mix": "one-sided",
    }.get(stage, NEW)


@pytest.fixture
def shown(lake, tmp_path) -> Callable[[str], CheckInput]:
    """Hand out a stage's evidence over a copy of its folder, to be spoilt."""

    def show(stage: str) -> CheckInput:
        published = lake.context.lake.partition(stage, key_of(stage)).require()
        folder = Path(shutil.copytree(published.folder, tmp_path / published.folder.name))
        return replace(check_input_of(lake.context.lake, published), folder=folder)

    return show


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def edit_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def edit_column(path: Path, name: str, change: Callable[[list], list]) -> None:
    def changed(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        return table.set_column(
            index,
            table.schema.field(name),
            pa.array(change(table[name].to_pylist()), table.schema.field(name).type),
        )

    edit_table(path, changed)


def edit_array(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    write_npy(path, change(np.array(read_npy(path))))


def lose_a_line(check_input: CheckInput, pattern: str) -> CheckInput:
    edit_table(first(check_input.folder, pattern), lambda table: table.slice(1))
    return check_input


def edit_sides(check_input: CheckInput, change: Callable[[list], list]) -> CheckInput:
    edit_column(check_input.folder / "sides.parquet", "side", change)
    return check_input


def put_a_text_on_both_sides(check_input: CheckInput) -> CheckInput:
    def again(table: pa.Table) -> pa.Table:
        line = table.slice(0, 1).to_pylist()[0]
        other = {"train": "heldout"}.get(line["side"], "train")
        more = pa.Table.from_pylist([line | {"side": other}], schema=table.schema)
        return pa.concat_tables([table, more])

    edit_table(check_input.folder / "sides.parquet", again)
    return check_input


def repeat_the_first_id(check_input: CheckInput, pattern: str) -> CheckInput:
    edit_column(first(check_input.folder, pattern), "id", lambda ids: [ids[0], *ids[:-1]])
    return check_input


def misname_an_id(check_input: CheckInput) -> CheckInput:
    edit_column(
        first(check_input.folder, "*.documents.parquet"),
        "id",
        lambda ids: ["../../etc/passwd", *ids[1:]],
    )
    return check_input


def lose_a_shard(check_input: CheckInput) -> CheckInput:
    first(check_input.folder, "*.dropped.parquet").unlink()
    return check_input


def forget_what_shards_there_are(check_input: CheckInput) -> CheckInput:
    (check_input.folder / SHARDS_FILE).unlink()
    return check_input


def see_one_more(check_input: CheckInput) -> CheckInput:
    counts = check_input.counts
    return replace(
        check_input,
        counts=msgspec.structs.replace(
            counts, seen=counts.seen + 1, dropped=counts.dropped | {"lost": 1}
        ),
    )


def say_also(check_input: CheckInput, **extra: int) -> CheckInput:
    named = {name.replace("_", " "): count for name, count in extra.items()}
    return replace(
        check_input,
        counts=msgspec.structs.replace(check_input.counts, extra=check_input.counts.extra | named),
    )


def forget_a_document(check_input: CheckInput) -> CheckInput:
    edit_column(
        first(check_input.folder, "*.documents.parquet"),
        "n_tokens",
        lambda lengths: [lengths[0] + 1, *lengths[1:]],
    )
    return check_input


def give_an_id_beyond_the_vocabulary(check_input: CheckInput) -> CheckInput:
    path = first(check_input.folder, "*.bin")
    ids = np.fromfile(path, np.uint16)
    ids[3] = 50_257
    ids.tofile(path)
    return check_input


def shift_a_row_elsewhere(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "rows.parquet",
        "shift",
        lambda shifts: [(shifts[0] + 1) % 64, *shifts[1:]],
    )
    return check_input


def swap_two_documents(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "rows.parquet",
        "document",
        lambda numbers: [numbers[1], numbers[0], *numbers[2:]],
    )
    return check_input


def hold_out_what_is_trained_on(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "rows.parquet",
        "tokenized_digest",
        lambda digests: [digests[-1], *digests[1:]],
    )
    return check_input


def roll_every_row_alike(check_input: CheckInput) -> CheckInput:
    edit_column(check_input.folder / "rows.parquet", "shift", lambda shifts: [0] * len(shifts))
    return check_input


def sort_by_line(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "rows.parquet",
        "priority",
        lambda priorities: list(range(len(priorities))),
    )
    return check_input


def place_a_row_twice(check_input: CheckInput) -> CheckInput:
    edit_array(
        check_input.folder / "train_row.npy", lambda rows: np.concatenate([rows[:1], rows[:-1]])
    )
    return check_input


def swap_two_places(check_input: CheckInput) -> CheckInput:
    def swapped(sources: np.ndarray) -> np.ndarray:
        other = int(np.flatnonzero(sources != sources[0])[-1])
        sources[[0, other]] = sources[[other, 0]]
        return sources

    edit_array(check_input.folder / "train_source.npy", swapped)
    return check_input


def flip_a_flat_row(check_input: CheckInput) -> CheckInput:
    """Write the first band again with two rows exchanged."""
    from lc_assets.formats.arrays.flat import FlatReader

    reader = FlatReader(check_input.folder / "train.zarr")
    rows = reader.read(slice(0, reader.n_rows), slice(0, reader.row_tokens))
    reader.write(range(reader.n_rows), rows[[1, 0, *range(2, len(rows))]])
    return check_input


def change_a_megatron_token(check_input: CheckInput) -> CheckInput:
    path = check_input.folder / "train.bin"
    ids = np.fromfile(path, np.uint16)
    ids[0] ^= 1
    ids.tofile(path)
    return check_input


def leave_a_document_out_of_the_epoch(check_input: CheckInput) -> CheckInput:
    edit_array(
        check_input.folder / "train_document_index.npy",
        lambda order: np.where(order == 0, 1, order).astype(order.dtype),
    )
    return check_input


def serve_a_sample_twice(check_input: CheckInput) -> CheckInput:
    edit_array(
        check_input.folder / "train_shuffle_index.npy",
        lambda order: np.concatenate([order[:1], order[:-1]]),
    )
    return check_input


def take_a_sample_twice(check_input: CheckInput) -> CheckInput:
    edit_array(check_input.folder / "dataset_sample_index.npy", np.zeros_like)
    return check_input


def take_from_one_source_first(check_input: CheckInput) -> CheckInput:
    edit_array(check_input.folder / "dataset_index.npy", np.sort)
    return check_input


def lose_an_index(check_input: CheckInput) -> CheckInput:
    first(check_input.folder, "*_sample_index.npy").unlink()
    return check_input


def list_a_file_twice(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "manifest.parquet", "path", lambda paths: [paths[1], *paths[1:]]
    )
    return check_input


def say_that_more_was_kept(check_input: CheckInput) -> CheckInput:
    path = first(check_input.folder, "*.sweep.parquet")
    edit_column(path, "kept_with_the_others", lambda counts: [count + 1 for count in counts])
    return check_input


def lose_a_sweep(check_input: CheckInput) -> CheckInput:
    first(check_input.folder, "*.sweep.parquet").unlink()
    return check_input


def sweep_below_nothing(check_input: CheckInput) -> CheckInput:
    edit_column(
        first(check_input.folder, "*.sweep.parquet"), "kept_alone", lambda counts: [-1, *counts[1:]]
    )
    return check_input


def lose_the_sketches(check_input: CheckInput) -> CheckInput:
    path = first(check_input.folder, "*.minhash.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["sketch"]), path)
    return check_input


def sign_a_shard_otherwise(check_input: CheckInput) -> CheckInput:
    path = first(check_input.folder, "*.minhash.parquet")
    table = pq.read_table(path)
    pq.write_table(
        table.replace_schema_metadata(table.schema.metadata | {b"minhash_scheme": b"another/1"}),
        path,
    )
    return check_input


def swap_two_keys(check_input: CheckInput, name: str) -> CheckInput:
    edit_array(check_input.folder / f"{name}_place.npy", lambda places: places[::-1])
    return check_input


def lose_a_key(check_input: CheckInput, name: str) -> CheckInput:
    for part in ("key", "place"):
        edit_array(check_input.folder / f"{name}_{part}.npy", lambda array: array[1:])
    return check_input


def say_another_digest(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "documents.parquet",
        "text_digest",
        lambda digests: [*digests[:-1], digests[0]],
    )
    return check_input


def edit_span(check_input: CheckInput, column: str, change: Callable) -> CheckInput:
    """Change one column of the first piece."""
    edit_column(
        check_input.folder / "spans.parquet",
        column,
        lambda values: [change(values[0]), *values[1:]],
    )
    return check_input


def lose_a_token(check_input: CheckInput) -> CheckInput:
    """The first piece lacks its document's last token: it is cut, and in no row."""
    edit_column(
        check_input.folder / "spans.parquet",
        "document_stop",
        lambda stops: [stops[0] - 1, *stops[1:]],
    )
    return check_input


def end_a_span_later(check_input: CheckInput) -> CheckInput:
    edit_array(
        check_input.folder / "train_span_stop.npy",
        lambda stops: np.concatenate([stops[:1] - 1, stops[1:]]),
    )
    return check_input


def give_two_spans_to_one_document(check_input: CheckInput) -> CheckInput:
    edit_array(
        check_input.folder / "train_span_document.npy",
        lambda numbers: np.concatenate([numbers[1:2], numbers[1:]]),
    )
    return check_input


def join_two_documents(check_input: CheckInput) -> CheckInput:
    """The same tokens, the first two pieces as one document."""
    from lc_assets.formats.megatron.idx import idx_blocks

    lengths = MegatronReader(check_input.folder / "train").lengths
    joined = np.concatenate([lengths[:2].sum(keepdims=True), lengths[2:]])
    (check_input.folder / "train.idx").write_bytes(
        b"".join(idx_blocks(joined, np.arange(len(joined) + 1), np.dtype(np.uint16)))
    )
    return check_input


def swap_two_packed_rows(check_input: CheckInput) -> CheckInput:
    """Write the rows again, the first two exchanged."""
    from lc_assets.formats.arrays.grid import GridReader, write_band

    rows = GridReader(check_input.folder / "train.zarr").read()
    write_band(
        check_input.folder / "train.zarr",
        range(len(rows)),
        rows[[1, 0, *range(2, len(rows))]],
    )
    return check_input


def fill_up_with_another_token(check_input: CheckInput) -> CheckInput:
    """Write the rows again with another token at the end of the first one that is not full."""
    from lc_assets.formats.arrays.grid import GridReader, write_band

    rows = GridReader(check_input.folder / "train.zarr").read()
    rows[int(np.argmax(rows[:, -1] == 50_256)), -1] = 7
    write_band(check_input.folder / "train.zarr", range(len(rows)), rows)
    return check_input


def hold_out_a_packed_text(check_input: CheckInput) -> CheckInput:
    edit_column(
        check_input.folder / "spans.parquet",
        "tokenized_digest",
        lambda digests: [digests[-1], *digests[1:]],
    )
    return check_input


OF_A_CRAWL = ("html_index", "link_claims", "longpack_documents")
"""Stages that the tiny lake does not have; the tests of their own spoil them."""

SPOILS = [
    (
        "raw_snapshot",
        "the_manifest_adds_up",
        lambda check_input: lose_a_line(check_input, "manifest.parquet"),
    ),
    ("raw_snapshot", "the_manifest_adds_up", list_a_file_twice),
    (
        "raw_snapshot",
        "every_listed_file_is_there",
        lambda check_input: say_also(check_input, duplicates_missing=1),
    ),
    *(
        (stage, claim, spoil)
        for stage in ("filtered_documents", "token_documents", "packing_tokens")
        for claim, spoil in (
            ("counts_add_up", lambda check_input: lose_a_line(check_input, "*.documents.parquet")),
            ("counts_add_up", lambda check_input: lose_a_line(check_input, "*.dropped.parquet")),
            ("counts_add_up", see_one_more),
            ("the_tables_fit_their_schemas", misname_an_id),
            (
                "the_tables_fit_their_schemas",
                lambda check_input: repeat_the_first_id(check_input, "*.documents.parquet"),
            ),
            (
                "every_document_is_named_once",
                lambda check_input: repeat_the_first_id(check_input, "*.documents.parquet"),
            ),
            ("shard_counts_match", lose_a_shard),
        )
    ),
    *(
        (stage, "shard_counts_match", see_one_more)
        for stage in ("filtered_documents", "document_signatures", "token_documents")
    ),
    *(
        (stage, "shard_counts_match", forget_what_shards_there_are)
        for stage in ("filtered_documents", "document_signatures", "token_documents")
    ),
    ("filtered_documents", "every_shard_was_filtered", lose_a_shard),
    (
        "filtered_documents",
        "every_shard_was_filtered",
        lambda check_input: say_also(check_input, shards_treated_as_unique=1),
    ),
    ("filtered_documents", "the_sweeps_meet_the_counts", say_that_more_was_kept),
    ("filtered_documents", "the_sweeps_meet_the_counts", lose_a_sweep),
    ("filtered_documents", "the_sweeps_meet_the_counts", sweep_below_nothing),
    *(
        (stage, "reads_all_upstream_documents", see_one_more)
        for stage in (
            "document_keys",
            "document_signatures",
            "contaminated_documents",
            "token_documents",
            "packing_tokens",
            "packed_rows",
        )
    ),
    ("document_keys", "the_documents_are_those_filtered", say_another_digest),
    (
        "document_keys",
        "the_documents_are_those_filtered",
        lambda check_input: lose_a_line(check_input, "documents.parquet"),
    ),
    (
        "document_keys",
        "every_document_is_found_by_its_keys",
        lambda check_input: swap_two_keys(check_input, "document"),
    ),
    (
        "document_keys",
        "every_document_is_found_by_its_keys",
        lambda check_input: lose_a_key(check_input, "document"),
    ),
    (
        "row_lineage",
        "every_row_is_recorded",
        lambda check_input: lose_a_line(check_input, "records.parquet"),
    ),
    (
        "row_lineage",
        "every_row_is_found_by_its_keys",
        lambda check_input: swap_two_keys(check_input, "row"),
    ),
    (
        "row_lineage",
        "every_row_is_found_by_its_keys",
        lambda check_input: lose_a_key(check_input, "row"),
    ),
    (
        "document_signatures",
        "every_document_is_signed_or_short",
        lambda check_input: lose_a_line(check_input, "*.minhash.parquet"),
    ),
    (
        "document_signatures",
        "every_document_is_signed_or_short",
        lambda check_input: say_also(check_input, signatures_computed=1),
    ),
    ("document_signatures", "every_document_is_signed_or_short", lose_the_sketches),
    ("document_signatures", "one_scheme_signed_all", sign_a_shard_otherwise),
    (
        "document_signatures",
        "the_published_signatures_are_ours",
        lambda check_input: say_also(check_input, published_signatures_that_differ=1),
    ),
    *(
        (stage, claim, spoil)
        for stage in ("token_documents", "packing_tokens")
        for claim, spoil in (
            ("the_ids_are_where_the_table_says", forget_a_document),
            ("the_ids_are_where_the_table_says", give_an_id_beyond_the_vocabulary),
            (
                "the_fast_tokenizer_agreed",
                lambda check_input: say_also(check_input, **{BY_REFERENCE: 1}),
            ),
            (
                "the_golden_page_has_the_same_ids",
                lambda check_input: say_also(check_input, **{f"{PAGE}0123456789ab": 1}),
            ),
        )
    ),
    ("token_grid", "reads_all_upstream_documents", see_one_more),
    (
        "token_grid",
        "every_row_is_planned_once",
        lambda check_input: lose_a_line(check_input, "rows.parquet"),
    ),
    (
        "token_grid",
        "every_row_is_planned_once",
        lambda check_input: repeat_the_first_id(check_input, "rows.parquet"),
    ),
    ("token_grid", "rows_unroll_to_their_documents", shift_a_row_elsewhere),
    ("token_grid", "rows_unroll_to_their_documents", swap_two_documents),
    ("token_grid", "train_and_heldout_share_nothing", hold_out_what_is_trained_on),
    ("token_grid", "order_and_shifts_are_uniform", roll_every_row_alike),
    ("token_grid", "order_and_shifts_are_uniform", sort_by_line),
    ("longcrawl", "every_row_has_one_place", place_a_row_twice),
    ("longcrawl", "the_order_rises_by_priority", swap_two_places),
    ("longcrawl_flat", "the_flat_rows_are_the_ordered_rows", flip_a_flat_row),
    ("megatron_rows", "megatron_rows_are_the_grids_rows", change_a_megatron_token),
    ("megatron_rows", "the_index_shuffles_whole_epochs", leave_a_document_out_of_the_epoch),
    ("megatron_rows", "the_index_shuffles_whole_epochs", serve_a_sample_twice),
    (
        "packed_rows",
        "every_token_is_packed_as_planned",
        lambda check_input: lose_a_line(check_input, "spans.parquet"),
    ),
    ("packed_rows", "every_token_is_packed_as_planned", lose_a_token),
    (
        "packed_rows",
        "every_token_is_packed_as_planned",
        lambda check_input: say_also(check_input, tokens_in_rows=1),
    ),
    (
        "packed_rows",
        "every_token_is_packed_as_planned",
        lambda check_input: edit_span(check_input, "token_shard", lambda _: "9999-en_head"),
    ),
    (
        "packed_rows",
        "every_token_is_packed_as_planned",
        lambda check_input: edit_span(check_input, "id", lambda name: name + "0"),
    ),
    (
        "packed_rows",
        "every_token_is_packed_as_planned",
        lambda check_input: edit_span(check_input, "n_tokens", lambda n: n + 1),
    ),
    (
        "packed_rows",
        "rows_are_filled_from_the_left",
        lambda check_input: edit_span(check_input, "row_start", lambda start: start + 1),
    ),
    (
        "packed_rows",
        "rows_are_filled_from_the_left",
        lambda check_input: edit_span(check_input, "row", lambda row: row + 1),
    ),
    (
        "packed_rows",
        "rows_are_filled_from_the_left",
        lambda check_input: edit_span(check_input, "piece", lambda piece: piece + 1),
    ),
    (
        "packed_rows",
        "rows_are_filled_from_the_left",
        lambda check_input: say_also(check_input, padding=1),
    ),
    ("packed_rows", "rows_are_filled_from_the_left", end_a_span_later),
    ("packed_rows", "rows_are_filled_from_the_left", give_two_spans_to_one_document),
    (
        "packed_rows",
        "spans_are_megatrons_documents",
        lambda check_input: edit_span(check_input, "row_stop", lambda stop: stop - 1),
    ),
    ("packed_rows", "spans_are_megatrons_documents", join_two_documents),
    ("packed_rows", "rows_hold_their_pieces", change_a_megatron_token),
    ("packed_rows", "rows_hold_their_pieces", swap_two_packed_rows),
    ("packed_rows", "rows_hold_their_pieces", fill_up_with_another_token),
    ("packed_rows", "rows_are_as_the_method_makes_them", lose_a_token),
    ("packed_rows", "packed_train_and_heldout_share_nothing", hold_out_a_packed_text),
    ("blended_mix", "every_sample_can_be_found", take_a_sample_twice),
    ("blended_mix", "every_sample_can_be_found", lose_an_index),
    ("blended_mix", "the_blend_keeps_its_shares", take_from_one_source_first),
    (
        "heldout_pairs",
        "every_text_is_on_one_side",
        lambda found: lose_a_line(found, "sides.parquet"),
    ),
    (
        "heldout_pairs",
        "every_text_is_on_one_side",
        lambda found: edit_sides(found, lambda sides: ["", *sides[1:]]),
    ),
    ("heldout_pairs", "every_text_is_on_one_side", put_a_text_on_both_sides),
]


@pytest.mark.parametrize(
    ("stage", "claim", "spoil"),
    SPOILS,
    ids=[f"{stage}-{claim}-{number}" for number, (stage, claim, _) in enumerate(SPOILS)],
)
def test_a_claim_says_when_it_does_not_hold(shown, stage, claim, spoil):
    """Each way of being wrong is found by the claim that is there to find it, and was not there
    before.
    """
    test = {found.__name__: found for found in stage_named(stage).checks}[claim]
    check_input = shown(stage)
    assert test(check_input).passed
    found = run_check(test, replace(spoil(check_input)))  # which knows no tables yet
    assert not found.passed
    assert found.check == claim
    assert found.message


def test_a_text_on_both_sides_of_two_snapshots_is_found(lake, shown, tmp_path):
    """The global claim reads all grids: one digest trained on in one snapshot and held out in
    another.
    """
    check_input = shown("longcrawl")
    (claim,) = [
        claim
        for claim in stage_named("longcrawl").checks
        if claim.__name__ == "no_document_is_on_both_sides"
    ]
    assert claim(check_input).passed
    grids = {name: _copied(published, tmp_path) for name, published in check_input.inputs.items()}
    old, new = (
        grids[f"token_grid/{snapshot}"].folder / "rows.parquet" for snapshot in ("2023-06", NEW)
    )
    trained_on = pq.read_table(old, columns=["tokenized_digest"])["tokenized_digest"][0].as_py()
    edit_column(new, "tokenized_digest", lambda digests: [*digests[:-1], trained_on])
    found = claim(replace(check_input, inputs=grids))
    assert not found.passed
    assert trained_on in found.message


def test_every_claim_of_the_chain_is_put_to_this_test():
    """A new claim needs a way to fail here, or where its stage has something to be wrong about:
    duplicates, contamination, withdrawals.
    """
    elsewhere = {
        (stage, claim)
        for stage in ("near_duplicate_pairs", "heldout_pairs")
        for claim in ("the_pairs_add_up", "pairs_are_as_alike_as_they_say")
    }
    elsewhere |= {
        ("removed_documents", claim)
        for claim in ("removals_add_up", "every_near_duplicate_has_one_that_stays")
    }
    elsewhere |= {
        ("page_links", claim)
        for claim in (
            "the_links_add_up",
            "pages_and_targets_have_their_keys",
            "reads_all_upstream_documents",
        )
    }
    elsewhere |= {("data_set_card", "the_card_agrees_with_the_order")}
    elsewhere |= {
        ("contaminated_documents", claim)
        for claim in (
            "evidence_is_as_it_says",
            "the_text_holds_what_the_evidence_says",
            "shard_counts_match",
        )
    }
    elsewhere |= {
        (found.name, claim.__name__)
        for found in STAGES
        for claim in found.checks
        if found.name in OF_A_CRAWL
    }
    elsewhere |= {("html_index", claim.__name__) for claim in stage_named("html_index").checks}
    elsewhere |= {
        (name, claim.__name__)
        for name in ("length_report", "referral_report")
        for claim in stage_named(name).checks
    }
    elsewhere |= {
        ("removed_documents", claim.__name__) for claim in stage_named("removed_documents").checks
    }
    elsewhere |= {
        ("signature_index", claim.__name__) for claim in stage_named("signature_index").checks
    }
    elsewhere |= {
        ("withdrawn_documents", claim.__name__)
        for claim in stage_named("withdrawn_documents").checks
    }
    elsewhere |= {
        (name, claim.__name__)
        for name in ("clean_documents", "length_buckets")
        for claim in stage_named(name).checks
    }
    elsewhere |= {
        ("document_signals", claim.__name__) for claim in stage_named("document_signals").checks
    }
    elsewhere |= {("snapshot_withdrawals", "the_part_is_this_snapshots")}
    elsewhere |= {
        ("contaminated_documents", claim)
        for claim in ("evidence_is_as_it_says", "the_text_holds_what_the_evidence_says")
    }
    spoilt = (
        {(stage, claim) for stage, claim, _ in SPOILS}
        | {("longcrawl", "no_document_is_on_both_sides")}
        | elsewhere
    )
    assert spoilt == {(found.name, claim.__name__) for found in STAGES for claim in found.checks}


def _copied(published, tmp_path):
    folder = Path(shutil.copytree(published.folder, tmp_path / f"copy-{published.folder.name}"))
    (folder / "receipt.json").write_bytes(encode_json(published.receipt))
    return replace(published, home=folder)
