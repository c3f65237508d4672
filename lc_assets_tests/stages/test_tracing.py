"""Tracing: what an answer says is held against the pages upstream, tokenized again, and against a
search by brute force.
"""

import shutil
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.tables import FILTERED
from lc_assets.errors import BadInput, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.lake.lake import Lake
from lc_assets.loaders.rows import open_rows
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets.stages.lineage import histories, tracing, whereabouts
from lc_assets.stages.lineage.spans import Span
from lc_assets.stages.megatron.megatron_rows import samples_of
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.text.links.addresses import KINDS, values_of
from lc_assets.vocabulary import SPLITS, parse_document_id, parse_snapshot
from lc_assets_tests.builders import N_LONG, TINY_ROW_TOKENS, build_all, tiny_context


@pytest.fixture(scope="module")
def lake(published_lake):
    return published_lake.context.lake


@pytest.fixture(scope="module")
def page(published_lake):
    """Read the record that a row says it came from, out of the upstream."""

    def read(row):
        shard, number = parse_document_id(row.id)
        path = published_lake.root.parent / "upstream" / redpajama_v2.part_path("documents", shard)
        with path.open("rb") as stream:
            line = dict(read_lines(stream, where=str(path), max_line_bytes=1 << 20))[number]
        return decode_document(line, where=str(path))

    return read


def a_row(**changes):
    fields = {
        "published": None,
        "split": "train",
        "row": 0,
        "number": 0,
        "row_start": 0,
        "row_stop": 8,
        "id": "s/0",
        "url": "",
        "digest": "",
        "n_tokens": 99,
    }
    return Span(**(fields | changes))


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_of_the_order_is_the_page_it_says(lake, page, split):
    """The page's text, tokenized by tiktoken and rolled by ``np.roll``, is the row that the loader
    reads at that position.
    """
    rows = open_rows(lake.root, split)
    reference = gpt2_tokenizer(fast=False)
    for position in range(rows.n_rows):
        row = tracing.row_of_order(lake, split, position)
        record = page(row)
        ids = reference.encode(record.raw_content)
        assert (record.url, record.digest, len(ids)) == (row.url, row.digest, row.n_tokens)
        np.testing.assert_array_equal(
            np.roll(ids[: row.row_stop], row.shift), rows.read(slice(position, position + 1))[0]
        )


def test_a_row_of_a_flat_array_is_the_row_at_that_position_of_the_order(lake):
    flat = lake.partition("longcrawl_flat").require().folder
    for split in SPLITS:
        positions = range(open_rows(lake.root, split).n_rows)
        _, found = tracing.rows_of_array(str(flat / f"{split}.zarr"), positions)
        assert found == [[tracing.row_of_order(lake, split, position)] for position in positions]


def test_a_row_of_a_grids_array_is_that_row(lake):
    grid = lake.partition("token_grid", "2023-14").require()
    _, found = tracing.rows_of_array(str(grid.folder / "heldout.zarr"), [2])
    assert found == [[tracing.find_row(lake, grid, "heldout", 2)]]


def test_an_array_without_a_receipt_has_no_origin(lake, tmp_path):
    array = shutil.copytree(
        lake.partition("token_grid", "2023-14").require().folder / "train.zarr",
        tmp_path / "train.zarr",
    )
    assert tracing.rows_of_array(str(array), [0]) is None


@pytest.mark.parametrize("shift", range(8))
def test_columns_hold_what_numpy_rolls_there(shift):
    """Column by column and range by range, the answer is `numpy.roll`'s."""
    row, rolled = a_row(shift=shift), np.roll(np.arange(8), shift)
    assert [row.token_at(column) for column in range(8)] == rolled.tolist()
    for start in range(8):
        for stop in range(start + 1, 9):
            tokens = [
                token for first, last in row.tokens_in(start, stop) for token in range(first, last)
            ]
            assert tokens == rolled[start:stop].tolist()
            assert all(first < last for first, last in row.tokens_in(start, stop))


@pytest.mark.parametrize("stretch", [1, 3])
def test_a_later_stretch_holds_later_tokens(stretch):
    """The tokens of a row that is not its document's first are counted from the document's
    beginning.
    """
    row, document = a_row(shift=3, document_start=8 * stretch), np.arange(100)
    rolled = np.roll(document[stretch * 8 : stretch * 8 + 8], 3)
    assert [row.token_at(column) for column in range(8)] == rolled.tolist()
    for start in range(8):
        for stop in range(start + 1, 9):
            tokens = [
                token for first, last in row.tokens_in(start, stop) for token in range(first, last)
            ]
            assert tokens == rolled[start:stop].tolist()


