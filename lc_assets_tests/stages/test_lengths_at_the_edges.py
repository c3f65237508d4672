"""Documents of exactly as many tokens as a row has, as a minimum asks for, or as two bytes count,
and one more or fewer.
"""

import json

import numpy as np
import pytest

from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import GriddingSettings, MegatronSettings, TokenizingSettings
from lc_assets.builds.tables import read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.file_lakes import context_over_files
from lc_assets.stages.planning import keys_of, plan
from lc_assets_tests.file_runs import ONE

FULL = 1 << 16
LENGTHS = (FULL - 1, FULL, FULL + 1, 2 * FULL - 1, 2 * FULL, 2 * FULL + 1)


def lake_of(folder, lengths, **sections):
    """Build every stage over documents of these numbers of GPT-2's tokens; return what was built.

    A document's first token tells which it is.
    """
    lines = [
        json.dumps({"id": f"d{n}", "text": f"{n}" + " a" * (length - 1)})
        for n, length in enumerate(lengths)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    out = folder / "lake"
    context = context_over_files([folder / "corpus.jsonl"], out, executor=ONE, settings=sections)
    built = {
        f"{stage.name}/{key}": stage.build(context, key)
        for stage in STAGES
        for key in keys_of(stage, context.recipe, ["corpus"])
    }
    assert {one.status for one in plan(context.lake, context.recipe, ["corpus"])} == {"current"}
    return out, built


@pytest.fixture(scope="module")
def two_rows_each(tmp_path_factory):
    """Rows of 65,536 tokens, at most two of a document, and packed rows of as many."""
    return lake_of(
        tmp_path_factory.mktemp("edges"),
        LENGTHS,
        token_documents=TokenizingSettings(min_tokens=FULL),
        token_grid=GriddingSettings(row_tokens=FULL, rows_per_document=2, heldout_fraction=0),
        megatron_rows=MegatronSettings(sequence_length=FULL // 2),
        packed_rows=PackingSettings(wanted=True, row_tokens=FULL),
    )


def test_what_does_not_fill_a_row_is_dropped(two_rows_each):
    _, built = two_rows_each
    tokens = built["token_documents/corpus"]
    assert tokens.counts.dropped == {"too few tokens": 1}
    (path,) = documents_files(tokens.published.folder)
    assert read_table(path, ["n_tokens"])["n_tokens"].to_pylist() == list(LENGTHS[1:])


def test_rows_are_whole_rows_of_documents(two_rows_each):
    """One row from 65,536 tokens on, two from 131,072 on; what is left is counted."""
    lake, built = two_rows_each
    rows = read_table(
        built["token_grid/corpus"].published.folder / "rows.parquet",
        ["id", "stretch", "shift", "row"],
    ).to_pylist()
    assert sorted((line["id"][-1], line["stretch"]) for line in rows) == [
        ("1", 0),
        ("2", 0),
        ("3", 0),
        *((number, stretch) for number in "45" for stretch in (0, 1)),
    ]
    found = open_rows(lake / "token_grid/corpus", "train").read()
    for line in rows:
        unrolled = np.roll(found[line["row"]], -line["shift"])
        first = unrolled[0] if line["stretch"] == 0 else ord(line["id"][-1]) - ord("0") + 15
        assert first == ord(line["id"][-1]) - ord("0") + 15
        assert (unrolled[1:] == 257).all()
    extra = built["token_grid/corpus"].counts.extra
    assert extra["tokens behind the rows"] == 0 + 1 + (FULL - 1) + 0 + 1


@pytest.mark.parametrize("row_tokens", [FULL - 1, FULL, FULL + 1])
def test_packed_rows_of_as_many_tokens_as_two_bytes_count(tmp_path, row_tokens):
    """Each document with its end of text is found again, cut where it is longer than a row."""
    lengths = (1, 2, row_tokens - 2, row_tokens - 1, row_tokens, row_tokens + 1, 2 * row_tokens - 1)
    _, built = lake_of(
        tmp_path,
        lengths,
        token_documents=TokenizingSettings(min_tokens=row_tokens),
        token_grid=GriddingSettings(row_tokens=row_tokens, heldout_fraction=0),
        megatron_rows=MegatronSettings(sequence_length=64),
        packed_rows=PackingSettings(wanted=True, row_tokens=row_tokens, min_tokens=1),
    )
    packed = built["packed_rows/corpus"].published.folder
    spans = read_table(
        packed / "spans.parquet", ["id", "document_start", "document_stop", "row_start", "row_stop"]
    )
    by_document = dict.fromkeys(range(len(lengths)), 0)
    for line in spans.to_pylist():
        assert 0 <= line["row_start"] < line["row_stop"] <= row_tokens
        by_document[int(line["id"][-1])] += line["document_stop"] - line["document_start"]
    assert list(by_document.values()) == [length + 1 for length in lengths]
    rows = GridReader(packed / "train.zarr")
    assert rows.n_rows == built["packed_rows/corpus"].counts.extra["train rows"]
    assert rows.row_tokens == row_tokens
