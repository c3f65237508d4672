"""``lc filter`` and ``lc explain``: what the stages found, printed whole, balanced and harmless."""

import gzip
import json
import re

import numpy as np
import pytest

from lc_assets_tests.builders import N_LONG, WORDS


@pytest.fixture
def pages(tmp_path):
    """Two pages: one of 60 different words, one too short and with a control sequence."""
    path = tmp_path / "pages.jsonl.gz"
    long = " ".join(WORDS[:60]).capitalize() + "."
    lines = [{"id": "long", "text": long}, {"id": "short", "text": "the \x1b[31m red"}]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return path


def test_judging_prints_a_balance_and_a_table_by_rule(lc, pages, tmp_path):
    said = lc("filter", pages, tmp_path / "out", "--rules", "gopher-paper", "--workers", 1)
    assert said.code == 0
    assert "2 documents = 1 kept + 1 dropped, by gopher-paper" in said.out
    row = re.search(r"words +word_count:whitespace +50 to 100,000 +(\d+) +(\d+)\n", said.out)
    assert row.groups() == ("1", "1")
    assert f"{tmp_path / 'out'}: kept documents" in said.out
    assert lc("show", tmp_path / "out").code == 0
    assert lc("verify", tmp_path / "out").code == 0


def test_thresholds_are_changed_from_the_command_line_and_applied_to_stored_values(
    lc, pages, tmp_path
):
    command = ("filter", pages, tmp_path / "out", "--rules", "gopher-paper", "--workers", 1)
    lc(*command, "--all-signals")
    said = lc(
        *command, "--sweep", "--threshold", "words.at_least=61", "--threshold", "words.at_most=70"
    )
    assert "2 documents = 0 kept + 2 dropped" in said.out
    assert re.search(r"words +at_least +61 \* +0 +0\n", said.out)
    assert re.search(r"words +at_least +57.95 +1 +1\n", said.out)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--rules", "gopher"], "gopher: no readable file of rules; the presets are c4, fineweb"),
        (["--rules", "c4", "--threshold", "sentences=5"], "not a threshold: 'sentences=5'"),
        (
            ["--rules", "c4", "--threshold", "sentence.at_least=5"],
            "no rule is called sentence; there are lorem_ipsum",
        ),
    ],
)
def test_what_cannot_be_meant_ends_with_2_and_a_sentence(lc, pages, tmp_path, words, complaint):
    said = lc("filter", pages, tmp_path / "out", *words)
    assert said.code == 2
    assert complaint in said.err
    assert not (tmp_path / "out").exists()


def test_explaining_prints_every_rule_and_ends_with_the_verdict(lc, pages):
    said = lc("explain", pages, "short", "--rules", "gopher-paper")
    assert said.code == 0
    assert re.search(
        r"words +word_count:whitespace +3 +50 to 100,000 +fails +Rae et al. 2021, A.1.1",
        said.out,
    )
    assert re.search(r"hashes +hash_to_word_ratio:whitespace +0 +at most 0.1 +passes", said.out)
    assert re.search(r"rps_doc_unigram_entropy +1.09861229", said.out)
    assert re.search(r"ccnet_perplexity +missing", said.out)
    assert "\x1b" not in said.out
    assert "the \\x1b[31m red" in said.out
    last = said.out.strip().splitlines()[-1]
    assert last.startswith(
        "short is dropped by gopher-paper: word_count:whitespace = 3, expected 50 to 100,000"
    )


def test_explaining_shows_what_was_left_out_before(lc, tmp_path):
    path = tmp_path / "page.jsonl"
    path.write_text(
        json.dumps(
            {"id": "x", "text": "Menu\nIt was late in the day.\nWe use cookies, and more of them."}
        )
    )
    said = lc("explain", path, "x", "--rules", "c4")
    assert re.search(r"no_end_mark +Menu", said.out)
    assert re.search(r"policy +We use cookies", said.out)
    assert "Its text, 23 characters" in said.out


def test_a_document_of_a_lake_is_explained_by_the_rules_it_was_filtered_by(
    lc, published_lake, tmp_path
):
    """Kept, dropped by a rule, dropped as a duplicate; with the published signals at hand, all of
    them.
    """
    shard = "2023-06/0000/en_head.json.gz"
    root = published_lake.context.upstream.root
    assert (
        lc("explain", published_lake.root, f"{shard}/0")
        .out.strip()
        .splitlines()[-1]
        .startswith(f"{shard}/0 is kept by lenient")
    )
    short = lc("explain", published_lake.root, f"{shard}/{N_LONG + 1}", "--upstream", root)
    assert (
        f"{shard}/{N_LONG + 1} is dropped by lenient: rps_doc_word_count = 14, expected at least 40 "
        "(setting)" in short.out
    )
    assert "rps_doc_unigram_entropy" in short.out
    assert (
        "is dropped by lenient: duplicate = 1"
        in lc("explain", published_lake.root, f"{shard}/{N_LONG + 3}").out
    )
    other = lc(
        "explain", published_lake.root, f"{shard}/0", "--rules", "longcrawl64", "--upstream", root
    )
    assert re.search(r"words +rps_doc_word_count +\d+ +at least 16,000 +fails", other.out)