@pytest.mark.parametrize("column", [-1, 8])
def test_a_column_outside_the_row_is_refused(column):
    with pytest.raises(BadInput, match="columns 0 to 7"):
        a_row().token_at(column)


@pytest.mark.parametrize("mix", ["by-tokens", "one-sided"])
def test_a_samples_pieces_are_whole_and_its_tokens_are_the_documents(lake, page, mix):
    """Each sample is 24 tokens and a target, cut from rows that end where the next piece begins;
    each token is its page's.
    """
    reference = gpt2_tokenizer(fast=False)
    n_samples = lake.partition("blended_mix", mix).require().receipt.counts.kept
    for number in range(n_samples):
        sample = tracing.sample_of_mix(lake, mix, number)
        assert sum(piece.stop - piece.start for piece in sample.pieces) == 24 + 1
        assert all(piece.stop == TINY_ROW_TOKENS for piece in sample.pieces[:-1])
        assert all(piece.start == 0 for piece in sample.pieces[1:])
        for piece in sample.pieces:
            ids = reference.encode(page(piece.span).raw_content)
            found = np.concatenate(
                [ids[first:last] for first, last in piece.span.tokens_in(piece.start, piece.stop)]
            )
            stored = GridReader(piece.span.published.home / "train.zarr").read(
                slice(piece.span.row, piece.span.row + 1)
            )[0]
            np.testing.assert_array_equal(found, stored[piece.start : piece.stop])


def test_a_position_of_a_sample_is_a_column_of_a_piece(lake, page):
    """Position by position, the token that is named is the one that stands in the sample."""
    reference = gpt2_tokenizer(fast=False)
    for number in range(8):
        sample = tracing.sample_of_mix(lake, "by-tokens", number)
        stored = [
            GridReader(piece.span.published.home / "train.zarr").read(
                slice(piece.span.row, piece.span.row + 1)
            )[0][piece.start : piece.stop]
            for piece in sample.pieces
        ]
        for position, token in enumerate(np.concatenate(stored).tolist()):
            piece, column = sample.column_of(position)
            assert (
                reference.encode(page(piece.span).raw_content)[piece.span.token_at(column)] == token
            )
        for position in (-1, 25):
            with pytest.raises(BadInput, match="it has 0 to 24, the last a target only"):
                sample.column_of(position)


def test_an_epochs_samples_cover_every_token_of_every_row_but_a_rest(lake):
    """All samples of a source, put together, are its epoch: no token but the rest at the end is
    left out.
    """
    megatron = lake.partition("megatron_rows", "2023-06").require()
    covered = 0
    for number in range(lake.partition("blended_mix", "by-tokens").require().receipt.counts.kept):
        sample = tracing.sample_of_mix(lake, "by-tokens", number)
        if sample.source == "2023-06":
            covered += sum(piece.stop - piece.start for piece in sample.pieces) - 1
    n_tokens = megatron.receipt.counts.extra["train rows"] * TINY_ROW_TOKENS
    assert covered == samples_of(megatron) * 24
    assert n_tokens - 24 <= covered < n_tokens


def test_a_documents_samples_are_those_whose_pieces_name_it(lake):
    """The way back agrees with going through every sample of every mix, repeated epochs
    included.
    """
    forward: dict[tuple[str, str], list[int]] = {}
    for mix, published in lake.published("blended_mix").items():
        for number in range(published.receipt.counts.kept):
            for identity in {
                piece.span.id for piece in tracing.sample_of_mix(lake, mix, number).pieces
            }:
                forward.setdefault((identity, mix), []).append(number)
    for position in range(open_rows(lake.root, "train").n_rows):
        row = tracing.row_of_order(lake, "train", position)
        (found,) = whereabouts.find(lake, "document", row.id)
        assert (found.span, found.position) == (row, position)
        assert {mix: list(samples) for mix, samples in found.samples.items()} == {
            mix: forward.get((row.id, mix), []) for mix in lake.published("blended_mix")
        }


def test_a_heldout_document_is_in_no_sample(lake):
    row = tracing.row_of_order(lake, "heldout", 0)
    (found,) = whereabouts.find(lake, "document", row.id)
    assert (found.span.split, found.position, found.samples) == ("heldout", 0, {})


def test_an_address_is_found_in_every_snapshot(lake):
    """The made-up shards have the same addresses in both snapshots."""
    found = whereabouts.find(lake, "url", "https://example.org/0000-en_head/1?q=[a]")
    assert [one.span.id for one in found] == [
        "2023-06/0000/en_head.json.gz/1",
        "2023-14/0000/en_head.json.gz/1",
    ]
    assert whereabouts.find(lake, "url", "https://example.org/no-such-page") == []


