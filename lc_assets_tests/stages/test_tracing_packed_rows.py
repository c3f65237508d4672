"""Tracing packed rows, both ways: held against the tokens that stand there, and against a search by
brute force.
"""

import dataclasses
import re
import shutil

import msgspec
import numpy as np
import pytest

from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.tables import SPANS_FILE, read_table
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage import tracing, whereabouts
from lc_assets.stages.lineage.spans import (
    packed_spans,
    packed_spans_of,
    row_tokens_of,
    spans_of_packed_row,
)
from lc_assets.stages.mixes import blended_mix as blending
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets.text.links.addresses import normal, values_of
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS

MIX = "long"
SNAPSHOT = SNAPSHOTS[0]


@pytest.fixture(scope="module", params=["rows", "spans"])
def context(request, published_lake, tmp_path_factory):
    """A lake with a mix that takes packed rows too; its Megatron files hold whole rows, or, as
    older ones may, spans.
    """
    root = shutil.copytree(published_lake.root, tmp_path_factory.mktemp("packed") / "lake")
    mine = published_lake.context
    packing = msgspec.structs.replace(mine.recipe.packed_rows, megatron=request.param)
    lake = type(mine.lake)(root)
    shutil.rmtree(root / "blended_mix")
    for snapshot in SNAPSHOTS:
        stage_named("packed_rows").build(
            dataclasses.replace(
                mine, lake=lake, recipe=msgspec.structs.replace(mine.recipe, packed_rows=packing)
            ),
            snapshot,
        )
    whole = msgspec.structs.replace(packing, megatron="rows")
    recipe = msgspec.structs.replace(
        mine.recipe,
        packed_rows=whole,
        blended_mix={MIX: MixSettings(parts={"megatron_rows": 1, "packed_rows": 3}, samples=60)},
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blending, "require_whole_rows", lambda *_: None)
        stage_named("blended_mix").build(dataclasses.replace(mine, lake=lake, recipe=recipe), MIX)
    return dataclasses.replace(mine, lake=lake, recipe=recipe)


@pytest.fixture(scope="module")
def samples(context):
    """Every sample of the mix, as it is traced."""
    mix = read_mix(context.lake.partition("blended_mix", MIX).require().folder)
    return [tracing.sample_of_mix(context.lake, MIX, number) for number in range(mix.n_samples)]


def ids_of_sample(lake, number):
    """A sample's tokens as Megatron would read them: by the mix's arrays, the GPT index and the
    ``.bin``.
    """
    folder = lake.partition("blended_mix", MIX).require().folder
    mix = read_mix(folder)
    source = mix.sources[int(read_npy(folder / "dataset_index.npy")[number])]
    index, reader = read_gpt_index(folder / source.name), MegatronReader(lake.root / source.prefix)
    built = int(index.shuffle_index[int(read_npy(folder / "dataset_sample_index.npy")[number])])
    (first, offset), (last, end) = (
        index.sample_index[built].tolist(),
        index.sample_index[built + 1].tolist(),
    )
    documents = [reader[int(index.document_index[place])] for place in range(first, last + 1)]
    documents[-1] = documents[-1][: end + 1]
    documents[0] = documents[0][offset:]
    return np.concatenate(documents)


def test_every_sample_is_made_of_what_it_is_said_to_be(context, samples):
    """Its tokens, as Megatron reads them, are those of the rows' columns, and of the documents
    named, token by token.
    """
    lake, n_packed = context.lake, 0
    for sample in samples:
        ids = ids_of_sample(lake, sample.sample)
        of_packed = [piece for piece in sample.pieces if piece.span.is_packed]
        assert len(of_packed) in {0, len(sample.pieces)}
        if not of_packed:
            continue
        n_packed += 1
        rows = GridReader(of_packed[0].span.published.home / "train.zarr").read()
        np.testing.assert_array_equal(
            np.concatenate([rows[piece.span.row, piece.start : piece.stop] for piece in of_packed]),
            ids,
        )
        store = lake.partition("packing_tokens", of_packed[0].span.snapshot).require().folder
        position = 0
        for piece in of_packed:
            for column in range(piece.start, piece.stop):
                assert sample.column_of(position) == (piece, column)
                if piece.span.id:
                    token, document = piece.span.token_at(column), document_of(store, piece.span)
                    assert ids[position] == (50256 if token == len(document) else document[token])
                position += 1
    assert n_packed > 20


def document_of(store, stretch):
    table = read_table(
        store / f"{stretch.token_shard}.documents.parquet", ["id", "document"]
    ).to_pylist()
    (number,) = (line["document"] for line in table if line["id"] == stretch.id)
    return MegatronReader(store / stretch.token_shard)[number]


