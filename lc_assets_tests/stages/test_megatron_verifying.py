"""Verifying: what is sound passes, and every kind of damage that a reader cannot see is named."""

import numpy as np
import pytest

from lc_assets.errors import CorruptFile
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.stages.megatron import megatron_verifying
from lc_assets.stages.megatron.megatron_merging import Ids, receipt_path, write_receipt
from lc_assets.stages.megatron.megatron_verifying import verify_data_set
from lc_assets.tokens.dtypes import INT32, UINT16

KNOWN = Ids(tokenizer="x", tokenizer_sha256="x", n_ids=100, eod=9, dtype="uint16")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that every walk over blocks is one over several."""
    monkeypatch.setattr(megatron_verifying, "BLOCK", 3)


def written(prefix, documents, dtype=UINT16, ids=None):
    with MegatronWriter.publishing(prefix, dtype) as writer:
        for document in documents:
            writer.add(np.array(document))
    if ids:
        write_receipt(prefix, made_by="write", ids=ids)
    return prefix


def test_what_is_sound_passes(tmp_path):
    found = verify_data_set(written(tmp_path / "a", [[1, 99, 3, 9], [5, 9]], ids=KNOWN))
    facts = dict(found.facts)
    assert (found.damage, found.warnings) == ([], [])
    assert facts["ids"] == "1 to 99, of a vocabulary of 100"
    assert facts["end of document 9"] == "behind 2 of 2 documents, 0 times inside"
    assert (facts["documents"], facts["tokens"], facts["receipt"]) == (2, 6, "by write, x")


def test_without_a_receipt_only_the_files_are_held_against_each_other(tmp_path):
    found = verify_data_set(written(tmp_path / "a", [[65_535]]))
    assert (found.damage, dict(found.facts)["receipt"]) == ([], "none beside it")


@pytest.mark.parametrize(
    ("documents", "dtype", "says"),
    [
        (
            [[1, 2], [3, 100, 5, 200, 7]],
            UINT16,
            "a.bin: 2 ids are outside the vocabulary, the first 100 in sequence 1; expected 0 to 99",
        ),
        (
            [[1], [2, 3, 4, -5]],
            INT32,
            "1 ids are outside the vocabulary, the first -5 in sequence 1",
        ),
    ],
)
def test_ids_outside_the_vocabulary_are_named(tmp_path, documents, dtype, says):
    (sentence,) = verify_data_set(written(tmp_path / "a", documents, dtype), n_ids=100).damage
    assert says in sentence


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([[1, 9], [2, 3]], ["end of document: 1 of 2 documents do not end with it"]),
        ([[1, 9, 2, 9], [9, 9]], ["end of document: 2 are inside documents"]),
        ([[9, 1]], ["1 of 1 documents do not end with it", "1 are inside documents"]),
    ],
)
def test_ends_of_documents_are_where_they_were_promised(tmp_path, documents, says):
    for expected, ids in (({"eod": 9, "appended": True}, None), ({}, KNOWN)):
        found = verify_data_set(written(tmp_path / "a", documents, ids=ids), **expected)
        assert len(found.damage) == len(says)
        assert all(said in sentence for said, sentence in zip(says, found.damage, strict=True))
    receipt_path(tmp_path / "a").unlink()
    assert verify_data_set(tmp_path / "a", eod=9).damage == []  # a fact, unless it was promised


def test_an_end_is_behind_a_document_not_behind_its_sentences(tmp_path):
    """Of documents of several sequences the last one ends with it."""
    with MegatronWriter.publishing(tmp_path / "a", UINT16) as writer:
        for lengths in ([2, 1, 2], [1], [1, 1]):
            sentences = [np.arange(1, length + 1) for length in lengths]
            sentences[-1] = np.append(sentences[-1], 9)
            writer.add_documents(sentences, [*map(len, sentences)], together=True)
    write_receipt(tmp_path / "a", made_by="write", ids=KNOWN)
    found = verify_data_set(tmp_path / "a")
    assert dict(found.facts)["end of document 9"] == "behind 3 of 3 documents, 0 times inside"
    assert not found.damage


def test_bytes_that_changed_since_are_named(tmp_path):
    """Even where both files are sound in themselves."""
    prefix = written(tmp_path / "a", [[1, 2, 9]], ids=KNOWN)
    written(prefix, [[1, 3, 9]])
    (sentence,) = verify_data_set(prefix).damage
    assert "a.bin: SHA-256 " in sentence
    assert "it changed since" in sentence
    written(prefix, [[1, 9], [3, 9]])
    assert len(verify_data_set(prefix).damage) == 3


def test_a_receipt_that_cannot_be_read_is_named(tmp_path):
    prefix = written(tmp_path / "a", [[1]])
    receipt_path(prefix).write_bytes(b"{")
    with pytest.raises(CorruptFile, match=r"a.receipt: not a readable"):
        verify_data_set(prefix)


def test_the_readers_trap_is_a_warning(tmp_path):
    found = verify_data_set(written(tmp_path / "a", [[1]], INT32), n_ids=100)
    assert found.damage == []
    assert "--per-dataset-sequences-path" in found.warnings[0]
