"""The loader of packed rows: what it tells of a batch is what a slow walk through the row's pieces
says; and its contracts.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.loaders import torch as tensors
from lc_assets.loaders.contracts import (
    NumberedRows,
    assert_ranks_share_every_batch,
    assert_reading_ahead_changes_nothing,
    assert_resume_gives_the_rest,
    assert_step_is_enough,
)
from lc_assets.loaders.packed import PackedLoader, PackedRows, open_packed
from lc_assets.packing.methods import METHODS, Shape, pack
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.grid_builders import write_grid
from lc_assets_tests.reference import packing as reference


def packed_rows(lengths, *, row_tokens, method="bestfit"):
    """Documents in rows whose ids are numbered from 0 to the last token of the last row."""
    packing = pack(
        np.asarray(lengths),
        method=method,
        shape=Shape(row_tokens=row_tokens, segment_tokens=max(row_tokens // 3, 1)),
    )
    stops = packing.places + packing.pieces.lengths
    spans = PackedSpans.of(packing.row, stops, packing.pieces.document, n_rows=packing.n_rows)
    return PackedRows(NumberedRows(packing.n_rows, row_tokens), spans), packing


def walked(packing, rows, tokens):
    """Per row, of each token: its document, and how many tokens of its piece the stretch shows
    before it; (-1, n) in padding.
    """
    out = []
    for row in rows:
        line = []
        for piece in np.flatnonzero(packing.row == row):
            line += [(int(packing.pieces.document[piece]), int(piece))] * int(
                packing.pieces.lengths[piece]
            )
        line += [(-1, -1)] * (packing.row_tokens - len(line))
        told, seen = [], {}
        for document, piece in line[tokens.start : tokens.stop]:
            told.append((document, seen.get(piece, 0)))
            seen[piece] = seen.get(piece, 0) + 1
        out.append(told)
    return out


@st.composite
def shapes(draw):
    """Documents, a row's length and a context that divides it, and a way of packing."""
    context, columns = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 3 * context * columns), min_size=1, max_size=12))
    return lengths, context * columns, context, draw(st.sampled_from(sorted(METHODS)))


@given(shape=shapes(), data=st.data())
def test_a_batch_tells_what_a_walk_through_its_pieces_says(shape, data):
    """Positions, masks, documents, cu_seqlens and inputs, token by token, for every step of any
    walk.
    """
    lengths, row_tokens, context, method = shape
    packed, packing = packed_rows(lengths, row_tokens=row_tokens, method=method)
    batch_rows = data.draw(st.integers(1, packing.n_rows))
    loader = PackedLoader(packed, batch_rows=batch_rows, context_tokens=context)
    for step in range(len(loader)):
        batch, ((rows,), tokens) = loader[step], loader.part_of(step)
        told = walked(packing, rows, tokens)
        np.testing.assert_array_equal(
            batch.targets,
            packed.rows.read(slice(rows.start, rows.stop), slice(tokens.start, tokens.stop)),
        )
        assert batch.documents.tolist() == [[document for document, _ in row] for row in told]
        assert batch.positions.tolist() == [[place for _, place in row] for row in told]
        assert batch.mask.tolist() == [
            [document >= 0 and place > 0 for document, place in row] for row in told
        ]
        begins = [
            row * context + at
            for row, line in enumerate(told)
            for at, (_, place) in enumerate(line)
            if place == 0
        ]
        assert batch.cu_seqlens.tolist() == [*begins, batch_rows * context]
        assert batch.max_seqlen == max(np.diff(batch.cu_seqlens))
        for row, line in enumerate(told):
            shown = [
                GPT2_EOT if place == 0 else int(batch.targets[row, at - 1])
                for at, (_, place) in enumerate(line)
            ]
            assert batch.text[row].tolist() == shown


