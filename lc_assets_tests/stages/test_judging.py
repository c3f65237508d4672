"""Judging files: everything balances, stored values give the same verdicts as texts, and explaining
says what judging does.
"""

import gzip
import json
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.models import open_models
from lc_assets.formats.lists.rule_files import (
    parse_rules,
    preset_names,
    read_rules,
    with_thresholds,
)
from lc_assets.stages.documents.explaining import explain_in_files
from lc_assets.stages.documents.judging_runs import judge_corpus
from lc_assets.stages.documents.stored_values import is_stored
from lc_assets.text.rules.models import LANGUAGE
from lc_assets.text.rules.rules import RuleSet
from lc_assets_tests.builders import WORDS, tiny_upstream

MODELS = open_models([LANGUAGE])
HOSTILE = {
    "empty": "",
    "blank": " \n\t\n",
    "nul": "a\x00b " * 60,
    "one character": "x" * 100_000,
    "one line": "word and the " * 5_000,
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd. " * 40,
    "combining": "e\u0301\u0302 " * 80,
    "astral": "\U0001f600 smile. " * 60,
}


def texts() -> dict[str, str]:
    """Pages that are kept, dropped for one thing or another, or hostile."""
    drawn = np.random.default_rng(5)
    prose = {
        f"prose {number}": "\n".join(
            " ".join(drawn.choice(WORDS, 20)).capitalize() + "." for _ in range(8 + number)
        )
        for number in range(6)
    }
    wrong = {
        "symbols": "# ... " * 80,
        "bullets": "\n".join(f"- {' '.join(WORDS[n : n + 9])}." for n in range(60)),
        "short": "Too short.",
    }
    return prose | wrong | {"brackets": f"{prose['prose 3']}\nsome {{ thing."} | HOSTILE


@pytest.fixture
def pages(tmp_path) -> Path:
    """A folder of two files; some lines of them are no documents."""
    folder = tmp_path / "pages"
    folder.mkdir()
    records = [
        {
            "id": name,
            "url": f"https://example.org/{name}",
            "text": text,
            "extra": {"kept": [1, 2.5]},
        }
        for name, text in texts().items()
    ]
    lines = [json.dumps(record) for record in records]
    (folder / "a.jsonl.gz").write_bytes(
        gzip.compress("\n".join([*lines[:9], '{"text": 5}', "not json"]).encode())
    )
    (folder / "b.jsonl").write_text(
        "\n".join([*lines[9:], '{"id": "lone", "text": "\\ud83d and the rest of it"}']) + "\n"
    )
    return folder


def lines_of(folder: Path) -> list[dict]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def judged(source: Path, out: Path, rules: RuleSet, **how):
    return judge_corpus(
        [source],
        out,
        rules,
        executor=LocalExecutor(workers=how.pop("workers", 1)),
        **{"language": "en"} | how,
    )


