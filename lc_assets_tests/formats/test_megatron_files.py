"""Megatron's files: the real ones are read, ours are the same bytes, and damage is found and
named.
"""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.formats.megatron import idx as megatron_idx
from lc_assets.formats.megatron.idx import (
    DTYPES,
    bin_path,
    files_of,
    idx_blocks,
    idx_path,
    parse_idx,
)
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.tokens.dtypes import INT32, UINT16

GOLDEN = Path(__file__).parents[1] / "golden" / "megatron"
DOCUMENTS = [[12, 5, 7], [4, 21, 65_499, 0, 1], [3]]


def idx_bytes(lengths, boundaries, dtype):
    """A whole ``.idx``."""
    return b"".join(idx_blocks(lengths, boundaries, dtype))


def written(prefix, documents, dtype=UINT16):
    """Write documents and give their prefix back."""
    writer = MegatronWriter(bin_path(prefix), dtype)
    for ids in documents:
        writer.add(np.array(ids))
    writer.finish(idx_path(prefix))
    return prefix


@pytest.mark.parametrize(("name", "dtype"), [("uint16", UINT16), ("int32", INT32)])
def test_our_files_are_megatrons_byte_for_byte(tmp_path, name, dtype):
    """Both of them, for both dtypes."""
    prefix = written(tmp_path / name, DOCUMENTS, dtype)
    for path in (bin_path(prefix), idx_path(prefix)):
        assert path.read_bytes() == (GOLDEN / path.name).read_bytes()


def test_an_index_small_enough_to_read():
    """Every field by hand; the second number is documents plus one."""
    golden = (
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, 8, 2, 3)
        + struct.pack("<2i", 3, 5)
        + struct.pack("<2q", 0, 6)
    )
    assert idx_bytes(np.array([3, 5]), np.arange(3), UINT16) == golden + struct.pack("<3q", 0, 1, 2)


@pytest.mark.parametrize("name", ["uint16", "int32", "empty_document", "sentences"])
def test_megatrons_indices_come_out_of_ours_again(name):
    """Parsing and writing is the identity, also with empty documents and documents of several
    sequences.
    """
    content = (GOLDEN / f"{name}.idx").read_bytes()
    index = parse_idx(content, name)
    assert idx_bytes(index.lengths, index.document_boundaries, index.dtype) == content


def test_megatrons_data_sets_are_read():
    """The documents that were given to the real program."""
    for name in ("uint16", "int32"):
        assert [ids.tolist() for ids in MegatronReader(GOLDEN / name)] == DOCUMENTS


def test_an_empty_document_is_only_a_boundary():
    """Megatron repeats the boundary and writes no sequence."""
    reader = MegatronReader(GOLDEN / "empty_document")
    assert reader.index.document_boundaries.tolist() == [0, 1, 1, 2]
    assert [ids.tolist() for ids in reader] == DOCUMENTS[:2]


def test_documents_of_several_sequences_are_read_by_sequence():
    """As Megatron's GPT data set does."""
    reader = MegatronReader(GOLDEN / "sentences")
    assert reader.index.document_boundaries.tolist() == [0, 3, 4]
    assert [ids.tolist() for ids in reader] == [[4, 21], [65_499, 0], [1], [12, 5, 7]]


@given(
    st.lists(st.lists(st.integers(0, 127), min_size=1, max_size=5), min_size=1, max_size=6),
    st.sampled_from(sorted(DTYPES)),
    st.data(),
)
def test_what_is_written_is_read(tmp_path_factory, documents, code, data):
    """Documents, parts of them, lengths, for every dtype."""
    prefix = written(tmp_path_factory.mktemp("data") / "some.name", documents, DTYPES[code])
    reader = MegatronReader(prefix)
    assert (len(reader), reader.n_tokens, reader.dtype) == (
        len(documents),
        sum(map(len, documents)),
        DTYPES[code],
    )
    assert reader.lengths.tolist() == [len(ids) for ids in documents]
    assert [ids.tolist() for ids in reader] == documents
    document = data.draw(st.integers(0, len(documents) - 1))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(documents[document]))] * 2)))
    assert reader.read(document, start, stop).tolist() == documents[document][start:stop]


def test_what_was_read_stays_valid_and_cannot_be_changed(tmp_path):
    """Megatron's own arrays crash the process once the data set is gone."""
    ids = MegatronReader(written(tmp_path / "a", DOCUMENTS))[1]
    assert ids.tolist() == DOCUMENTS[1]
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1


@pytest.mark.parametrize("document", [-1, 3])
def test_there_is_no_such_document(tmp_path, document):
    """Counted from 0, not from the end."""
    with pytest.raises(BadInput, match="it has 3, counted from 0"):
        MegatronReader(written(tmp_path / "a", DOCUMENTS))[document]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 4)])
def test_a_document_has_no_such_tokens(tmp_path, start, stop):
    """Neither before its beginning nor into its neighbour."""
    with pytest.raises(BadInput, match="document 0 has 3 tokens"):
        MegatronReader(written(tmp_path / "a", DOCUMENTS)).read(0, start, stop)


