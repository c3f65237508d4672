"""``lc trace`` and ``lc batch``: what `stages.tracing` and the loader say, printed whole and
harmless.
"""

import re

import numpy as np
import pytest

from lc_assets.cli.inspect.batch import decode
from lc_assets.cli.printing import shown, visible
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.lineage import histories, tracing, whereabouts
from lc_assets.stages.lineage.characters import characters_of
from lc_assets.vocabulary import parse_document_id
from lc_assets_tests.builders import N_LONG, SNAPSHOTS, SURPRISES


def words_of(said):
    return " ".join(said.out.split())


def test_padding_of_a_packed_row_is_said_to_be_padding(lc, published_lake):
    """Its last column, in the row that ends first; the column after it is none."""
    key = SNAPSHOTS[0]
    packed = published_lake.context.lake.partition("packed_rows", key).require()
    length = packed.receipt.fingerprint.params["row_tokens"]
    spans = PackedSpans.open(packed.folder, "train", row_tokens=length)
    ends = spans.stop[spans.first[1:] - 1]
    row = int(np.argmin(ends))
    assert ends[row] < length
    words = ("trace", published_lake.root, "--snapshot", key, "--packed", "--row", row, "--column")
    said = lc(*words, length - 1)
    assert said.code == 0
    assert f"column {length - 1:,} is padding" in said.out
    assert lc(*words, length).code == 2


def test_a_row_leads_to_its_page(lc, published_lake):
    row = tracing.row_of_order(published_lake.context.lake, "train", 3)
    said = lc("trace", published_lake.root, "--row", 3, "--column", 10)
    assert said.code == 0
    assert (
        f"train row 3 of the global order is train row {row.row} of token_grid/{row.snapshot}"
        in said.out
    )
    for words in (
        row.id,
        row.url,
        row.digest,
        f"documents/{parse_document_id(row.id)[0].tag}.json.gz, line {parse_document_id(row.id)[1]} (from 0)",
        f"0 to 64 of {row.n_tokens}",
    ):
        assert words in words_of(said)
    assert f"column 10 is token {row.token_at(10)} of the document" in said.out
    found = characters_of(published_lake.context.lake, row, 10)
    words = f"characters {found.begin} to {found.end} of {row.id}: {found.text!a}"
    assert words in words_of(said)


def test_a_row_of_one_grid_leads_to_its_page(lc, published_lake):
    lake = published_lake.context.lake
    grid = lake.partition("token_grid", "2023-14").require()
    row = tracing.find_row(lake, grid, "heldout", 1)
    said = lc(
        "trace", published_lake.root, "--snapshot", "2023-14", "--row", 1, "--split", "heldout"
    )
    assert row.id in said.out
    assert "heldout row 1 of token_grid/2023-14" in said.out


def test_a_sample_leads_to_its_pages(lc, published_lake):
    sample = tracing.sample_of_mix(published_lake.context.lake, "one-sided", 7)
    said = lc("trace", published_lake.root, "--mix", "one-sided", "--sample", 7)
    assert (
        f"sample 7 of blended_mix/one-sided is sample {sample.source_sample} of {sample.source}"
        in said.out
    )
    assert all(
        f"{piece.start}:{piece.stop}" in said.out and piece.span.id in said.out
        for piece in sample.pieces
    )


def test_a_page_leads_to_row_position_and_samples(lc, published_lake):
    lake = published_lake.context.lake
    row = tracing.row_of_order(lake, "train", 5)
    (found,) = whereabouts.find(lake, "document", row.id)
    said = lc("trace", published_lake.root, "--id", row.id)
    assert f"train row {row.row} of token_grid/{row.snapshot}" in said.out
    assert "position 5 (in the global order, train)" in words_of(said)
    assert all(
        f"blended_mix/{mix} {len(samples)} samples" in words_of(said)
        for mix, samples in found.samples.items()
    )
    assert words_of(lc("trace", published_lake.root, "--url", row.url)).count(row.url) >= 2


def test_a_position_of_a_sample_leads_to_its_token(lc, published_lake):
    sample = tracing.sample_of_mix(published_lake.context.lake, "one-sided", 7)
    piece, column = sample.column_of(24)
    said = lc("trace", published_lake.root, "--mix", "one-sided", "--sample", 7, "--position", 24)
    assert f"position 24 is column {column} of train row {piece.span.row}" in said.out
    assert f"column {column} is token {piece.span.token_at(column)} of the document" in said.out


def test_a_page_is_told_with_its_values_and_who_went_in_its_stead(lc, published_lake):
    row = tracing.row_of_order(published_lake.context.lake, "train", 3)
    said = lc("trace", published_lake.root, "--row", 3)
    for name, value in histories.filter_values(published_lake.context.lake, row).items():
        assert f"{name} {shown(value)}" in words_of(said)
    assert "0 documents were removed as its duplicates" in said.out
    assert row.segment in said.out