def test_an_index_answers_as_the_tables_do(published_lake, tmp_path):
    """Every row by its number, every document by each of its values: with indices and, when these
    are gone, without.
    """
    lake = Lake(shutil.copytree(published_lake.root, tmp_path / "lake"))
    grids = list(lake.published("token_grid").values())
    places = [
        (grid, split, row)
        for grid in grids
        for split in SPLITS
        for row in range(grid.receipt.counts.extra[f"{split} rows"])
    ]
    rows = [tracing.find_row(lake, *place) for place in places]
    assert [(row.published, row.split, row.row) for row in rows] == places
    assert [row.id for row in rows] == [
        name for grid in grids for name in rows_table(grid)["id"].to_pylist()
    ]
    values = sorted(
        {
            (kind, value)
            for row in rows
            for kind in KINDS
            for value in values_of(kind, {"id": row.id, "url": row.url, "digest": row.digest})
        }
    )
    by_index = [whereabouts.rows_by(lake, kind, value) for kind, value in values]
    assert all(found for found in by_index)
    shutil.rmtree(lake.root / "row_lineage")
    assert [whereabouts.rows_by(lake, kind, value) for kind, value in values] == by_index
    assert [tracing.find_row(lake, *place) for place in places] == rows
    with pytest.raises(BadInput, match="no heldout row 99"):
        tracing.find_row(lake, grids[0], "heldout", 99)


def test_a_domain_is_all_rows_of_all_hosts_below_it(lake):
    n_rows = sum(open_rows(lake.root, split).n_rows for split in SPLITS)
    found = whereabouts.find(lake, "domain", "EXAMPLE.org")
    assert len(found) == n_rows
    assert [one.span for one in found] == [*whereabouts.rows_by(lake, "domain", "example.org")]
    assert whereabouts.find(lake, "domain", "other.example") == []


def test_samples_of_several_documents_are_those_of_each(lake):
    """One pass over an index for many documents gives the union of what each gives."""
    mixes = whereabouts.mixes_of(lake)
    for grid in lake.published("token_grid").values():
        rows = [
            row
            for row in whereabouts.rows_by(lake, "domain", "example.org")
            if row.published.home == grid.home
        ]
        singly = [whereabouts.samples_of(lake, mixes, [row]) for row in rows]
        together = whereabouts.samples_of(lake, mixes, rows)
        assert {mix: set(found) for mix, found in together.items()} == {
            mix: {number for found in singly for number in found.get(mix, ())} for mix in mixes
        }


def test_every_value_that_a_document_was_filtered_by_is_listed(lake):
    """As it stands in the filtered table, for every row."""
    for row in whereabouts.rows_by(lake, "domain", "example.org"):
        filtered = (
            lake.partition("filtered_documents", row.snapshot).require().folder
            / f"{parse_document_id(row.id)[0].name}.documents.parquet"
        )
        (line,) = [line for line in pq.read_table(filtered).to_pylist() if line["id"] == row.id]
        wanted = {name: value for name, value in line.items() if name not in FILTERED.names}
        assert histories.filter_values(lake, row) == wanted
        assert set(wanted) == {
            "rps_doc_mean_word_length",
            "rps_doc_symbol_to_word_ratio",
            "rps_doc_word_count",
        }


def test_the_values_are_those_of_the_documents_behind_the_row(tmp_path):
    """After the filter was changed and the grid was not, a row has the values that its own documents were
    filtered by, or none if these are gone.
    """
    context = tiny_context(tmp_path)
    build_all(context)
    row = tracing.row_of_order(context.lake, "train", 0)
    before = histories.filter_values(context.lake, row)
    filtering = msgspec.structs.replace(context.recipe.filtered_documents, min_words=80)
    stricter = replace(
        context, recipe=msgspec.structs.replace(context.recipe, filtered_documents=filtering)
    )
    for stage in ("filtered_documents", "document_signatures", "document_keys"):
        stage_named(stage).build(stricter, row.snapshot)
    assert histories.filter_values(context.lake, row) == before != {}
    partition = context.lake.partition("document_keys", row.snapshot)
    current = partition.require().version
    for name in partition.version_names():
        if name != current:
            shutil.rmtree(partition.folder / name)
    assert histories.filter_values(context.lake, row) == {}


