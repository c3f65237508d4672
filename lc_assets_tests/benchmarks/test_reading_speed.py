"""Documents off the disk: long ones of a crawl, all of a plain corpus, and their languages. Run
with ``-s`` to see the figures.
"""

import gzip
import json

import msgspec
import pytest

from lc_assets.formats.corpora.containers import write_corpus
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.lists.models import open_language_model
from lc_assets.formats.redpajama.documents import decode_document, write_documents
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.stages.documents.measuring import FIELDS_READ
from lc_assets.text.rules.models import language_of, one_line
from lc_assets.vocabulary import ROW_TOKENS, Shard
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.builders import made_up_record

SHARD = Shard.parse("2023-06/0000/en_head")
N_CHARS, REPEATS = 2_000_000, 10


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A documents file of some 20 MB, and how many bytes are in it."""
    path = tmp_path_factory.mktemp("crawl") / "en_head.json.gz"
    texts = list(crawl_texts(N_CHARS))
    write_documents(
        path,
        (
            made_up_record(SHARD, line, texts[line % len(texts)])
            for line in range(len(texts) * REPEATS)
        ),
    )
    with gzip.open(path) as stream:
        return path, sum(map(len, stream))


def long_enough(text):
    """Whether a text can hold a row of tokens, each of which is a byte at least."""
    return len(text) >= ROW_TOKENS or len(text.encode()) >= ROW_TOKENS


def our_long_texts(path):
    n_lines, texts = 0, []
    with path.open("rb") as stream:
        for line, raw in read_lines(stream, where="crawl", max_line_bytes=1 << 28):
            n_lines += 1
            if len(raw) >= ROW_TOKENS:
                texts.append((line, decode_document(raw, where="crawl").raw_content))
    return [(line, text) for line, text in texts if long_enough(text)], n_lines


def plain_long_texts(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        texts = [(line, json.loads(raw)["raw_content"]) for line, raw in enumerate(stream)]
    return [(line, text) for line, text in texts if long_enough(text)], len(texts)


def test_long_documents_are_the_plain_loop_s_and_faster(crawl):
    """MB of decompressed JSON per CPU-second."""
    path, n_bytes = crawl
    fast, found = cpu_seconds(lambda _: our_long_texts(path))
    slow, wanted = cpu_seconds(lambda _: plain_long_texts(path), rounds=1)
    assert found == wanted
    assert found[0]
    say("long lines", n_bytes / 1e6, "MB of JSON", fast, gzip_and_json=slow)
    assert fast < slow / 2


class Typed(msgspec.Struct):
    """The fields that a document is made of, and no others."""

    raw_content: str
    url: str = ""
    language: str = ""
    source_domain: str = ""
    date_download: str = ""
    perplexity: float | None = None


def typed(path):
    """The least that can be done: msgspec, its fields known, the rest forgotten."""
    decoder = msgspec.json.Decoder(Typed)
    with path.open("rb") as stream:
        return [decoder.decode(line).raw_content for line in stream]


def texts_of(path, fields):
    return [document.text for document in read_corpus(path, fields=fields)]


def test_plain_lines_cost_less_than_twice_a_typed_decoder(crawl, tmp_path):
    """With all other fields kept as they came, or those that filtering reads; and writing them
    back.
    """
    path, n_bytes = crawl
    (tmp_path / "plain.jsonl").write_bytes(gzip.decompress(path.read_bytes()))
    least, wanted = cpu_seconds(lambda _: typed(tmp_path / "plain.jsonl"))
    for fields, most in ((None, 4), (FIELDS_READ, 3)):
        ours, found = cpu_seconds(
            lambda _, fields=fields: texts_of(tmp_path / "plain.jsonl", fields)
        )
        assert found == wanted
        what = "read_corpus" if fields is None else "read_corpus, some fields"
        say(what, n_bytes / 1e6, "MB of JSON", ours, msgspec_typed=least)
        assert ours < most * least
    documents = list(read_corpus(path))
    written, _ = cpu_seconds(
        lambda _: write_corpus(tmp_path / "written.jsonl.gz", documents), rounds=2
    )
    assert [document.text for document in read_corpus(tmp_path / "written.jsonl.gz")] == wanted
    print(f"write_corpus: {n_bytes / 1e6 / written:,.0f} MB of JSON per CPU-second")


def test_a_language_shows_early():
    """MB of documents' text per CPU-second, against the same model on all of it."""
    predict = open_language_model().predict
    texts = list(crawl_texts(N_CHARS))
    fast, found = cpu_seconds(lambda _: [language_of(text, predict)[0] for text in texts])
    slow, wanted = cpu_seconds(lambda _: [predict(one_line(text))[0] for text in texts], rounds=1)
    agree = sum(map(str.__eq__, found, wanted)) / len(texts)
    say("language_of", sum(map(len, texts)) / 1e6, "MB of text", fast, whole_text=slow)
    print(f"the same language: {agree:.3f} of {len(texts)} documents")
    assert agree > (
        0.95 if prose()[0] == "books" else 0.8
    )  # made-up words are of no language, and it shows
    assert fast < slow
