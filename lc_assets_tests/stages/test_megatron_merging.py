"""Data sets merged: Megatron's bytes, whole documents, nothing merged that does not belong
together.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.formats.megatron import indexed as megatron
from lc_assets.formats.megatron.idx import idx_blocks
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.stages.megatron.megatron_merging import (
    Ids,
    data_sets_of,
    merge,
    read_receipt,
    write_receipt,
)
from lc_assets.tokens.dtypes import INT32, UINT16

GOLDEN = Path(__file__).parents[1] / "golden" / "megatron"
SOURCES = ["uint16", "empty_document", "sentences"]


def written(prefix, documents, dtype=UINT16):
    with MegatronWriter.publishing(prefix, dtype) as writer:
        for ids in documents:
            writer.add(np.array(ids))
    return prefix


def test_lengths_ids_and_boundaries_are_those_of_add_index(tmp_path, monkeypatch):
    """Documents of several sequences, and of none, as ``IndexedDatasetBuilder.add_index`` puts them
    together; in blocks of two ids.
    """
    monkeypatch.setattr(megatron, "COPIED_BYTES", 4)
    receipts = merge([GOLDEN / name for name in SOURCES], tmp_path / "all")
    parts = [MegatronReader(GOLDEN / name) for name in SOURCES]
    found = MegatronReader(tmp_path / "all")
    assert (tmp_path / "all.bin").read_bytes() == b"".join(
        (GOLDEN / f"{name}.bin").read_bytes() for name in SOURCES
    )
    assert found.lengths.tolist() == [length for part in parts for length in part.lengths.tolist()]
    boundaries = [0]
    for part in parts:  # add_index: document_indices.extend((offset + index.document_indices)[1:])
        offset = boundaries[-1]
        boundaries += (offset + part.document_indices)[1:].tolist()
    assert found.document_indices.tolist() == boundaries
    assert receipts[tmp_path / "all"].documents == sum(
        len(part.document_indices) - 1 for part in parts
    )


def test_a_data_set_alone_stays_what_it_is(tmp_path):
    for name in (*SOURCES, "int32"):
        merge([GOLDEN / name], tmp_path / name)
        for suffix in ("bin", "idx"):
            assert (tmp_path / f"{name}.{suffix}").read_bytes() == (
                GOLDEN / f"{name}.{suffix}"
            ).read_bytes()


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 30),
)
def test_results_of_a_chosen_size_hold_whole_documents_in_order(
    tmp_path_factory, sources, max_bytes
):
    """None is larger unless it is one document; each is as full as the next document allows."""
    folder = tmp_path_factory.mktemp("merge")
    prefixes = [
        written(folder / f"in{number}", documents) for number, documents in enumerate(sources)
    ]
    results = [
        MegatronReader(prefix) for prefix in merge(prefixes, folder / "out", max_bytes=max_bytes)
    ]
    assert [ids.tolist() for result in results for ids in result] == [
        ids for documents in sources for ids in documents
    ]
    sizes = [2 * result.n_tokens for result in results]
    assert all(
        size <= max_bytes or len(result) == 1 for size, result in zip(sizes, results, strict=True)
    )
    for size, after in zip(sizes, results[1:], strict=False):
        assert size + 2 * len(after[0]) > max_bytes
    assert [result.prefix.name for result in results] == [
        f"out-{number:05}" for number in range(len(results))
    ]


def test_what_has_no_tokens_in_front_gets_a_result_with_the_rest(tmp_path):
    """An empty document alone would be a data set that nobody can map."""
    (tmp_path / "a.bin").write_bytes(bytes(6))
    (tmp_path / "a.idx").write_bytes(
        b"".join(idx_blocks(np.array([3]), np.array([0, 0, 1]), UINT16))
    )
    (result,) = merge([tmp_path / "a"], tmp_path / "b", max_bytes=1000)
    assert MegatronReader(result).document_indices.tolist() == [0, 0, 1]


def test_other_dtypes_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(Mismatch, match="int32 holds ids of int32, .*uint16 of uint16"):
        merge([GOLDEN / "uint16", GOLDEN / "int32"], tmp_path / "all")
    assert not list(tmp_path.iterdir())


def test_a_damaged_source_is_found_before_anything_is_written(tmp_path):
    good, bad = written(tmp_path / "a", [[1]]), written(tmp_path / "b", [[2]])
    (tmp_path / "b.bin").write_bytes(b"\x00")
    with pytest.raises(CorruptFile, match=r"b.bin: 1 bytes, its .idx promises 2"):
        merge([good, bad], tmp_path / "out" / "all")
    assert not (tmp_path / "out").exists()


def ids_of(name, eod=None):
    return Ids(tokenizer=name, tokenizer_sha256=name, n_ids=10, eod=eod, dtype="uint16")


def test_ids_of_two_tokenizers_make_no_data_set(tmp_path):
    """Nor documents with ends and without; what only some receipts say, the result does not."""
    prefixes = [written(tmp_path / name, [[1, 2]]) for name in "abc"]
    write_receipt(prefixes[0], made_by="write", ids=ids_of("x"))
    assert merge(prefixes, tmp_path / "all")[tmp_path / "all"].ids is None
    for other in (ids_of("y"), ids_of("x", eod=2)):
        write_receipt(prefixes[1], made_by="write", ids=other)
        with pytest.raises(Mismatch, match="ids of two kinds make no data set"):
            merge(prefixes, tmp_path / "all")
    write_receipt(prefixes[1], made_by="write", ids=ids_of("x"))
    merge(prefixes[:2], tmp_path / "two")
    assert read_receipt(tmp_path / "two").ids == ids_of("x")


def test_results_do_not_write_over_sources(tmp_path):
    prefix = written(tmp_path / "a", [[1]])
    with pytest.raises(BadInput, match="is both a source and a result"):
        merge([prefix], tmp_path / "a")
    with pytest.raises(BadInput, match="max_bytes is at least 1"):
        merge([prefix], tmp_path / "b", max_bytes=0)
    with pytest.raises(BadInput, match="nothing to merge"):
        merge([], tmp_path / "b")


def test_data_sets_are_named_by_prefix_file_or_folder(tmp_path):
    """Those of a folder in the order of their names, as merge_datasets.py takes them."""
    for name in ("b", "a.x"):
        written(tmp_path / name, [[1]])
    assert data_sets_of([tmp_path]) == [tmp_path / "a.x", tmp_path / "b"]
    assert data_sets_of([tmp_path / "b.idx", tmp_path / "a.x"]) == [
        tmp_path / "b",
        tmp_path / "a.x",
    ]
    with pytest.raises(BadInput, match="is named twice"):
        data_sets_of([tmp_path, tmp_path / "b.bin"])
    with pytest.raises(BadInput, match=r"there is no c.idx"):
        data_sets_of([tmp_path / "c"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"has no .idx"):
        data_sets_of([tmp_path / "empty"])


def test_another_dtype_is_not_copied(tmp_path):
    """The writer's own word; `merge` looks before."""
    with (
        MegatronWriter.publishing(tmp_path / "a", INT32) as writer,
        pytest.raises(BadInput, match="ids are uint16"),
    ):
        writer.copy(MegatronReader(GOLDEN / "uint16"), 0, 1)
    with (
        MegatronWriter.publishing(tmp_path / "a", UINT16) as writer,
        pytest.raises(BadInput, match="has 3 documents; requested 1 to 4"),
    ):
        writer.copy(MegatronReader(GOLDEN / "uint16"), 1, 4)