def test_a_row_is_its_stretches_and_padding(context):
    for snapshot in SNAPSHOTS:
        packed = context.lake.partition("packed_rows", snapshot).require()
        table = read_table(packed.folder / SPANS_FILE).to_pylist()
        for split in SPLITS:
            n_rows = packed_spans_of(packed, split).n_rows
            assert n_rows
            for row in range(n_rows):
                found = spans_of_packed_row(packed, split, row)
                lines = [line for line in table if (line["split"], line["row"]) == (split, row)]
                named = [one for one in found if one.id]
                assert [(one.id, one.row_start, one.row_stop) for one in named] == [
                    (line["id"], line["row_start"], line["row_stop"]) for line in lines
                ]
                edges = [one.row_start for one in found] + [found[-1].row_stop]
                assert edges[0] == 0
                assert edges[1:] == [one.row_stop for one in found]
                assert edges[-1] == row_tokens_of(packed)


@pytest.mark.parametrize("kind", ["document", "url", "domain", "digest"])
def test_a_document_leads_to_all_of_its_stretches(context, kind):
    lake = context.lake
    tables = {
        key: read_table(
            lake.partition("packed_rows", key).require().folder / SPANS_FILE
        ).to_pylist()
        for key in SNAPSHOTS
    }
    for wanted in tables[SNAPSHOT][:: 3 if kind != "domain" else 1000]:
        value = next(iter(values_of(kind, wanted)))
        expected = [
            (key, line["split"], line["row"], line["row_start"])
            for key, lines in tables.items()
            for line in lines
            if normal(kind, value) in values_of(kind, line)
        ]
        found = [
            (one.snapshot, one.split, one.row, one.row_start)
            for one in whereabouts.packed_by(lake, kind, value)
        ]
        assert found == expected
        assert found


def test_a_stretch_leads_to_all_samples_that_take_a_token_of_it(context, samples):
    lake, mixes = context.lake, whereabouts.mixes_of(context.lake)
    n_found = 0
    for snapshot in SNAPSHOTS:
        packed = lake.partition("packed_rows", snapshot).require()
        lines = range(len(packed_spans_of(packed, "train").stop))
        for stretch in packed_spans(packed, lines):
            expected = tuple(
                sample.sample
                for sample in samples
                if any(piece.span == stretch for piece in sample.pieces)
            )
            assert whereabouts.samples_of(lake, mixes, [stretch]) == {MIX: expected}
            n_found += len(expected)
        (held, *_) = spans_of_packed_row(packed, "heldout", 0)
        assert whereabouts.samples_of(lake, mixes, [held]) == {}
    assert n_found > 30


def test_what_is_not_there_is_refused(context):
    packed = context.lake.partition("packed_rows", SNAPSHOT).require()
    for split, row in (("train", 10**6), ("train", -1), ("test", 0)):
        with pytest.raises(BadInput, match=r"no train row|split"):
            spans_of_packed_row(packed, split, row)
    padded = next(
        found
        for row in range(100)
        if not (found := spans_of_packed_row(packed, "train", row)[-1]).id
    )
    with pytest.raises(BadInput, match="is padding"):
        padded.token_at(padded.row_start)
    with pytest.raises(BadInput, match="no column"):
        padded.token_at(padded.row_stop)


def test_the_command_follows_both_ways(context, samples):
    from typer.testing import CliRunner

    from lc_assets.cli.app import app

    def said(*words):
        ended = CliRunner().invoke(
            app, ["trace", str(context.lake.root), *map(str, words)], catch_exceptions=False
        )
        assert ended.exit_code == 0, ended.output
        return re.sub(r"\s+", " ", ended.output)

    sample = next(
        found
        for found in samples
        if found.source == f"packed_rows/{SNAPSHOT}" and found.pieces[0].span.id
    )
    stretch, start = sample.pieces[0].span, sample.pieces[0].start
    output = said("--mix", MIX, "--sample", sample.sample, "--position", 0)
    assert f"of packed_rows/{SNAPSHOT}" in output
    assert f"position 0 is column {start} of train row {stretch.row}" in output
    assert f"column {start} is token {stretch.token_at(start)} of the document" in output
    output = said("--row", stretch.row, "--snapshot", SNAPSHOT, "--packed", "--column", start)
    assert f"column {start} is token {stretch.token_at(start)} of the document" in output
    for words in (("--id", stretch.id), ("--url", stretch.url)):
        output = said(*words)
        assert f"train row {stretch.row} of packed_rows/{SNAPSHOT}" in output
        assert re.search(rf"blended_mix/{MIX} \d+ samples: .*\b{sample.sample}\b", output)
