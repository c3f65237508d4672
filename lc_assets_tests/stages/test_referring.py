"""Referrals of files: every document counted or dropped, by spans or whole, the same for any number
of workers.
"""

import gzip
import json
from multiprocessing.reduction import ForkingPickler

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.longpack import ReferralReportSettings
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.stages.reports.document_sets import REFERRALS, group_of, parts_of
from lc_assets.text.referrals.concepts import LexicalConcepts, Part
from lc_assets.text.referrals.referrals import KINDS, ReferralCounts, count_referrals
from lc_assets_tests.file_runs import ONE, run
from lc_assets_tests.reference.referral_pairs import Sums


def measured(source, out, *, executor=ONE, **settings):
    """Folder of the report on a file or folder, and the counts."""
    report = ReferralReportSettings(wanted=True, sample=1 << 62, **settings)
    return run("referral_report", [source], out, executor=executor, referral_report=report)


def lines_of(folder):
    return [
        line
        for path in sorted(folder.glob("*.referrals.parquet"))
        for line in pq.read_table(path).to_pylist()
    ]


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
    folder = tmp_path / "in"
    written(
        folder,
        "a.jsonl",
        {"id": "one", "text": story(50)},
        "{",
        {"id": "two", "text": story(700)},
        {"id": "three", "text": ""},
    )
    written(folder, "b.jsonl.gz", {"id": "four", "text": story(3, "Darcy")})
    written(folder, "c.jsonl", {"id": "five", "text": "A cat sat. The cat ran."})
    return folder


def test_every_document_has_a_line_or_a_reason(corpus, tmp_path):
    folder, counts = measured(corpus, tmp_path / "out", max_df=1)
    assert (counts.seen, counts.kept) == (6, 4)
    assert (counts.dropped["not JSON"], sum(counts.dropped.values())) == (1, 2)
    lines = lines_of(folder)
    assert all(
        pq.read_schema(path).equals(REFERRALS) for path in folder.glob("*.referrals.parquet")
    )
    names = [line["id"].rpartition("/")[2] for line in lines]
    assert names == ["one", "two", "four", "five"]
    finder = LexicalConcepts(read_special_words())
    for line, text in zip(
        lines,
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
    folder, _ = measured(corpus, tmp_path / "out", max_df=1)
    lines = lines_of(folder)
    groups = {group_of(line["n_tokens"]) for line in lines}
    densities = pq.read_table(folder / "densities.parquet").to_pylist()
    assert {line["length_group"] for line in densities} == groups
    for group in groups:
        own = [line for line in lines if group_of(line["n_tokens"]) == group]
        sums = Sums()
        for line in own:
            sizes = (line[name] for name in ("n_sentences", "n_concepts", "n_mentions"))
            counts = ReferralCounts(*sizes, *(line[kind] for kind in KINDS))
            sums.add(counts, line["n_tokens"])
        found = [line for line in densities if line["length_group"] == group]
        assert {(line["documents"], line["tokens"]) for line in found} == {
            (sums.n_documents, sums.n_tokens)
        }
        for kind, means in sums.means().items():
            assert [line["figure"] for line in found if line["counted"] == kind] == means


class Backwards:
    """Runs tasks in reverse order, each task and each result sent through bytes as between
    processes.
    """

    def run(self, function, tasks, *, what):
        assert isinstance(what, str)
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
    (one, counts), (two, others) = (
        measured(corpus, tmp_path / name, executor=by, max_df=0.3)
        for name, by in (("alone", ONE), ("other", executor))
    )
    assert counts == others
    files = sorted(path.name for path in one.glob("*.parquet"))
    assert files
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)


def test_words_of_many_documents_are_common(tmp_path):
    """The word in all of ten documents is no concept any more, each one's own hero stays one."""
    heroes = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jim"]
    source = written(
        tmp_path,
        "a.jsonl",
        *({"text": f"we saw {hero} walk. So we saw {hero} walk. We walk."} for hero in heroes),
    )
    pruned, whole = (measured(source, tmp_path / str(share), max_df=share)[0] for share in (0.5, 1))
    words = pq.read_table(pruned / "common_words.parquet").to_pylist()
    assert {line["word"] for line in words} == {"saw", "walk"} - read_special_words().stop
    assert {(line["n_pieces"], line["n_documents"]) for line in words} == {(10, 10)}
    of_pruned, of_whole = (
        pq.read_table(folder / "densities.parquet")["figure"][1].as_py()
        for folder in (pruned, whole)
    )
    assert 0 < of_pruned < of_whole
    assert pq.read_table(whole / "common_words.parquet").num_rows == 0


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
    plain = {name: value for name, value in record.items() if name != "spans"} | {"id": "y"}
    source = written(tmp_path, "a.jsonl", record, plain)
    for scope, pairs in (("document", [1, 3]), ("text", [3, 3])):
        folder, _ = measured(source, tmp_path / scope, max_df=1, scope=scope)
        lines = lines_of(folder)
        assert [sum(line["pairs"]) for line in lines] == pairs
        assert [line["n_parts"] for line in lines] == [3 * (scope == "document"), 0]


def test_which_document_a_span_is_of():
    """By the first name that it has; without any, each is one."""
    spans = [
        {"start": 0, "stop": 1, "url": "a"},
        {"start": 1, "stop": 2, "url": "b", "child_id": "a"},
        {"start": 3, "stop": 4},
    ]
    text = msgspec.json.encode(spans).decode()
    assert parts_of("x", "abcd", text) == (Part(0, 0), Part(1, 0), Part(3, 1))
    assert parts_of("x", "abcd", "null") == ()


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
def test_spans_that_are_none_of_the_text_are_an_error(spans, tmp_path):
    with pytest.raises(BadInput, match="^x: span"):
        parts_of("x", "abc", msgspec.json.encode(spans).decode())


def test_an_error_about_spans_names_the_document(tmp_path):
    source = written(
        tmp_path, "a.jsonl", {"id": "x", "text": "abc", "spans": [{"start": 0, "stop": 9}]}
    )
    with pytest.raises(BadInput, match="/x: span 0 from 0 to 9 is not a range of 3 characters"):
        measured(source, tmp_path / "out", max_df=1, scope="document")
