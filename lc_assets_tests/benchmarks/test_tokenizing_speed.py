"""Filtered to tokens: a shard's table becomes token files, against tiktoken and ``tofile``. Run
with ``-s`` to see the figures.
"""

import gzip
import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isal import igzip

from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import FILTERED
from lc_assets.formats.tokenizers.gpt2 import build_gigatoken, gpt2_tokenizer
from lc_assets.stages.tokens import tokenizing
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import TokenizeTask
from lc_assets.tokens.tokenizers import GigatokenTokenizer, first_ids
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE, ROW_TOKENS
from lc_assets_tests.benchmarks.crawl import english_books, prose
from lc_assets_tests.benchmarks.test_json_to_rows_speed import hugging_face
from lc_assets_tests.benchmarks.timing import ROUNDS, cpu_seconds, say

SETTINGS = TokenizingSettings()
N_DOCUMENTS, DOCUMENT_CHARS = 20, 400_000


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """A filtered shard of 8 MB: long documents, from all over the source."""
    source = prose()[1]
    starts = np.linspace(0, len(source) - DOCUMENT_CHARS, N_DOCUMENTS).astype(int).tolist()
    return written(
        tmp_path_factory.mktemp("filtered_documents"),
        [source[start : start + DOCUMENT_CHARS] for start in starts],
    )


def long_texts():
    """Long documents: whole books, of 700,000 characters on average, so that a third of one fills a
    row.
    """
    books = english_books() or [
        prose()[1][start : start + 700_000] for start in range(0, 3_500_000, 700_000)
    ]
    return books[:20]


def written(folder, texts):
    """A filtered shard of texts."""
    path = folder / "0000-en_head.documents.parquet"
    writer = TableWriter(path, FILTERED)
    for line, text in enumerate(texts):
        writer.add(
            dict.fromkeys(FILTERED.names, "")
            | {"id": f"2023-06/0000/en_head.json.gz/{line}", "raw_content": text}
        )
    writer.close()
    return path


def fresh_tokenizer():
    """One that has seen no word yet."""
    return GigatokenTokenizer(
        build_gigatoken, name="gpt2", vocab_size=GPT2_VOCAB_SIZE, eot=GPT2_EOT
    )


def plain(documents, path, first=None):
    """Every document through tiktoken, as a list of Python integers."""
    encoding = gpt2_tokenizer(fast=False)._encoding
    with path.open("wb") as out:
        for text in pq.read_table(documents)["raw_content"].to_pylist():
            ids = encoding.encode_ordinary(text)
            if len(ids) >= SETTINGS.min_tokens:
                np.array(ids[:first], np.uint16).tofile(out)


def test_tokenizing_is_tiktokens_and_faster(documents, tmp_path, monkeypatch):
    """MB of UTF-8 per CPU-second, Parquet in, token files out, the reference's spot check included:
    words never seen before, and seen ones; and of the programs themselves, and of gunzip.
    """
    texts = pq.read_table(documents)["raw_content"].to_pylist()
    utf8, packed = [text.encode() for text in texts], gzip.compress("".join(texts).encode())
    megabytes, fresh = sum(map(len, utf8)) / 1e6, [fresh_tokenizer() for _ in range(ROUNDS)]

    def stage(number):
        monkeypatch.setattr(
            tokenizing,
            "tokenizer_of",
            lambda _, *, fast=True: fresh[number % ROUNDS] if fast else gpt2_tokenizer(fast=False),
        )
        task = TokenizeTask(documents=documents, folder=tmp_path / str(number), settings=SETTINGS)
        return tokenize_shard(task), (task.folder / "0000-en_head.bin").read_bytes()

    first, (counts, found) = cpu_seconds(stage)
    again, (_, also) = cpu_seconds(lambda number: stage(number + ROUNDS))
    slow, _ = cpu_seconds(lambda _: plain(documents, tmp_path / "plain.bin"), rounds=1)
    assert found == also == (tmp_path / "plain.bin").read_bytes()
    assert counts.kept > 0
    assert counts.extra[BY_REFERENCE] == 0
    what = f"tokenize_shard ({prose()[0]})"
    say(what, megabytes, "MB", first, words_seen_before=again, Parquet_and_tiktoken=slow)
    programs, other = [build_gigatoken() for _ in range(2 * ROUNDS)], hugging_face()

    def by_hand(number):
        table = pq.read_table(documents, columns=["raw_content"], use_threads=False)
        read = table["raw_content"].combine_chunks().view(pa.binary()).to_pylist()
        digests = [hashlib.sha256(text).hexdigest() for text in read]
        ids = np.concatenate(list(map(programs[ROUNDS + number].encode, read)))
        ids.astype("<u2").tofile(tmp_path / "ids.bin")
        return digests

    seconds = {
        "gunzip": cpu_seconds(lambda _: igzip.decompress(packed))[0],
        "gigatoken, new words": cpu_seconds(lambda n: list(map(programs[n].encode, utf8)))[0],
        "and texts read and hashed, ids written": cpu_seconds(by_hand)[0],
        "gigatoken, seen words": cpu_seconds(lambda _: list(map(programs[0].encode, utf8)))[0],
        "tokenizers": cpu_seconds(lambda _: other.encode_batch_fast(texts), rounds=1)[0],
        "tokenize_shard": first,
    }
    for name, took in seconds.items():
        print(f"  {name}: {megabytes / took:,.0f} MB, {seconds['gunzip'] / took:.2f} of gunzip")
    assert first < slow
    assert seconds["and texts read and hashed, ids written"] > 0.5 * first


