"""Data sets of pieces of one length each: every token accounted for."""

import numpy as np
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.stages.megatron import megatron_merging
from lc_assets.stages.megatron.megatron_merging import Ids, decompose, read_receipt, write_receipt

LENGTHS = (5, 64, 1, 100, 33, 31, 257, 2)


@pytest.fixture
def data(tmp_path):
    """Documents whose ids are unique, so that a token can be followed."""
    prefix = tmp_path / "data"
    ids = np.arange(sum(LENGTHS), dtype=np.uint16)
    with MegatronWriter.publishing(prefix, np.dtype(np.uint16)) as writer:
        for end, length in zip(np.cumsum(LENGTHS).tolist(), LENGTHS, strict=True):
            writer.add(ids[end - length : end])
    return prefix


@pytest.mark.parametrize(("seed", "block"), [(None, 1 << 22), (None, 40), (3, 1 << 22), (3, 1)])
def test_pieces_are_of_one_length_each_and_within_documents(
    data, tmp_path, monkeypatch, seed, block
):
    """Each token is in one piece or left over; pieces of a document follow one another."""
    monkeypatch.setattr(megatron_merging, "BLOCK_IDS", block)
    counts = decompose(data, tmp_path / "out", shortest=4, longest=64, seed=seed)
    assert counts.seen == sum(LENGTHS)
    assert counts.dropped == {"left over": sum(length % 4 for length in LENGTHS)}
    ends = np.cumsum(LENGTHS)
    found = []
    for length in (4, 8, 16, 32, 64):
        reader = MegatronReader(tmp_path / f"out/tokens-{length:05}")
        assert set(reader.lengths.tolist()) == {length}
        assert counts.extra[f"pieces of {length}"] == len(reader)
        for piece in reader:
            assert np.array_equal(piece, np.arange(piece[0], piece[0] + length))
            assert np.searchsorted(ends, piece[0], side="right") == np.searchsorted(
                ends, piece[-1], side="right"
            )
            found += piece.tolist()
    assert len(found) == len(set(found)) == counts.kept


def test_blocks_do_not_matter(data, tmp_path, monkeypatch):
    """Nor, where the order is drawn, for which document is drawn what."""
    decompose(data, tmp_path / "one", shortest=1, longest=32, seed=5)
    monkeypatch.setattr(megatron_merging, "BLOCK_IDS", 7)
    decompose(data, tmp_path / "two", shortest=1, longest=32, seed=5)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [(tmp_path / "one" / name).read_bytes() for name in names] == [
        (tmp_path / "two" / name).read_bytes() for name in names
    ]


def test_what_the_ids_mean_is_handed_on_where_it_still_holds(data, tmp_path):
    """Documents that end with an end of document give pieces of which most do not."""
    ids = Ids(tokenizer="gpt2", tokenizer_sha256="0", n_ids=50257, eod=None, dtype="uint16")
    write_receipt(data, made_by="write", ids=ids)
    decompose(data, tmp_path / "out", shortest=4, longest=8)
    assert read_receipt(tmp_path / "out/tokens-00008").ids == ids
    write_receipt(
        data,
        made_by="write",
        ids=Ids(tokenizer="gpt2", tokenizer_sha256="0", n_ids=50257, eod=50256, dtype="uint16"),
    )
    decompose(data, tmp_path / "again", shortest=4, longest=8)
    assert read_receipt(tmp_path / "again/tokens-00008").ids is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shortest": 3}, "a power of two"),
        ({"longest": 0}, "a power of two"),
        ({"shortest": 16, "longest": 8}, "shortest"),
        ({}, "already"),
    ],
)
def test_what_cannot_be_meant_is_refused(data, tmp_path, given, said):
    decompose(data, tmp_path / "out", shortest=4, longest=8)
    with pytest.raises(BadInput, match=said):
        decompose(data, tmp_path / "out", **{"shortest": 4, "longest": 8, **given})