def test_an_id_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path):
    """Megatron would write 0 for 65,536."""
    writer = MegatronWriter(tmp_path / "a.bin", UINT16)
    writer.add(np.array([1]))
    with pytest.raises(Mismatch, match="65,536"):
        writer.add(np.array([65_536]))
    writer.finish(tmp_path / "a.idx")
    assert [ids.tolist() for ids in MegatronReader(tmp_path / "a")] == [[1]]


@pytest.mark.parametrize("ids", [np.zeros(0, np.uint16), np.zeros((1, 2), np.uint16)])
def test_only_rows_of_ids_are_documents(tmp_path, ids):
    """An empty document would be a boundary that nobody reads."""
    with (
        MegatronWriter.publishing(tmp_path / "a", UINT16) as writer,
        pytest.raises(BadInput, match=r"document 0 has shape \("),
    ):
        writer.add(ids)


def test_several_documents_at_once_are_the_same_files(tmp_path):
    """Where a part ends means nothing."""
    with MegatronWriter.publishing(tmp_path / "a", UINT16) as writer:
        writer.add_documents([], [])
        writer.add_documents(
            [np.array([12, 5]), np.array([7, 4, 21]), np.array([65_499, 0, 1], np.uint32)], [3, 5]
        )
        writer.add(np.array([3]))
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (GOLDEN / f"uint16{suffix}").read_bytes()


@pytest.mark.parametrize("lengths", [[1], [4], [3, 0], [4, -1]])
def test_lengths_that_do_not_add_up_are_refused_and_nothing_is_written(tmp_path, lengths):
    with MegatronWriter.publishing(tmp_path / "a", UINT16) as writer:
        with pytest.raises(BadInput, match="in 3 ids"):
            writer.add_documents([np.array([1, 2, 3])], lengths)
        assert writer.n_tokens == 0


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize("name", ["uint16", "empty_document", "sentences"])
def test_an_index_is_the_same_in_blocks_of_any_size(monkeypatch, block, name):
    """Also what is found wrong in it."""
    monkeypatch.setattr(megatron_idx, "BLOCK", block)
    content = (GOLDEN / f"{name}.idx").read_bytes()
    index = parse_idx(content, name)
    assert b"".join(idx_blocks(index.lengths, index.document_boundaries, index.dtype)) == content
    at = 34 + 12 * len(index.lengths) - 8
    with pytest.raises(
        CorruptFile, match=f"sequence {len(index.lengths) - 1} is said to begin at byte 77"
    ):
        parse_idx(content[:at] + struct.pack("<q", 77) + content[at + 8 :], name)
    if len(index.document_boundaries) > 3:
        at = len(content) - 16
        with pytest.raises(CorruptFile, match="document boundaries fall"):
            parse_idx(content[:at] + struct.pack("<q", 9) + content[at + 8 :], name)


def test_megatrons_answers(tmp_path):
    """``IndexedDataset``: by number, by slice, by offset and length; where it would read on into a
    neighbour, ours refuses.
    """
    data = MegatronReader(GOLDEN / "sentences")
    assert data.sequence_lengths.tolist() == [2, 2, 1, 3]
    assert data.document_indices.tolist() == [0, 3, 4]
    assert [ids.tolist() for ids in data[1:3]] == [[65_499, 0], [1]]
    assert (
        data.get(3).tolist(),
        data.get(3, 1).tolist(),
        data.get(3, offset=1, length=1).tolist(),
    ) == ([12, 5, 7], [5, 7], [5])
    for wrong in ((0, 1, 2), (0, 3), (0, -1), (0, 1, -1), (4,)):
        with pytest.raises(BadInput):
            data.get(*wrong)


def test_an_empty_data_set_is_refused(tmp_path):
    """Megatron cannot map it."""
    with pytest.raises(BadInput, match="leave the data set out"):
        MegatronWriter(tmp_path / "a.bin", UINT16).finish(tmp_path / "a.idx")
    assert not (tmp_path / "a.idx").exists()


def test_a_dtype_megatron_does_not_have_is_refused(tmp_path):
    """Before a file is created."""
    with pytest.raises(BadInput, match="no token dtype uint32"):
        MegatronWriter(tmp_path / "a.bin", np.dtype("u4"))
    assert not list(tmp_path.iterdir())


def test_publishing_puts_all_files_in_their_places(tmp_path):
    """And no draft is left beside them; the folder is made."""
    with MegatronWriter.publishing(tmp_path / "new" / "a.b", UINT16) as writer:
        writer.add(np.array([1, 2]))
        assert (writer.n_documents, writer.n_tokens) == (1, 2)
        assert not (tmp_path / "new" / "a.b.bin").exists()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "a.b.bin",
        "a.b.bin.crc32",
        "a.b.idx",
    ]
    assert MegatronReader(tmp_path / "new" / "a.b")[0].tolist() == [1, 2]