def test_the_first_ids_are_tiktokens_and_far_faster():
    """Long documents, the first 65,536 ids of each that has them: MB of UTF-8 per CPU-second; words
    never seen before.
    """
    texts, reference = long_texts(), gpt2_tokenizer(fast=False)._encoding
    whole, early = [fresh_tokenizer() for _ in range(3)], [fresh_tokenizer() for _ in range(3)]
    all_of_it, everything = cpu_seconds(
        lambda number: [whole[number].encode(text)[:ROW_TOKENS] for text in texts]
    )
    fast, found = cpu_seconds(
        lambda number: [first_ids(early[number], text, ROW_TOKENS) for text in texts]
    )
    slow, wanted = cpu_seconds(
        lambda _: [reference.encode_ordinary(text)[:ROW_TOKENS] for text in texts], rounds=1
    )
    for ours, extra, theirs in zip(found, everything, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(extra, theirs)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    say(
        f"first ids of {len(texts)} documents ({prose()[0]})",
        megabytes,
        "MB",
        fast,
        gigatoken_whole=all_of_it,
        tiktoken_whole=slow,
    )
    print(f"  all ids: {slow / all_of_it:.1f} × tiktoken")
    assert slow > 10 * fast
    assert slow > 4 * all_of_it


def test_a_stage_that_needs_the_first_ids_makes_no_others(tmp_path, monkeypatch):
    """The same documents from Parquet to token files, the spot check included, against Parquet,
    tiktoken and ``tofile``.
    """
    texts = long_texts()
    path, fresh = written(tmp_path, texts), [fresh_tokenizer() for _ in range(3)]
    settings = TokenizingSettings(first_tokens=ROW_TOKENS)

    def stage(number):
        monkeypatch.setattr(
            tokenizing,
            "tokenizer_of",
            lambda _name, *, fast=True: fresh[number] if fast else gpt2_tokenizer(fast=False),
        )
        return tokenize_shard(
            TokenizeTask(documents=path, folder=tmp_path / str(number), settings=settings)
        )

    fast, counts = cpu_seconds(stage)
    slow, _ = cpu_seconds(lambda _: plain(path, tmp_path / "plain.bin", first=ROW_TOKENS), rounds=1)
    reading, _ = cpu_seconds(lambda _: pq.read_table(path)["raw_content"].to_pylist())
    assert (tmp_path / "0/0000-en_head.bin").read_bytes() == (tmp_path / "plain.bin").read_bytes()
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    say(
        f"tokenize_shard, {counts.kept} rows",
        megabytes,
        "MB",
        fast,
        Parquet_and_tiktoken=slow,
        reading_Parquet_alone=reading,
    )
    assert slow > 5 * fast