@given(shape=shapes(), data=st.data())
def test_the_loader_keeps_the_contracts(shape, data):
    """Step is enough; resume gives the rest, also on other ranks; ranks share every batch; reading
    ahead changes nothing.
    """
    lengths, row_tokens, context, method = shape
    packed, packing = packed_rows(
        [*lengths, row_tokens, row_tokens], row_tokens=row_tokens, method=method
    )
    batch_rows = 2 if packing.n_rows < 4 else 4

    def make(rank=0, n_ranks=1, prefetch=0, threads=1):
        return PackedLoader(
            packed,
            batch_rows=batch_rows,
            context_tokens=context,
            rank=rank,
            n_ranks=n_ranks,
            prefetch=prefetch,
            threads=threads,
        )

    loader = make()
    steps = data.draw(st.lists(st.integers(0, len(loader) - 1), min_size=1, max_size=4))
    assert_step_is_enough(loader, steps=steps)
    assert_resume_gives_the_rest(make, stop_after=data.draw(st.integers(0, len(loader))))
    assert_ranks_share_every_batch(make, world_sizes=[2, batch_rows], steps=steps)
    if len(loader) > 2:
        assert_resume_gives_the_rest(make, world_sizes=[1, 2, batch_rows], stop_after=1)
    assert_reading_ahead_changes_nothing(
        lambda n_ahead, threads: make(prefetch=n_ahead, threads=threads), prefetches=[(2, 2)]
    )


def test_lanes_tell_the_spans_of_their_own_rows():
    """A step of several lanes is several stretches of rows, and their spans are put together."""
    packed, _ = packed_rows(np.arange(1, 60) % 17 + 1, row_tokens=12)
    whole = PackedLoader(packed, batch_rows=4, lanes=2)
    assert_ranks_share_every_batch(
        lambda rank, n_ranks: PackedLoader(
            packed, batch_rows=4, lanes=2, rank=rank, n_ranks=n_ranks
        ),
        world_sizes=[2],
        steps=range(len(whole)),
    )
    for step in range(len(whole)):
        each = [PackedLoader(packed, batch_rows=1)[row] for row in whole.rows_of(step)]
        for together, alone in zip(whole[step], zip(*each, strict=True), strict=True):
            np.testing.assert_array_equal(together, np.concatenate(alone))


def test_joined_rows_are_one_text_each():
    """As where rows are not packed: inputs are the targets moved by one, all but the first token
    and padding are learnt.
    """
    packed, packing = packed_rows([5, 4, 6], row_tokens=10)
    batch = PackedLoader(packed.joined(), batch_rows=packing.n_rows)[0]
    np.testing.assert_array_equal(
        batch.text[:, 1:][batch.mask[:, 1:]], batch.targets[:, :-1][batch.mask[:, 1:]]
    )
    assert batch.mask.sum(axis=1).tolist() == (reference.used(packing) - 1).tolist()
    assert (
        PackedLoader(packed.joined(), batch_rows=1).identity()
        != PackedLoader(packed, batch_rows=1).identity()
    )


def test_a_state_of_other_spans_is_refused():
    """The same rows, packed otherwise, are other data."""
    packed, _ = packed_rows([5, 4, 6], row_tokens=10)
    other = PackedRows(
        packed.rows, replace(packed.spans, document=packed.spans.document[::-1].copy())
    )
    state = json.loads(json.dumps(PackedLoader(packed, batch_rows=1).state_dict()))
    PackedLoader(packed, batch_rows=1).load_state_dict(state)
    with pytest.raises(BadInput, match="its data is"):
        PackedLoader(other, batch_rows=1).load_state_dict(state)


@pytest.fixture
def folder(tmp_path):
    """Packed rows in a folder, as a version has them."""
    packed, _ = packed_rows([5, 4, 6, 30, 2], row_tokens=16)
    write_grid(tmp_path / "train.zarr", packed.rows.read(slice(None), slice(None)))
    packed.spans.write(tmp_path, "train")
    return tmp_path