def test_a_failure_while_publishing_leaves_what_was_there(tmp_path):
    """The old data set stands, and no draft is left."""
    written(tmp_path / "a", DOCUMENTS)
    with pytest.raises(Mismatch), MegatronWriter.publishing(tmp_path / "a", UINT16) as writer:
        _ = [writer.add(np.array([token])) for token in (1, 70_000)]
    assert [ids.tolist() for ids in MegatronReader(tmp_path / "a")] == DOCUMENTS
    assert sorted(tmp_path.iterdir()) == sorted(files_of(tmp_path / "a"))


def test_publishing_nothing_leaves_no_file(tmp_path):
    """A shard of which no document was kept."""
    with MegatronWriter.publishing(tmp_path / "a", UINT16):
        pass
    assert not list(tmp_path.iterdir())


SOUND = idx_bytes(np.array([3, 5]), np.arange(3), UINT16)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"PK\x03\x04" + bytes(40), r"not a Megatron index: starts with b'PK\\x03\\x04"),
        (SOUND[:20], "not a Megatron index"),
        (SOUND[:9] + b"\x02" + SOUND[10:], "version 2, expected 1"),
        (SOUND[:17] + b"\x07" + SOUND[18:], "dtype code 7, expected one of 1, 2, 3, 4, 5, 8"),
        (SOUND[:-1], r"header promises 82 bytes \(2 sequences, 3 boundaries\), file has 81"),
        (SOUND + bytes(2), "multimodal"),
        (
            SOUND[:18] + b"\xff" * 8 + SOUND[26:],
            "header promises 221,360,928,884,514,619,438 bytes",
        ),
        (SOUND[:34] + b"\xff\xff\xff\xff" + SOUND[38:], "sequence lengths from -1 to 5"),
        (SOUND[:50] + b"\x08" + SOUND[51:], "sequence 1 is said to begin at byte 8"),
        (
            SOUND[:42] + struct.pack("<2q", 0, -(2**31)) + SOUND[58:],
            "byte -2,147,483,648, its predecessors end at 6: negative, as Megatron",
        ),
        (SOUND[:17] + b"\x09" + SOUND[18:], "dtype code 9"),
        (SOUND[:-8] + struct.pack("<q", 3), "document boundaries are 0 to 3, expected 0 to 2"),
        (SOUND[:-16] + struct.pack("<2q", 5, 2), "document boundaries fall"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 0, 0), "document boundaries are absent"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage_is_named(content, problem):
    """Where, what was found, what was expected."""
    with pytest.raises(CorruptFile, match=f"^here: .*{problem}"):
        parse_idx(content, "here")


def test_an_index_that_cannot_be_meant_is_not_written():
    """The same promises on the way out."""
    with pytest.raises(BadInput, match="document boundaries are 0 to 2, expected 0 to 1"):
        idx_bytes(np.array([3]), np.arange(3), UINT16)
    with pytest.raises(BadInput, match="sequence lengths"):
        idx_bytes(np.array([2**31]), np.arange(2), UINT16)


def test_offsets_do_not_wrap():
    """Two sequences of 2³¹ - 1 tokens: the second begins beyond what an int32 holds."""
    content = idx_bytes(np.array([2**31 - 1, 2**31 - 1, 1], np.int32), np.arange(4), INT32)
    assert parse_idx(content, "big").byte_offsets.tolist() == [0, 4 * (2**31 - 1), 8 * (2**31 - 1)]
    assert parse_idx(content, "big").n_tokens == 2**32 - 1


@given(st.integers(0, len(SOUND) - 1), st.integers(1, 255))
def test_a_changed_byte_never_moves_a_token(tmp_path_factory, at, change):
    """A reader finds it, or reads the ids that were written; the dtype code alone can lie about ids
    of equal width.
    """
    prefix = written(tmp_path_factory.mktemp("data") / "a", [[1, 2, 3], [4, 5, 6, 7, 8]])
    content = bytearray(idx_path(prefix).read_bytes())
    content[at] ^= change
    idx_path(prefix).write_bytes(content)
    try:
        found = [ids.tolist() for ids in MegatronReader(prefix)]
    except CorruptFile:
        return
    assert found == [[1, 2, 3], [4, 5, 6, 7, 8]]


def test_a_bin_of_another_size_is_found(tmp_path):
    """Megatron would read past its end, or leave ids unread."""
    prefix = written(tmp_path / "a", DOCUMENTS)
    with bin_path(prefix).open("ab") as stream:
        stream.write(b"\x00")
    with pytest.raises(
        CorruptFile, match=r"a.bin: 19 bytes, its .idx promises 18 \(9 ids of uint16\)"
    ):
        MegatronReader(prefix)


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_a_missing_or_empty_file_is_named(tmp_path, suffix):
    """Either of the two."""
    path = bin_path(written(tmp_path / "a", DOCUMENTS)).with_suffix(f".{suffix}")
    path.write_bytes(b"")
    with pytest.raises(CorruptFile, match=f"a.{suffix}: is empty"):
        MegatronReader(tmp_path / "a")
    path.unlink()
    with pytest.raises(CorruptFile, match=f"a.{suffix}: is missing"):
        MegatronReader(tmp_path / "a")