def explained(source: Path, name: str, rules: RuleSet):
    return explain_in_files([source], name, rules, language="en", models=MODELS)


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("all_signals", [False, True])
def test_everything_seen_is_kept_or_dropped_by_a_first_reason(pages, tmp_path, preset, all_signals):
    """In the summary, in its file, in the files of documents, and in the table of values."""
    out = tmp_path / "out"
    summary = judged(pages, out, read_rules(preset), all_signals=all_signals)
    kept, dropped = lines_of(out / "kept"), lines_of(out / "dropped")
    assert summary.seen == len(texts()) + 3 == len(kept) + len(dropped)
    assert summary.kept == len(kept)
    assert sum(line.first for line in summary.by_rule) == summary.dropped == len(dropped)
    firsts = [line["reasons"][0]["rule"] for line in dropped]
    for line in summary.by_rule:
        assert line.first == firsts.count(line.rule)
        assert line.any == sum(
            any(reason["rule"] == line.rule for reason in one["reasons"]) for one in dropped
        )
        assert line.first <= line.any <= line.asked
    assert msgspec.json.decode((out / "summary.json").read_bytes())["seen"] == summary.seen
    stored = [
        row
        for path in sorted((out / "signals").glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]
    assert {row["id"] for row in stored} == {
        line["id"] for line in kept + dropped if line["id"] not in {"a.jsonl.gz/9", "a.jsonl.gz/10"}
    }
    if all_signals:
        assert all(value is not None for row in stored for name, value in row.items())


def test_kept_documents_have_all_they_came_with_and_dropped_ones_their_values(pages, tmp_path):
    out = tmp_path / "out"
    judged(pages, out, read_rules("gopher-paper"))
    kept = {line["id"]: line for line in lines_of(out / "kept")}
    assert kept["prose 2"] == {
        "id": "prose 2", "url": "https://example.org/prose 2", "text": texts()["prose 2"], "extra": {"kept": [1, 2.5]},
    }  # fmt: skip
    dropped = {line["id"]: line["reasons"] for line in lines_of(out / "dropped")}
    assert dropped["short"][0] == {
        "rule": "words",
        "column": "word_count:whitespace",
        "value": 2.0,
        "wanted": "50 to 100,000",
    }
    assert dropped["a.jsonl.gz/10"][0]["rule"] == "not JSON"


def test_edited_lines_are_gone_from_what_is_kept(pages, tmp_path):
    """And the rules judged what is left."""
    source = tmp_path / "page.jsonl"
    text = f"MENU OF ALL\nSign in\n{texts()['prose 4']}\n12 likes"
    source.write_text(json.dumps({"id": "x", "text": text}))
    out = tmp_path / "out"
    rules = with_thresholds(read_rules("refinedweb"), {"words_removed": {"at_most": 0.5}})
    judged(source, out, rules)
    (line,) = lines_of(out / "kept")
    assert line["text"] == texts()["prose 4"]
    found = explained(source, "x", rules)
    assert [piece for piece, _ in found.removed] == ["MENU OF ALL", "Sign in", "12 likes"]
    assert found.text == texts()["prose 4"]


@pytest.mark.parametrize(
    "preset", ["gopher-paper", "gopher-dolma", "fineweb", "c4", "redpajama-lucie"]
)
@pytest.mark.parametrize("all_signals", [False, True])
def test_stored_values_give_the_verdicts_of_the_texts(pages, tmp_path, preset, all_signals):
    """Document by document, with every reason and value, and no text is there to be read."""
    rules = read_rules(preset)
    judged(pages, tmp_path / "first", rules, all_signals=all_signals)
    again = judged(
        tmp_path / "first" / "signals", tmp_path / "again", rules, all_signals=all_signals
    )
    assert again.stored
    assert lines_of(tmp_path / "again" / "kept") == [
        {"id": line["id"], "url": line.get("url", "")}
        for line in lines_of(tmp_path / "first" / "kept")
    ]
    unread = {"a.jsonl.gz/9", "a.jsonl.gz/10"}
    assert lines_of(tmp_path / "again" / "dropped") == [
        line for line in lines_of(tmp_path / "first" / "dropped") if line["id"] not in unread
    ]


def test_other_thresholds_on_stored_values_are_other_thresholds_on_texts(pages, tmp_path):
    """Laxer and stricter ones; that is what they are stored for."""
    judged(pages, tmp_path / "first", read_rules("gopher-paper"), all_signals=True)
    for number, changes in enumerate(
        [{"words": {"at_least": 1}}, {"words_with_letter": {"at_least": 0.999}}]
    ):
        rules = with_thresholds(read_rules("gopher-paper"), changes)
        stored = judged(tmp_path / "first" / "signals", tmp_path / f"stored{number}", rules)
        fresh = judged(pages, tmp_path / f"fresh{number}", rules)
        assert stored.kept == fresh.kept
        assert [line["id"] for line in lines_of(tmp_path / f"stored{number}" / "kept")] == [
            line["id"] for line in lines_of(tmp_path / f"fresh{number}" / "kept")
        ]


def test_what_was_never_computed_is_a_reason_of_its_own(pages, tmp_path):
    """Without --all-signals a short page has no n-grams; a laxer rule on words must not let it
    through unseen.
    """
    judged(pages, tmp_path / "first", read_rules("gopher-paper"))
    lax = {name: {"at_least": None, "at_most": 1e9} for name in ("words", "mean_word_length")}
    rules = with_thresholds(
        read_rules("gopher-paper"),
        lax | {"stop_words": {"at_least": 0}, "words_with_letter": {"at_least": 0}},
    )
    summary = judged(tmp_path / "first" / "signals", tmp_path / "again", rules)
    counts = {line.rule: line.first for line in summary.by_rule}
    assert counts["not computed"] > 0
    assert sum(counts.values()) == summary.dropped


def test_values_that_do_not_serve_the_rules_are_refused(pages, tmp_path):
    """Another kind of words, another editing, texts beside values."""
    judged(pages, tmp_path / "paper", read_rules("gopher-paper"))
    judged(pages, tmp_path / "c4", read_rules("c4"))
    with pytest.raises(
        BadInput, match="holds no .*frac_chars_dupe_10grams.datatrove:raw.*judge the texts instead"
    ):
        judged(tmp_path / "paper" / "signals", tmp_path / "out", read_rules("gopher-datatrove"))
    whole = RuleSet("c4 of whole texts", read_rules("c4").rules)
    with pytest.raises(
        BadInput,
        match=r"is of texts with their lines edited \(c4\), but rules c4 of whole texts judge whole texts",
    ):
        judged(tmp_path / "c4" / "signals", tmp_path / "out", whole)
    with pytest.raises(BadInput, match="holds stored values and .* texts; judge them apart"):
        judge_corpus(
            [pages, tmp_path / "c4" / "signals"], tmp_path / "out", whole, executor=LocalExecutor()
        )
    assert not (tmp_path / "out").exists()


def test_what_no_text_can_give_is_refused_before_any_work(pages, tmp_path):
    rules = parse_rules(
        'name = "x"\n[[rule]]\nname = "p"\nsignal = "rps_doc_ml_palm_score"\nat_least = 0.1',
        where="x",
    )
    with pytest.raises(BadInput, match="rps_doc_ml_palm_score: cannot be computed without a model"):
        judged(pages, tmp_path / "out", rules)
    listed = parse_rules(
        'name = "x"\n[[rule]]\nname = "b"\nsignal = "rps_doc_ldnoobw_words"\nat_most = 0', where="x"
    )
    with pytest.raises(BadInput, match="without a list"):
        judged(pages, tmp_path / "out", listed)


def test_published_signals_are_judged_as_they_are(tmp_path):
    """RedPajama-V2's own files: the documents that its texts would keep."""
    upstream = tiny_upstream(tmp_path / "upstream")
    rules = with_thresholds(
        read_rules("redpajama-lucie"), {"words": {"at_least": 40}, "dupe_5grams": {"at_most": 1.0}}
    )
    stored = judged(upstream / "quality_signals", tmp_path / "stored", rules, all_signals=True)
    fresh = judged(upstream / "documents", tmp_path / "fresh", rules, all_signals=True)
    assert stored.stored
    assert not fresh.stored
    assert stored.seen == fresh.seen > stored.kept == fresh.kept > 0
    ids = [
        sorted(
            json.loads(line)["id"]
            for path in (tmp_path / run / "kept").rglob("*.gz")
            for line in gzip.decompress(path.read_bytes()).splitlines()
        )
        for run in ("stored", "fresh")
    ]
    assert ids[0] == ids[1]


def test_the_same_bytes_for_any_number_of_workers(pages, tmp_path):
    for workers in (1, 2):
        judged(
            pages,
            tmp_path / f"by {workers}",
            read_rules("gopher-dolma"),
            workers=workers,
            sweep=True,
        )
    one, two = (
        {
            path.relative_to(tmp_path / f"by {n}"): path.read_bytes()
            for path in (tmp_path / f"by {n}").rglob("*.*")
        }
        for n in (1, 2)
    )
    assert one == two
    assert len(one) == 9


@pytest.mark.parametrize("preset", ["gopher-paper", "refinedweb"])
def test_explaining_gives_the_verdict_of_judging(pages, tmp_path, preset):
    """Of every document, from its text and from what was stored; every column that a text can give
    is shown.
    """
    rules = read_rules(preset)
    judged(pages, tmp_path / "out", rules, all_signals=True)
    dropped = {line["id"]: line["reasons"] for line in lines_of(tmp_path / "out" / "dropped")}
    for name in texts():
        from_text = explained(pages, name, rules)
        from_values = explain_in_files([tmp_path / "out" / "signals"], name, rules)
        assert from_text.kept is from_values.kept is (name not in dropped)
        assert [verdict.rule.name for verdict in from_text.verdicts if verdict.complaint] == [
            reason["rule"] for reason in dropped.get(name, [])
        ]
        assert from_text.reasons == from_values.reasons
        assert len(from_text.values) > 100
        word = "kept" if from_text.kept else "dropped"
        assert from_text.verdict.startswith(f"{name} is {word} by {preset}: ")


def test_a_document_that_is_not_there_cannot_be_explained(pages):
    with pytest.raises(BadInput, match="nobody: no document of that id in 2 files"):
        explained(pages, "nobody", read_rules("c4"))
    with pytest.raises(BadInput, match="not JSON, so nothing can be said"):
        explained(pages, "a.jsonl.gz/10", read_rules("c4"))


def test_a_damaged_file_publishes_nothing(tmp_path):
    source = tmp_path / "pages.jsonl.gz"
    source.write_bytes(gzip.compress(json.dumps({"text": "word " * 5_000}).encode())[:-20])
    with pytest.raises(CorruptFile):
        judged(source, tmp_path / "out", read_rules("c4"))
    assert not list((tmp_path / "out").rglob("*.gz"))


def test_a_table_of_texts_is_not_taken_for_values(tmp_path, pages):
    judged(pages, tmp_path / "out", read_rules("c4"))
    assert is_stored(tmp_path / "out" / "signals" / "a.parquet")
    assert not is_stored(pages / "b.jsonl")
