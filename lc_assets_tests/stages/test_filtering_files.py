"""Filtering plain files: everything balances, stored values give the results of texts, quantiles
keep the middle, and explaining says what filtering does.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.lists.models import open_models
from lc_assets.formats.lists.rule_files import preset_names, read_rules, with_thresholds
from lc_assets.stages.documents.explaining import explain_in_files, explain_in_lake
from lc_assets.stages.documents.sweeping import total_sweep
from lc_assets.stages.shown.documents import thresholds_of
from lc_assets.text.rules.models import LANGUAGE
from lc_assets_tests.builders import WORDS
from lc_assets_tests.filtering import filter_files

MODELS = open_models([LANGUAGE])
UNREAD = 2
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


def name_of(row: dict) -> str:
    """A document's name in `texts`."""
    return row["url"].removeprefix("https://example.org/")


@pytest.mark.parametrize(
    "preset", [name for name in preset_names() if name != "redpajama-lucie-gzip"]
)
@pytest.mark.parametrize("all_signals", [False, True])
def test_everything_seen_is_kept_or_dropped_by_a_first_reason(pages, tmp_path, preset, all_signals):
    """In the counts, and in the tables; every document that could be read has its values."""
    found = filter_files(pages, tmp_path / "out", preset, all_signals=all_signals)
    kept, dropped, counts = found.rows("documents"), found.rows("dropped"), found.counts
    assert counts.seen == len(texts()) + 3 == len(kept) + len(dropped)
    assert counts.kept == len(kept)
    for name, first in counts.dropped.items():
        assert first == sum(row["reason"] == name for row in dropped)
        assert first <= counts.failed_rules[name]
    assert counts.failed_rules == {
        name: n
        for name in counts.failed_rules
        if (n := sum(name in row["reasons"] for row in dropped))
    }
    if all_signals:
        stored = found.rows("values", "document_signals")
        assert len(stored) == counts.seen - UNREAD
        columns = read_rules(preset).columns
        assert all(columns < row.keys() for row in stored)


def test_dropped_documents_have_their_values(pages, tmp_path):
    found = filter_files(pages, tmp_path / "out", "gopher-paper")
    (short,) = [row for row in found.rows("dropped") if row["url"].endswith("/short")]
    assert (short["reason"], short["value"]) == ("words", 2.0)
    assert {"not JSON", "no text"} <= {row["reason"] for row in found.rows("dropped")}


def test_edited_lines_are_gone_from_what_is_kept(tmp_path):
    """And the rules tested what is left."""
    source = tmp_path / "page.jsonl"
    text = f"MENU OF ALL\nSign in\n{texts()['prose 4']}\n12 likes"
    source.write_text(json.dumps({"id": "x", "text": text}))
    changed = {"words_removed": {"at_most": 0.5}}
    found = filter_files(source, tmp_path / "out", "refinedweb", thresholds=changed)
    assert [row["raw_content"] for row in found.rows("documents")] == [texts()["prose 4"]]
    rules = with_thresholds(read_rules("refinedweb"), changed)
    explained = explain_in_files([source], "x", rules, language="en", models=MODELS)
    assert [piece for piece, _ in explained.removed] == ["MENU OF ALL", "Sign in", "12 likes"]
    assert explained.text == texts()["prose 4"]


@pytest.mark.parametrize(
    "preset", ["gopher-paper", "gopher-dolma", "fineweb", "c4", "redpajama-lucie"]
)
def test_stored_values_give_the_results_of_the_texts(pages, tmp_path, preset):
    """Under the preset's bounds and a changed one; the values are stored once. All reasons are
    known, where texts alone give those of the rules that are applied first.
    """
    rule = read_rules(preset).rules[-1]
    bound = "at_most" if rule.at_least is None else "at_least"
    for number, value in enumerate([getattr(rule, bound), 0.98 * getattr(rule, bound)]):
        how = {"thresholds": {rule.name: {bound: value}}}
        fresh = filter_files(pages, tmp_path / f"fresh {number}", preset, **how)
        stored = filter_files(pages, tmp_path / "stored", preset, all_signals=True, **how)
        assert stored.rows("documents") == fresh.rows("documents")
        few = {row["id"]: row["reasons"] for row in fresh.rows("dropped")}
        many = {row["id"]: row["reasons"] for row in stored.rows("dropped")}
        assert few.keys() == many.keys()
        assert all(set(reasons) <= set(many[name]) for name, reasons in few.items())
        (signals,) = stored.built["document_signals"].values()
        assert signals.reused == (number == 1)


def test_a_sweep_of_stored_values_has_no_gaps(pages, tmp_path):
    """Every threshold has both counts, and that of another run is what that run keeps."""
    found = filter_files(pages, tmp_path / "out", "gopher-paper", all_signals=True)
    (built,) = found.built["filtered_documents"].values()
    swept = total_sweep([built.published.folder]).to_pylist()
    assert all(None not in line.values() for line in swept)
    for line in swept[:: len(swept) // 4]:
        how = {"thresholds": {line["rule"]: {line["bound"]: line["threshold"]}}}
        again = filter_files(pages, tmp_path / "out", "gopher-paper", all_signals=True, **how)
        assert again.counts.kept == line["kept_with_the_others"]


def test_what_other_thresholds_keep_is_shown(pages, tmp_path):
    """A curve and a line per bound; at the bound itself, what was kept."""
    found = filter_files(pages, tmp_path / "out", "gopher-paper", all_signals=True)
    (built,) = found.built["filtered_documents"].values()
    plot, table = thresholds_of(built.published)
    assert {line["× 1"] for line in table.lines} == {found.counts.kept}
    assert len(plot.values[0]) > 1


def test_the_same_bytes_for_any_number_of_workers(pages, tmp_path):
    found = [
        filter_files(
            pages, tmp_path / f"{n}", "gopher-dolma", workers=n, all_signals=True, lines=True
        )
        for n in (1, 2)
    ]
    one, two = (
        {
            path.name: path.read_bytes()
            for stages in run.built.values()
            for built in stages.values()
            for path in built.published.folder.iterdir()
            if path.name.endswith((".parquet", ".gz"))
        }
        for run in found
    )
    assert one == two
    assert len(one) == 11


@pytest.mark.parametrize("preset", ["gopher-paper", "refinedweb"])
def test_explaining_gives_the_result_of_filtering(pages, tmp_path, preset):
    """Of every document, from its text and from the lake; every column that a text can give is
    shown.
    """
    rules = read_rules(preset)
    found = filter_files(pages, tmp_path / "out", preset, all_signals=True)
    dropped = {name_of(row): row for row in found.rows("dropped")}
    rows = dropped | {name_of(row): row for row in found.rows("documents")}
    for name in texts():
        of_text = explain_in_files([pages], name, rules, language="en", models=MODELS)
        of_lake = explain_in_lake(found.context.lake, rows[name]["id"])
        assert of_text.reasons == of_lake.reasons
        assert len(of_text.reasons) == len(dropped.get(name, {"reasons": []})["reasons"])
        assert len(of_text.values) > 100
        word = "dropped" if of_text.reasons else "kept"
        assert of_text.decision.startswith(f"{name} is {word} by {preset}: ")


def test_a_document_that_is_not_there_cannot_be_explained(pages):
    with pytest.raises(BadInput, match="nobody: no document of that id in 2 files"):
        explain_in_files([pages], "nobody", read_rules("c4"), models=MODELS)
