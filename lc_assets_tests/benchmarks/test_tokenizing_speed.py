"""Filtered to tokens: a shard's table becomes token files, against tiktoken and ``tofile``. Run with ``-s`` to see the figures."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.formats.gpt2_tokenizer import build_gigatoken, gpt2_tokenizer
from lc_assets.stages import tokenizing
from lc_assets.stages.recipe import TokenizingSettings
from lc_assets.stages.tables import FILTERED, TableWriter
from lc_assets.stages.tokenizing import TokenizeTask, tokenize_shard
from lc_assets.tokens.tokenizers import GigatokenTokenizer
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

SETTINGS = TokenizingSettings()
N_DOCUMENTS, DOCUMENT_CHARS = 20, 400_000


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A filtered shard of 8 MB: long documents, from all over the source."""
    source = prose()[1]
    starts = np.linspace(0, len(source) - DOCUMENT_CHARS, N_DOCUMENTS).astype(int).tolist()
    path = tmp_path_factory.mktemp("filtered") / "0000-en_head.documents.parquet"
    writer = TableWriter(path, FILTERED)
    for line, start in enumerate(starts):
        text = source[start : start + DOCUMENT_CHARS]
        writer.add(dict.fromkeys(FILTERED.names, "") | {"id": f"2023-06/0000/en_head.json.gz/{line}", "raw_content": text})
    writer.close()
    return path


def plain(documents, path):
    """Every document through tiktoken, as a list of Python integers."""
    encoding = gpt2_tokenizer(fast=False)._encoding
    with path.open("wb") as out:
        for text in pq.read_table(documents)["raw_content"].to_pylist():
            ids = encoding.encode_ordinary(text)
            if len(ids) >= SETTINGS.min_tokens:
                np.array(ids, np.uint16).tofile(out)


def test_tokenizing_is_tiktokens_and_faster(documents, tmp_path, monkeypatch):
    """MB of UTF-8 per CPU-second, Parquet in, token files out, the twin's spot check included; words never seen before, and seen ones."""
    fresh = GigatokenTokenizer(build_gigatoken, name="gpt2", vocab_size=GPT2_VOCAB_SIZE, eot=GPT2_EOT)
    monkeypatch.setattr(tokenizing, "tokenizer_of", lambda _name, *, fast=True: fresh if fast else gpt2_tokenizer(fast=False))
    tasks = [TokenizeTask(documents=documents, folder=tmp_path / str(number), settings=SETTINGS) for number in range(4)]
    first, tally = cpu_seconds(lambda _: tokenize_shard(tasks[0]), rounds=1)
    again, _ = cpu_seconds(lambda number: tokenize_shard(tasks[number + 1]))
    slow, _ = cpu_seconds(lambda _: plain(documents, tmp_path / "plain.bin"), rounds=1)
    wanted = (tmp_path / "plain.bin").read_bytes()
    assert all((task.folder / "0000-en_head.bin").read_bytes() == wanted for task in tasks)
    assert tally.kept > 0
    assert tally.also["shards done by the twin"] == 0
    megabytes = sum(len(text.encode()) for text in pq.read_table(documents)["raw_content"].to_pylist()) / 1e6
    say(f"tokenize_shard ({prose()[0]})", megabytes, "MB", first, words_seen_before=again, Parquet_and_tiktoken=slow)
    assert first < slow