def test_a_domain_is_told_by_its_rows_and_its_numbers(lc, published_lake):
    lake = published_lake.context.lake
    rows = whereabouts.rows_by(lake, "domain", "example.org")
    said = lc("trace", published_lake.root, "--domain", "example.org")
    assert said.out.count("position ") >= 10
    assert f"{len(rows)} rows in all, of {len(rows)} documents; the first 10 are above" in said.out
    samples = whereabouts.samples_of(lake, whereabouts.mixes_of(lake), rows)
    assert all(f"{mix} {len(of)} " in words_of(said) for mix, of in samples.items())
    assert "6 documents passed the filter and have no row" in said.out
    assert "too few tokens" in said.out


def test_a_digest_leads_to_its_document(lc, published_lake):
    row = tracing.row_of_order(published_lake.context.lake, "train", 3)
    assert row.id in lc("trace", published_lake.root, "--digest", row.digest).out


def test_a_version_is_traced_by_its_name(lc, published_lake):
    lake = published_lake.context.lake
    order, grid = (
        lake.partition("longcrawl").require(),
        lake.partition("token_grid", "2023-14").require(),
    )
    assert (
        lc("trace", published_lake.root, "--row", 3, "--version", order.version).out
        == lc("trace", published_lake.root, "--row", 3).out
    )
    row = ("trace", published_lake.root, "--row", 1, "--snapshot", "2023-14")
    assert lc(*row, "--version", grid.version).out == lc(*row).out
    assert lc(*row, "--version", "0" * 12).code == 2


def test_a_dropped_page_is_answered_with_why(lc, published_lake):
    said = lc("trace", published_lake.root, "--id", f"2023-06/0000/en_head.json.gz/{N_LONG}")
    assert said.code == 0
    assert "did not become a row: dropped by token_documents" in said.out
    assert re.search(r"too few tokens\s+51", said.out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            (),
            "expected one of --row, --mix, --launch, --batch-rows, --id, --url, --domain, --digest, got none",
        ),
        (("--row", "0", "--url", "x"), "got --row and --url"),
        (("--mix", "one-sided"), "--mix needs --sample"),
        (("--id", "nonsense"), "not a document id"),
        (("--id", "2023-06/0000/en_head.json.gz/999"), "neither a row nor among the dropped"),
        (
            ("--url", "https://nowhere.invalid/"),
            "no filtered document has this url",
        ),
        (("--row", "0", "--column", "64"), "columns 0 to 63"),
        (("--row", "0", "--split", "test"), "train and heldout"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(lc, published_lake, words, sentence):
    said = lc("trace", published_lake.root, *words)
    assert said.code == 2
    assert sentence in said.err


def test_a_batch_shows_the_loaders_ids_and_their_pages(lc, published_lake):
    said = lc("batch", published_lake.root, "--step", 2, "--rows", 3, "--context", 16)
    rows = open_rows(published_lake.root, "train")
    assert said.out.startswith(f"step 2 of {rows.n_rows // 3 * 4}: text 3 × 16 uint16")
    for position in range(6, 9):
        ids = rows.read(slice(position, position + 1), slice(0, 16))[0]
        assert " ".join(map(str, [50256, *ids[:7].tolist()])) in said.out
        assert visible("<|endoftext|>" + decode(ids))[:40] in said.out
        assert tracing.row_of_order(published_lake.context.lake, "train", position).id in said.out


@pytest.mark.parametrize("place", ["longcrawl", "longcrawl_flat"])
def test_versions_of_an_order_and_of_the_flat_copy_give_the_lakes_batch(lc, published_lake, place):
    folder = published_lake.context.lake.partition(place).require().folder
    assert lc("batch", folder).out == lc("batch", published_lake.root).out


def test_a_grid_gives_its_own_rows(lc, published_lake):
    grid = published_lake.context.lake.partition("token_grid", "2023-14").require()
    said = lc("batch", grid.folder, "--rows", 1, "--split", "heldout")
    row = tracing.find_row(published_lake.context.lake, grid, "heldout", 0)
    assert row.id in said.out


def test_nothing_in_a_text_reaches_the_terminal(lc, published_lake):
    """Every row of the lake is shown once; some hold an escape sequence, all hold line ends."""
    n_rows = open_rows(published_lake.root, "train").n_rows
    said = lc("batch", published_lake.root, "--rows", n_rows, "--context", 64)
    assert "\x1b" not in said.out
    assert len([line for line in said.out.splitlines() if "en_" in line]) == n_rows


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--step", "999"), "no step 999"),
        (("--context", "7"), "must divide"),
        (("--rows", "999"), "1 to"),
    ],
)
def test_a_batch_that_does_not_exist_is_refused(lc, published_lake, words, sentence):
    said = lc("batch", published_lake.root, *words)
    assert said.code == 2
    assert sentence in said.err


def test_ids_decode_to_their_text():
    text = " ".join(SURPRISES)
    ids = gpt2_tokenizer().encode(text)
    assert decode(ids) == text
    assert decode(np.array([50256, *ids.tolist()])) == "<|endoftext|>" + text
    assert "\ufffd" in decode(gpt2_tokenizer().encode("\u65e5")[:1])
