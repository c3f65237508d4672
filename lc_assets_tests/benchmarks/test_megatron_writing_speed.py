"""The ``.idx`` alone, and merging, against doing it row by row. Run with
``-s`` to see the figures.
"""

import json
import tracemalloc

import numpy as np
import pytest

from lc_assets.formats.megatron.idx import idx_blocks
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.megatron.megatron_merging import merge
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.preprocess_data import preprocess, write_index

DOCUMENT_CHARS, CORPUS_CHARS = 4_000, 16_000_000
N_SEQUENCES = 5_000_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """JSON lines of pages."""
    text = prose()[1]
    text *= -(-CORPUS_CHARS // len(text)) if prose()[0] != "books" else 1
    path = tmp_path_factory.mktemp("corpus") / "a.jsonl"
    pages = (
        text[start : start + DOCUMENT_CHARS]
        for start in range(0, min(len(text), CORPUS_CHARS), DOCUMENT_CHARS)
    )
    path.write_text(
        "".join(json.dumps({"text": page}, ensure_ascii=False) + "\n" for page in pages), "utf-8"
    )
    return path


def test_an_index_of_millions_of_documents_takes_little(tmp_path):
    """CPU seconds and memory beside the lengths; ours against a loop over Python's numbers."""
    lengths = np.random.default_rng(0).integers(1, 2000, N_SEQUENCES).astype(np.int32)

    def ours(_):
        with (tmp_path / "ours").open("wb") as out:
            out.writelines(idx_blocks(lengths, range(len(lengths) + 1), np.dtype("<u2")))

    def theirs(_):
        with (tmp_path / "theirs").open("wb") as out:
            write_index(out, lengths.tolist(), np.uint16)

    mine, _ = cpu_seconds(ours)
    slow, _ = cpu_seconds(theirs, rounds=1)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    peak = peak_bytes(ours)
    say(
        f".idx of {N_SEQUENCES:,} documents in {mine:.2f} s and {peak / 1e6:.0f} MB",
        N_SEQUENCES / 1e6,
        "M documents",
        mine,
        loop=slow,
    )
    assert 4 * mine < slow
    assert peak < 20e6


def peak_bytes(work):
    tracemalloc.start()
    try:
        work(0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_merging_is_a_copy(tmp_path, corpus):
    """MB of ids per CPU-second, digests included, against reading and writing the bytes alone;
    memory is a block.
    """
    encode = gpt2_tokenizer(fast=False)._encoding.encode_ordinary
    preprocess(corpus, tmp_path / "a", encode, eod=GPT2_EOT)
    names = [f"copy{number}" for number in range(6)]
    for name in names:
        for suffix in ("bin", "idx"):
            (tmp_path / f"{name}.{suffix}").write_bytes((tmp_path / f"a.{suffix}").read_bytes())
    n_bytes = len(names) * (tmp_path / "a.bin").stat().st_size

    def plain(number):
        with (tmp_path / f"plain{number}").open("wb") as out:
            for name in names:
                out.write((tmp_path / f"{name}.bin").read_bytes())

    mine, _ = cpu_seconds(
        lambda number: merge([tmp_path / name for name in names], tmp_path / f"all{number}")
    )
    theirs, _ = cpu_seconds(plain)
    assert (tmp_path / "all0.bin").read_bytes() == (tmp_path / "plain0").read_bytes()
    peak = peak_bytes(lambda _: merge([tmp_path / name for name in names], tmp_path / "again"))
    say(f"merging, {peak / 1e6:.0f} MB of memory", n_bytes / 1e6, "MB", mine, bytes_copied=theirs)
    assert peak < 20e6
