"""Rows are gathered from token shards as one would do it by hand, and read back in groups without
losing sight of any.
"""

import contextlib
import itertools
import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.megatron import stretches
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.megatron.stretches import gather
from lc_assets.stages.rows.row_plans import gather_columns, gather_rows
from lc_assets.stages.rows.token_grid import _wrong_rows
from lc_assets.vocabulary import GPT2_VOCAB_SIZE
from lc_assets_tests.grid_builders import write_grid

ROW_TOKENS = 6


def write_shards(
    folder: Path, n_shards: int, n_documents: int
) -> dict[tuple[str, int], np.ndarray]:
    """Token shards of documents that are all different; by shard and document."""
    drawn = np.random.default_rng(3).integers(
        0, GPT2_VOCAB_SIZE, (n_shards, n_documents, ROW_TOKENS + 3), np.uint16
    )
    for number, documents in enumerate(drawn):
        with MegatronWriter.publishing(folder / f"s{number}", np.dtype(np.uint16)) as writer:
            for ids in documents:
                writer.add(ids)
    return {
        (f"s{number}", document): ids
        for number, documents in enumerate(drawn)
        for document, ids in enumerate(documents)
    }


def plan_of(places: list[tuple[str, int]], shifts: list[int]) -> pa.Table:
    return pa.table(
        {
            "token_shard": [shard for shard, _ in places],
            "document": [document for _, document in places],
            "stretch": [0] * len(places),
            "shift": shifts,
        }
    )


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A folder of three shards, and what is in it."""
    folder = tmp_path_factory.mktemp("tokens")
    return folder, write_shards(folder, 3, 4)


@given(st.data())
def test_gathering_is_stacking_and_rolling(tokens, data):
    """Whatever the order of the plan and its shifts."""
    folder, documents = tokens
    places = data.draw(st.lists(st.sampled_from(sorted(documents)), min_size=1, max_size=10))
    shifts = data.draw(
        st.lists(st.integers(0, ROW_TOKENS - 1), min_size=len(places), max_size=len(places))
    )
    slow = [
        np.roll(documents[place][:ROW_TOKENS], shift)
        for place, shift in zip(places, shifts, strict=True)
    ]
    plan = plan_of(places, shifts)
    np.testing.assert_array_equal(
        gather_rows(plan, folder, row_tokens=ROW_TOKENS, n_ids=GPT2_VOCAB_SIZE, shifts=shifts),
        np.stack(slow),
    )
    first = data.draw(st.integers(0, ROW_TOKENS - 1))
    columns = range(first, data.draw(st.integers(first + 1, ROW_TOKENS)))
    np.testing.assert_array_equal(
        gather_columns(plan, folder, columns, row_tokens=ROW_TOKENS, n_ids=GPT2_VOCAB_SIZE),
        np.stack(slow)[:, columns.start : columns.stop],
    )
    unrolled = np.stack([documents[place][:ROW_TOKENS] for place in places])
    np.testing.assert_array_equal(
        gather_rows(plan, folder, row_tokens=ROW_TOKENS, n_ids=GPT2_VOCAB_SIZE), unrolled
    )


@pytest.mark.parametrize("stored", [np.int32, np.uint16])
@pytest.mark.parametrize("wanted", [np.uint16, np.uint32])
def test_ids_may_be_stored_in_more_bytes_or_fewer(tmp_path, stored, wanted):
    """Megatron's are int32 from 65,500 ids on, a grid's uint32 from 65,536 on."""
    with MegatronWriter.publishing(tmp_path / "s0", np.dtype(stored)) as writer:
        writer.add(np.arange(65_000, 65_009))
    parts = [np.zeros(n, wanted) for n in (2, 3)]
    gather(tmp_path, pa.chunked_array([["s0"]]), np.array([0]), np.array([4]), lambda _: parts)
    assert np.concatenate(parts).tolist() == [*range(65_004, 65_009)]


def test_what_a_document_has_not_is_refused(tokens, tmp_path, monkeypatch):
    """No such document, a stretch beyond its end, a file that was cut off meanwhile: never the
    tokens of a neighbour.
    """
    folder, _ = tokens
    room = np.empty(ROW_TOKENS, np.uint16)
    for document, start in ((4, 0), (-1, 0), (0, 4), (0, -1)):
        with pytest.raises(BadInput, match=f"document {document}"):
            stretch_of(folder, document, start, room)
    monkeypatch.setattr(stretches, "bin_path", cut_off)
    for document, error in (
        (0, contextlib.nullcontext()),
        (1, pytest.raises(CorruptFile, match="ends within document 1: it was cut off")),
    ):
        for name in ("s0.bin", "s0.idx"):
            shutil.copy(folder / name, tmp_path / name)
        with error:
            stretch_of(tmp_path, document, 0, room)


def stretch_of(folder, document, start, room):
    gather(
        folder,
        pa.chunked_array([["s0"]]),
        np.array([document]),
        np.array([start]),
        lambda _: [room],
    )


def cut_off(prefix):
    """Truncate a file after it was mapped and before it is read."""
    os.truncate(bin_path(prefix), 20)
    return bin_path(prefix)


def test_a_band_may_come_from_more_shards_than_files_may_be_open(tmp_path):
    """A snapshot has ten thousand shards, and a process may usually hold 1,024 files."""
    documents = write_shards(tmp_path, 60, 1)
    plan = plan_of(sorted(documents), [0] * len(documents))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    free = (number for number in itertools.count() if number not in in_use)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, 20, None)), hard))
        rows = gather_rows(plan, tmp_path, row_tokens=ROW_TOKENS, n_ids=GPT2_VOCAB_SIZE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    np.testing.assert_array_equal(
        rows, [documents[place][:ROW_TOKENS] for place in sorted(documents)]
    )


def test_reading_back_names_exactly_the_rows_that_are_wrong(tokens, tmp_path):
    """The first, one in between and the last of a group that is read at once; their neighbours are
    not blamed. Of chunks of one column, one is compared.
    """
    folder, documents = tokens
    places, shifts = sorted(documents), [number % ROW_TOKENS for number in range(12)]
    rows = gather_rows(
        plan_of(places, shifts), folder, row_tokens=ROW_TOKENS, n_ids=GPT2_VOCAB_SIZE, shifts=shifts
    )
    for row, column in ((2, 0), (5, 3), (11, 5)):
        rows[row, column] ^= 1
    whole = write_grid(tmp_path / "whole.zarr", rows)
    in_columns = write_grid(tmp_path / "columns.zarr", rows, inner_tokens=1)
    for rows, array, number, wrong in (
        ([2, 4, 5, 11], whole, 3, [2, 5, 11]),
        ([0, 1, 3], whole, 0, []),
        ([5], whole, 0, [5]),
        ([2, 4, 5, 11], in_columns, 3, [5]),
        ([2, 4, 5, 11], in_columns, 6, [2]),
    ):
        plan = plan_of([places[row] for row in rows], [shifts[row] for row in rows])
        assert _wrong_rows(array, folder, (number, rows, plan)) == wrong