def test_who_went_in_the_stead_of_a_document_is_told(lake_with_copies):
    """As the tables of removals of all snapshots say, for every document that has a row."""
    lake = lake_with_copies.lake
    removed = [
        line
        for published in lake.published("removed_documents").values()
        for line in removals_in(published.folder)
    ]
    assert removed
    for row in whereabouts.rows_by(lake, "domain", "example.org"):
        wanted = sorted(
            (line["id"], line["similarity"], line["why"])
            for line in removed
            if line["kept_id"] == row.id
        )
        assert [
            (line["id"], line["similarity"], line["why"])
            for line in histories.removed_for(lake, row.id)
        ] == wanted


@pytest.mark.parametrize(
    ("line", "stage", "reason", "value"),
    [
        (N_LONG, "token_documents", "too few tokens", 51),
        (N_LONG + 1, "filtered_documents", "long_enough", 14),
        (N_LONG + 2, "filtered_documents", "symbols", None),
        (N_LONG + 3, "filtered_documents", "duplicate", 1),
    ],
)
def test_a_dropped_document_is_answered_with_the_reason(lake, line, stage, reason, value):
    identity = f"2023-06/0000/en_head.json.gz/{line}"
    dropped = histories.why_dropped(lake, identity)
    assert dropped is not None
    assert (dropped.stage, dropped.id, dropped.url) == (
        stage,
        identity,
        f"https://example.org/0000-en_head/{line}?q=[a]",
    )
    assert reason in dict(dropped.reasons)
    assert value is None or dict(dropped.reasons)[reason] == value
    assert whereabouts.find(lake, "document", identity) == []


def test_a_document_that_nobody_has_seen_has_no_fate(lake):
    assert histories.why_dropped(lake, "2023-06/0000/en_head.json.gz/999") is None
    assert histories.why_dropped(lake, "2019-04/0000/en_head.json.gz/0") is None
    assert whereabouts.find(lake, "document", "2019-04/0000/en_head.json.gz/0") == []


def test_what_is_not_there_is_refused_with_what_is(lake, tmp_path):
    n_rows = open_rows(lake.root, "train").n_rows
    with pytest.raises(BadInput, match=f"it has 0 to {n_rows - 1}"):
        tracing.row_of_order(lake, "train", n_rows)
    with pytest.raises(BadInput, match="0 to"):
        tracing.row_of_order(lake, "train", -1)
    with pytest.raises(BadInput, match="train and heldout"):
        tracing.row_of_order(lake, "test", 0)
    with pytest.raises(BadInput, match="it has 0 to 59"):
        tracing.sample_of_mix(lake, "one-sided", 60)
    with pytest.raises(BadInput, match="no train row 999 in token_grid/2023-06"):
        grid = lake.partition("token_grid", "2023-06").require()
        tracing.find_row(lake, grid, "train", 999)
    with pytest.raises(NotPublished, match="blended_mix/none"):
        tracing.sample_of_mix(lake, "none", 0)
    with pytest.raises(NotPublished, match="longcrawl/all"):
        tracing.row_of_order(Lake(tmp_path), "train", 0)
    with pytest.raises(BadInput, match="not a document id"):
        whereabouts.find(lake, "document", "../../etc/passwd")


def test_what_was_made_from_an_older_grid_is_traced_through_that_grid(tmp_path):
    """After a grid is laid anew by another seed, order and mixes still lead to the old one, until
    they are made again.
    """
    context = tiny_context(tmp_path)
    build_all(context)
    before = [tracing.row_of_order(context.lake, "train", position) for position in range(5)]
    sample = tracing.sample_of_mix(context.lake, "one-sided", 0)
    changed = tiny_context(
        tmp_path / "again",
        upstream=tmp_path / "upstream",
        token_grid=GriddingSettings(row_tokens=TINY_ROW_TOKENS, heldout_fraction=0.2, seed=1),
    )
    newer = type(context)(
        lake=context.lake,
        upstream=context.upstream,
        recipe=changed.recipe,
        executor=context.executor,
    )
    for snapshot in ("2023-06", "2023-14"):
        stage_named("token_grid").build(newer, parse_snapshot(snapshot))
    assert [
        tracing.row_of_order(context.lake, "train", position) for position in range(5)
    ] == before
    assert tracing.sample_of_mix(context.lake, "one-sided", 0) == sample
    (found,) = whereabouts.find(context.lake, "document", before[0].id)
    assert found.span.published.home != before[0].published.home
    assert found.position is None
    assert all(samples == () for samples in found.samples.values())
    stage_named("longcrawl").build(newer, "all")
    (found,) = whereabouts.find(context.lake, "document", before[0].id)
    assert found.position is not None
    assert tracing.row_of_order(context.lake, found.span.split, found.position) == found.span
