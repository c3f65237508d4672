"""Referrals of plain files: every document counted or dropped, by spans or whole, the same for any
number of workers.
"""

import gzip
import json
from multiprocessing.reduction import ForkingPickler

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.stages.reports import document_sets, measuring
from lc_assets.stages.reports.document_sets import REFERRALS, group_of, parts_of
from lc_assets.stages.reports.measuring import (
    WITHOUT_SPANS,
    Measuring,
    is_chosen,
    measure_corpus,
)
from lc_assets.text.referrals.concepts import LexicalConcepts, Part
from lc_assets.text.referrals.referrals import count_referrals

ALONE = LocalExecutor()
PLAIN = Measuring(max_df=1)


def written(folder, name, *records):
    """A file of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    content = "".join(
        f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records
    ).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def story(n_sentences, hero="Elizabeth"):
    """Sentences about one hero, with words of their own."""
    return " ".join(f"We told {hero} about number{number} things." for number in range(n_sentences))


@pytest.fixture
def corpus(tmp_path):
    written(
        tmp_path / "in",
        "a.jsonl",
        {"id": "one", "text": story(50)},
        "{",
        {"id": "two", "text": story(700)},
        {"id": "three", "text": ""},
    )
    written(tmp_path / "in", "b.jsonl.gz", {"id": "four", "text": story(3, "Darcy")})
    (tmp_path / "in" / "c.txt").write_text("A cat sat. The cat ran.")
    return [tmp_path / "in", tmp_path / "in" / "c.txt"]


def test_every_document_has_a_line_or_a_reason(corpus, tmp_path):
    found = measure_corpus(corpus, PLAIN, executor=ALONE, table=tmp_path / "out" / "t.parquet")
    assert (found.counts.seen, found.counts.kept, found.counts.dropped) == (
        6,
        4,
        {"not JSON": 1, "no tokens": 1},
    )
    table = pq.read_table(tmp_path / "out" / "t.parquet")
    assert table.schema.equals(REFERRALS)
    assert table["id"].to_pylist() == ["one", "two", "four", "c.txt"]
    finder = LexicalConcepts(read_special_words())
    for line, text in zip(
        table.to_pylist(),
        (story(50), story(700), story(3, "Darcy"), "A cat sat. The cat ran."),
        strict=True,
    ):
        counts = count_referrals(finder.mentions(text))
        assert line["n_tokens"] == len(tokenizer_of("gpt2").encode(text))
        assert (line["n_chars"], line["n_sentences"], line["n_mentions"]) == (
            len(text),
            counts.n_sentences,
            counts.n_mentions,
        )
        assert tuple(map(tuple, (line["pairs"], line["neighbours"], line["concepts"]))) == (
            counts.pairs,
            counts.neighbours,
            counts.concepts,
        )
        assert sum(line["pairs"]) >= sum(line["neighbours"])


def test_groups_are_the_means_of_the_table(corpus, tmp_path):
    found = measure_corpus(corpus, PLAIN, executor=ALONE, table=tmp_path / "t.parquet")
    lines = pq.read_table(tmp_path / "t.parquet").to_pylist()
    for group, sums in found.groups.items():
        own = [line for line in lines if group_of(line["n_tokens"]) == group]
        assert (sums.n_documents, sums.n_tokens) == (
            len(own),
            sum(line["n_tokens"] for line in own),
        )
        if own:
            mean = sum(line["pairs"][1] / line["n_tokens"] for line in own) / len(own)
            assert sums.means()["pairs"][1] == pytest.approx(mean)


class Backwards:
    """Runs tasks in reverse order, each task and each result sent through bytes as between
    processes.
    """

    def run(self, function, tasks, *, what):
        assert what
        for task in reversed(tasks):
            yield (
                task,
                ForkingPickler.loads(
                    ForkingPickler.dumps(function(ForkingPickler.loads(ForkingPickler.dumps(task))))
                ),
            )


@pytest.mark.parametrize(
    "executor", [Backwards(), pytest.param(LocalExecutor(workers=2), marks=pytest.mark.slow)]
)
def test_any_order_of_tasks_gives_the_same_bytes(corpus, tmp_path, executor):
    settings = Measuring(max_df=0.3)
    one, two = (
        measure_corpus(corpus, settings, executor=by, table=tmp_path / f"{name}.jsonl")
        for name, by in (("alone", ALONE), ("other", executor))
    )
    assert one == two
    assert (tmp_path / "alone.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()


def test_a_table_s_kind_is_the_end_of_its_name(corpus, tmp_path):
    """The same lines; JSON lines in the same bytes every time, gzipped or not."""
    contents = []
    for name in ("t.parquet", "t.jsonl", "t.jsonl.gz"):
        measure_corpus(corpus, PLAIN, executor=ALONE, table=tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert gzip.decompress(contents[2]) == contents[1]
    assert [msgspec.json.decode(line) for line in contents[1].splitlines()] == pq.read_table(
        tmp_path / "t.parquet"
    ).to_pylist()


def test_words_of_many_documents_are_common(tmp_path):
    """The word in all of ten documents is no concept any more, each one's own hero stays one."""
    heroes = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jim"]
    source = written(
        tmp_path,
        "a.jsonl",
        *({"text": f"we saw {hero} walk. So we saw {hero} walk."} for hero in heroes),
    )
    pruned, whole = (
        measure_corpus([source], Measuring(max_df=share), executor=ALONE) for share in (0.5, 1)
    )
    assert pruned.common == {"saw", "walk"} - read_special_words().stop
    assert (pruned.background.n_documents, pruned.background.n_pieces) == (10, 10)
    assert pruned.groups["0-4K"].means()["pairs"][1] < whole.groups["0-4K"].means()["pairs"][1]
    assert pruned.groups["0-4K"].means()["pairs"][1] > 0
    assert whole.common == frozenset()


