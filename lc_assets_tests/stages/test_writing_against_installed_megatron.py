"""The same bytes and the same answers as the real megatron-core, where it is installed;
``golden/megatron/README.md`` says how.
"""

import json

import numpy as np
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.megatron.megatron_merging import merge
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.stages.test_tokenizing_files import tokenize

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("ignore")]
WORDS = ["the", "times", "naïve", "你好", "<|endoftext|>", "\n\n", "  ", "x1", "🙂", "\u0301"]
N_CORPORA = 60


@pytest.fixture(scope="module")
def real():
    """Megatron's module; its wheel comes without torch."""
    pytest.importorskip("torch", reason="torch is not installed")
    return pytest.importorskip(
        "megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed"
    )


def random_corpus(rng, path):
    texts = [
        " ".join(rng.choice(WORDS, rng.integers(1, 60)).tolist())
        for _ in range(rng.integers(1, 12))
    ]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    return texts


def built(real, prefix, documents, dtype):
    """As ``preprocess_data.py`` calls the builder."""
    import torch

    builder = real.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
    for ids in documents:
        builder.add_document(torch.tensor(ids, dtype=torch.int64), [len(ids)])
    builder.finalize(f"{prefix}.idx")


def same_files(one, other):
    return all(
        one.with_name(one.name + end).read_bytes() == other.with_name(other.name + end).read_bytes()
        for end in (".bin", ".idx")
    )


def test_what_is_written_and_merged_is_the_builders(real, tmp_path):
    """Random corpora, with and without ends, both dtypes, one file or two; then merged by
    Megatron's ``add_index`` and by us.
    """
    rng = np.random.default_rng(5)
    encode = gpt2_tokenizer(fast=False)._encoding.encode_ordinary
    for number in range(N_CORPORA):
        folder = tmp_path / str(number)
        folder.mkdir()
        eod, dtype = bool(rng.integers(0, 2)), ["uint16", "int32"][rng.integers(0, 2)]
        prefixes = []
        for name in "ab":
            texts = random_corpus(rng, folder / f"{name}.jsonl")
            wanted = [encode(text) + [GPT2_EOT] * eod for text in texts]
            built(real, folder / f"{name}-theirs", wanted, np.dtype(dtype).type)
            source = folder / f"{name}.jsonl"
            ours, _ = tokenize(source, folder / f"{name}-lake", append_eod=eod, dtype=dtype)
            assert same_files(ours / name, folder / f"{name}-theirs")
            prefixes.append(ours / name)
        builder = real.IndexedDatasetBuilder(str(folder / "theirs.bin"), dtype=np.dtype(dtype).type)
        for prefix in prefixes:
            builder.add_index(str(prefix))
        builder.finalize(str(folder / "theirs.idx"))
        merge(prefixes, folder / "ours")
        assert same_files(folder / "ours", folder / "theirs")
        same_answers(real, folder / "ours", rng)


def same_answers(real, prefix, rng):
    """Lengths, boundaries, documents by number, slice, offset and length."""
    theirs, ours = real.IndexedDataset(str(prefix)), MegatronReader(prefix)
    assert len(theirs) == len(ours)
    np.testing.assert_array_equal(
        np.array(theirs.sequence_lengths), ours.sequence_lengths, strict=True
    )
    np.testing.assert_array_equal(
        np.array(theirs.document_indices), ours.document_indices, strict=True
    )
    np.testing.assert_array_equal(
        np.array(theirs.index.sequence_pointers), ours.index.byte_offsets, strict=True
    )
    for document in range(len(ours)):
        length = int(ours.lengths[document])
        np.testing.assert_array_equal(np.array(theirs[document]), ours[document], strict=True)
        offset = int(rng.integers(0, length))
        np.testing.assert_array_equal(
            np.array(theirs.get(document, offset)), ours.get(document, offset), strict=True
        )
        n_ids = int(rng.integers(1, length - offset + 1))
        np.testing.assert_array_equal(
            np.array(theirs.get(document, offset, n_ids)),
            ours.get(document, offset, n_ids),
            strict=True,
        )
        with pytest.raises(BadInput):
            ours.get(document, offset, length - offset + 1)
    start, stop = sorted(rng.integers(0, len(ours) + 1, 2).tolist())
    if start < stop:
        for theirs_one, ours_one in zip(theirs[start:stop], ours[start:stop], strict=True):
            np.testing.assert_array_equal(np.array(theirs_one), ours_one, strict=True)