def test_a_document_that_nobody_knows_ends_with_2(lc, published_lake, pages):
    assert lc("explain", pages, "nobody").code == 2
    said = lc("explain", published_lake.root, "2023-06/0000/en_head.json.gz/99")
    assert said.code == 2
    assert "neither kept nor dropped by filtered_documents/2023-06" in said.err


def test_models_come_by_options_and_are_printed_with_their_digests(lc, tmp_path):
    """Judged and explained by the same; what is no NAME=PATH, or is missing, ends with 2."""
    path, rules, listed = tmp_path / "pages.jsonl", tmp_path / "rules.toml", tmp_path / "list.txt"
    text = (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was "
        "the age of foolishness."
    )
    pages = [
        {"id": name, "url": f"http://{name}.example", "text": text} for name in ("good", "bad")
    ]
    path.write_text("\n".join(map(json.dumps, pages)))
    listed.write_text("bad.example\n")
    said = {"domain_blocked": "at_most = 0", "language_is": "at_least = 1"}
    rules.write_text(
        'name = "mine"\n'
        + "".join(
            f'[[rule]]\nname = "{name}"\nsignal = "{name}"\n{to}\n' for name, to in said.items()
        )
    )
    found = lc(
        "filter", path, tmp_path / "out", "--rules", rules, "--blocklist", listed, "--workers", 1
    )
    assert "2 documents = 1 kept + 1 dropped, by mine" in found.out
    assert re.search(r"language model +8f3472cf", found.out)
    assert re.search(r"blocklist +[0-9a-f]{64}", found.out)
    bad = lc("explain", path, "bad", "--rules", rules, "--blocklist", listed)
    assert re.search(r"language_probability +0\.9", bad.out)
    assert re.search(r"language model +8f3472cf", bad.out)
    assert (
        bad.out.strip()
        .splitlines()[-1]
        .startswith("bad is dropped by mine: domain_blocked = 1, expected at most 0")
    )
    assert (
        "bad is dropped"
        in lc("explain", path, "bad", "--rules", rules, "--blocklist", listed, "--lang", "de").out
    )
    for options, complaint in {
        (): "domain_blocked: cannot be computed without a list of addresses; give --blocklist PATH",
        ("--blocklist", tmp_path / "nowhere"): "nowhere: does not exist",
        ("--palm-model", tmp_path / "nowhere"): "domain_blocked: cannot be computed without a list",
    }.items():
        refused = lc("filter", path, tmp_path / "no", "--rules", rules, *options)
        assert refused.code == 2
        assert complaint in refused.err
        assert not (tmp_path / "no").exists()


@pytest.fixture
def corpus(tmp_path):
    """Fifty pages from repetitive to random, in two files, with a line that is none."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    drawn = np.random.default_rng(3)
    letters = [*"abcdefgh "]
    lines = [
        json.dumps(
            {"id": f"p{n}", "text": "".join(drawn.choice(letters[: 2 + n % 8], 400 + 10 * n))}
        )
        for n in range(50)
    ]
    (folder / "a.jsonl.gz").write_bytes(gzip.compress("\n".join([*lines[:20], "no json"]).encode()))
    (folder / "b.jsonl").write_text("\n".join(lines[20:]) + "\n")
    return folder


def test_quantiles_keep_the_middle_of_a_corpus(lc, corpus, tmp_path):
    """The bounds are values that occur; another pair of quantiles measures nothing again."""
    out, ratios = tmp_path / "out", {}
    for low, high in ((0.2, 0.8), (0.3, 0.6)):
        said = lc("filter", corpus, out, "--quantiles", f"gzip_ratio={low}:{high}", "--workers", 1)
        assert said.code == 0, said.err
        n_kept = round(50 * (high - low))
        assert f"51 documents = {n_kept} kept + {51 - n_kept} dropped, by none" in said.out
        ((at_least, at_most),) = re.findall(r"gzip_ratio +gzip_ratio +(\S+) to (\S+)", said.out)
        ratios[low] = float(at_least), float(at_most)
    assert ratios[0.2][0] < ratios[0.3][0] < ratios[0.3][1] < ratios[0.2][1]
    assert len(list(out.glob("document_signals/corpus/*/receipt.json"))) == 1
    assert lc("verify", out).code == 0


@pytest.mark.parametrize(
    ("quantiles", "said"),
    [
        ("no_such=0.1:0.9", "no_such"),
        ("mean_word_length=0.1:0.9", "words"),
        ("rps_doc_ml_palm_score=0.1:0.9", "a model"),
        ("gzip_ratio:raw=0.1:0.9", "gzip_ratio"),
        ("gzip_ratio=0:1", "two quantiles"),
        ("gzip_ratio=0.5:0.5", "two quantiles"),
        ("gzip_ratio=0.1", "two quantiles"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_work(lc, corpus, tmp_path, quantiles, said):
    found = lc("filter", corpus, tmp_path / "out", "--quantiles", quantiles)
    assert found.code == 2
    assert said in found.err
    assert not (tmp_path / "out").exists()