def test_a_share_of_a_large_corpus_is_looked_at(tmp_path, monkeypatch):
    """Whoever is chosen is so by his id alone; a larger share holds the smaller."""
    ids = [f"d{number}" for number in range(400)]
    half, quarter = ({name for name in ids if is_chosen(name, share)} for share in (0.5, 0.25))
    assert quarter < half
    assert 160 < len(half) < 240
    source = written(tmp_path, "a.jsonl", *({"id": name, "text": "we walk"} for name in ids))
    monkeypatch.setattr(measuring, "BACKGROUND_BYTES", source.stat().st_size // 2)
    found = measure_corpus([source], Measuring(max_df=0.5), executor=ALONE)
    assert abs(found.background.n_documents - len(half)) <= 2


def test_scope_document_counts_each_span_s_document_alone(tmp_path):
    """Without spans the whole text is one; spans of one document belong together, also with
    another's between.
    """
    texts = ["we saw Ann. ", "So Ann ran. ", "So Ann sat."]
    starts = [0, 12, 24]
    spans = [
        {"start": start, "stop": start + len(text), "url": url}
        for start, text, url in zip(starts, texts, "aba", strict=True)
    ]
    record = {"id": "x", "text": "".join(texts), "spans": spans}
    plain = {name: value for name, value in record.items() if name != "spans"}
    source = written(tmp_path, "a.jsonl", record, plain)
    for scope, pairs in (("document", [1, 3]), ("text", [3, 3])):
        found = measure_corpus(
            [source], Measuring(max_df=1, scope=scope), executor=ALONE, table=tmp_path / "t.parquet"
        )
        lines = pq.read_table(tmp_path / "t.parquet").to_pylist()
        assert [sum(line["pairs"]) for line in lines] == pairs
        assert [line["n_parts"] for line in lines] == [3 * (scope == "document"), 0]
    assert found.counts.extra.get(WITHOUT_SPANS) is None
    assert (
        measure_corpus(
            [source], Measuring(max_df=1, scope="document"), executor=ALONE
        ).counts.extra[WITHOUT_SPANS]
        == 1
    )


def test_which_document_a_span_is_of():
    """By the first name that it has; without any, each is one."""
    spans = [
        {"start": 0, "stop": 1, "url": "a"},
        {"start": 1, "stop": 2, "url": "b", "child_id": "a"},
        {"start": 3, "stop": 4},
    ]
    rest = msgspec.Raw(msgspec.json.encode({"spans": spans}))
    document = CorpusDocument(id="x", text="abcd", rest=rest)
    assert parts_of(document) == (Part(0, 0), Part(1, 0), Part(3, 1))


@pytest.mark.parametrize(
    "spans",
    [
        [{"start": 0, "stop": 9}],
        [{"start": 2, "stop": 1}],
        [{"start": 0, "stop": 2}, {"start": 1, "stop": 3}],
        [{"start": -1, "stop": 3}],
        [{"start": 0}],
        ["x"],
        {"start": 0},
        [{"start": "0", "stop": "1"}],
    ],
)
def test_spans_that_are_none_of_the_text_drop_the_document(spans, tmp_path):
    document = CorpusDocument(
        id="x", text="abc", rest=msgspec.Raw(msgspec.json.encode({"spans": spans}))
    )
    with pytest.raises(BadInput, match="span"):
        parts_of(document)
    source = written(
        tmp_path, "a.jsonl", {"text": "abc", "spans": spans}, {"text": "abc", "spans": None}
    )
    found = measure_corpus([source], Measuring(max_df=1, scope="document"), executor=ALONE)
    assert found.counts.dropped == {"spans are not acceptable": 1}
    assert found.counts.kept == 1


def test_what_cannot_be_meant_is_said_before_anything_is_read(tmp_path, monkeypatch):
    source = written(tmp_path, "a.jsonl", {"text": "abc"})
    monkeypatch.setattr(document_sets, "read_corpus", None)
    with pytest.raises(BadInput, match="ascending numbers"):
        Measuring(buckets=(5, 5))
    for settings, table in (
        (Measuring(tokenizer="nobody's"), None),
        (Measuring(words=tmp_path / "nowhere"), None),
        (PLAIN, tmp_path / "t.csv"),
    ):
        with pytest.raises(BadInput):
            measure_corpus([source], settings, executor=ALONE, table=table)