def test_rows_and_spans_are_opened_by_a_folder_and_by_a_url(folder):
    """The same batches; from a server only the spans' three files and the wanted chunks are
    read.
    """
    here, there = (
        PackedLoader(open_packed(path), batch_rows=2) for path in (folder, f"file://{folder}")
    )
    assert here.identity() == there.identity()
    for ours, theirs in zip(here[0], there[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert here[0].block_diagonal.shape == (2, 16, 16)


def spoil(folder: Path, name: str, change) -> None:
    path = folder / f"train_{name}.npy"
    write_npy(path, change(np.load(path)))


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("first_span", lambda first: first[:-1], CorruptFile, "rows have spans"),
        (
            "first_span",
            lambda first: np.concatenate([first[:1], first[:-1]]),
            CorruptFile,
            "rows have spans",
        ),
        ("span_stop", np.zeros_like, CorruptFile, "spans are empty, overlap"),
        ("span_stop", lambda stop: stop + 16, CorruptFile, "end behind token 16"),
        ("span_stop", lambda stop: stop.astype(np.int64), CorruptFile, "int64 of shape"),
        ("span_document", lambda document: document[:-1], CorruptFile, "have a document"),
        ("span_document", lambda document: document - 9, CorruptFile, "have no document"),
    ],
)
def test_invalid_spans_are_refused(folder, name, change, error, message):
    """Damage never becomes a mask."""
    spoil(folder, name, change)
    with pytest.raises(error, match=message):
        open_packed(folder)


def test_spans_of_other_rows_are_refused(folder):
    """More rows, or fewer, than there are spans of."""
    packed = open_packed(folder)
    with pytest.raises(Mismatch, match="4 rows, but spans of 3: they are of different versions"):
        PackedRows(NumberedRows(4, 16), packed.spans)


def test_rows_without_spans_are_no_packed_rows(folder):
    (folder / "train_span_stop.npy").unlink()
    with pytest.raises(
        NotPublished,
        match=r"train_span_stop.npy: is missing",
    ):
        open_packed(folder)
    with pytest.raises(BadInput, match="no split is called"):
        open_packed(folder, "validation")


def test_pyarrow_is_not_needed_to_train():
    """A training node reads arrays."""
    import subprocess
    import sys

    code = (
        "import sys, lc_assets.loaders.packed; print({'pyarrow', 'dagster', 'torch', 'numba'} "
        "& set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()
        == "set()"
    )


@pytest.mark.skipif(tensors.torch is not None, reason="torch is installed")
def test_without_torch_packed_rows_say_what_to_install(folder):
    with pytest.raises(BadInput, match=r"pip install 'lc-assets\[torch\]'"):
        tensors.to_device(PackedLoader(open_packed(folder), batch_rows=1), "cpu")


@pytest.mark.parametrize("context", [16, 4])
def test_tensors_are_what_the_batch_says(folder, context):
    """By the data set, by the stream, and computed on the device: the same values, kinds as
    attention takes them.
    """
    torch = pytest.importorskip("torch")
    loader = PackedLoader(open_packed(folder), batch_rows=2, context_tokens=context)
    kinds = {
        "text": torch.int64,
        "targets": torch.int64,
        "mask": torch.bool,
        "positions": None,
        "documents": torch.int32,
        "cu_seqlens": torch.int32,
    }
    made = list(tensors.to_device(loader, "cpu"))
    assert len(made) == len(loader)
    for step, on_device in enumerate(made):
        told = loader[step].arrays()
        for found in (tensors.StepDataset(loader)[step], on_device):
            assert found.keys() == told.keys()
            assert found["max_seqlen"] == told["max_seqlen"]
            for name, kind in kinds.items():
                assert kind is None or found[name].dtype == kind
                np.testing.assert_array_equal(found[name].numpy(), told[name])
    assert len(list(tensors.StepStream(loader))) == len(loader)
