"""The ids of a shard are the reference tokenizer's, whatever the fast tokenizer does."""

from pathlib import Path

import numpy as np
import pytest

from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import FILTERED
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.tokens import tokenizing
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import TokenizeTask

TEXTS = [
    "Call me Ishmael. Some years ago, never mind how long precisely.",
    "It was the best of times, it was the worst of times.",
]


class WrongTokenizer:
    """A tokenizer whose ids are one too high in texts that contain a word."""

    def __init__(self, word: str) -> None:
        self.word, self._right = word, gpt2_tokenizer(fast=False)
        self.vocab_size, self.eot = self._right.vocab_size, self._right.eot

    def encode(self, text: str | bytes) -> np.ndarray:
        text = text if isinstance(text, str) else text.decode()
        return self._right.encode(text) + np.uint16(self.word in text)


@pytest.fixture
def shard(tmp_path) -> TokenizeTask:
    path = tmp_path / "0000-en_head.documents.parquet"
    writer = TableWriter(path, FILTERED)
    for line, text in enumerate(TEXTS):
        writer.add(
            dict.fromkeys(FILTERED.names, "")
            | {"id": f"2023-06/0000/en_head.json.gz/{line}", "raw_content": text}
        )
    writer.close()
    return TokenizeTask(
        documents=path, folder=tmp_path / "tokens", settings=TokenizingSettings(min_tokens=5)
    )


def content(folder: Path) -> dict[str, bytes]:
    """Every published file except the scratch folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("word", ["Ishmael", "best"])
def test_the_reference_tokenizes_a_shard_where_the_fast_tokenizer_differs(
    shard, tmp_path, monkeypatch, word
):
    """Wherever it differs, the files are those of the reference, no staging file is left, and the
    shard is counted.
    """
    expected = tokenize_shard(
        TokenizeTask(
            documents=shard.documents, folder=tmp_path / "expected", settings=shard.settings
        )
    )
    monkeypatch.setattr(
        tokenizing,
        "tokenizer_of",
        lambda _name, *, fast=True: WrongTokenizer(word) if fast else gpt2_tokenizer(fast=False),
    )
    counts = tokenize_shard(shard)
    assert counts.extra[BY_REFERENCE] == 1
    assert expected.extra[BY_REFERENCE] == 0
    assert (
        (counts.kept, counts.extra["tokens"])
        == (expected.kept, expected.extra["tokens"])
        == (2, sum(len(gpt2_tokenizer().encode(text)) for text in TEXTS))
    )
    assert content(shard.folder) == content(tmp_path / "expected")


def test_only_the_beginnings_are_checked(shard, monkeypatch):
    """Characters after the beginning are not compared, so a book costs no more than a page."""
    monkeypatch.setattr(
        tokenizing,
        "tokenizer_of",
        lambda _name, *, fast=True: (
            WrongTokenizer("precisely") if fast else gpt2_tokenizer(fast=False)
        ),
    )
    monkeypatch.setattr(tokenizing, "CHECKED_CHARS", 20)
    assert tokenize_shard(shard).extra[BY_REFERENCE] == 0
    assert not np.array_equal(
        MegatronReader(shard.folder / shard.name)[0], gpt2_tokenizer().encode(TEXTS[0])
    )
