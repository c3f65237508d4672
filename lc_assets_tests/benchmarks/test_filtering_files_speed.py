"""Filtering plain files by Gopher's rules, again by stored values, by quantiles, and sweeping
thresholds; many small files. Run with ``-s`` to see the figures.
"""

import gzip
import json
from functools import partial
from itertools import islice

import numpy as np
import pytest

import lc_assets as lc
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.stages.documents.sweeping import sweep
from lc_assets_tests.benchmarks.crawl import crawl_texts
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.filtering import filter_files

N_CHARS = 6_000_000
N_SWEPT = 30_000
N_FILES = 600


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Texts of a crawl's lengths, one file, and their size in bytes."""
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl.gz"
    texts = list(crawl_texts(N_CHARS))
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), 1))
    return path, sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize(
    "preset", ["gopher-paper", "gopher-datatrove", "gopher-dolma", "redpajama-lucie"]
)
def test_stored_values_are_filtered_faster_than_texts(pages, tmp_path, preset):
    """MB of text per CPU-second; the same documents are kept. Compiling is paid before."""
    file, n_bytes = pages

    def filtered(name, **how):
        return filter_files(file, tmp_path / name, preset, **how)

    filtered("first")
    texts, found = cpu_seconds(lambda number: filtered(f"texts {number}"), rounds=2)
    everything, _ = cpu_seconds(lambda _: filtered("all", all_signals=True), rounds=1)
    bounds = {"gzip_ratio": {"at_most": 9.0}}
    filtered("stored", all_signals=True, bounds=bounds)
    stored, again = cpu_seconds(
        lambda number: filtered("stored", all_signals=True, bounds=bounds, min_words=number),
        rounds=2,
    )
    assert (again.counts.seen, again.counts.kept) == (found.counts.seen, found.counts.kept)
    say(
        f"filter texts by {preset}",
        n_bytes / 1e6,
        "MB of text",
        texts,
        all_signals=everything,
        stored_values=stored,
    )
    assert stored < texts


@pytest.mark.parametrize("verb", ["filter", "tokenize"])
def test_small_files_cost_a_millisecond_each(tmp_path, verb):
    """CPU milliseconds per file of one document, beside one file of all."""
    run = {
        "filter": partial(lc.filter, rules="gopher-paper", workers=1),
        "tokenize": partial(lc.tokenize, workers=1),
    }[verb]
    (tmp_path / "files").mkdir()
    texts = [" ".join(text.split()[:150]) for text in islice(crawl_texts(N_CHARS), N_FILES)]
    for number, text in enumerate(texts):
        (tmp_path / "files" / f"{number:05d}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    one = tmp_path / "one.jsonl"
    one.write_bytes(b"".join(it.read_bytes() for it in sorted((tmp_path / "files").iterdir())))
    run(one, tmp_path / "compiled")
    together, _ = cpu_seconds(lambda number: run(one, tmp_path / f"one {number}"))
    files, found = cpu_seconds(lambda number: run(tmp_path / "files", tmp_path / f"all {number}"))
    assert found.counts.seen == len(texts)
    say(f"{verb} small files", len(texts), "files", files, one_file=together)
    assert files < together + 1.5e-3 * len(texts)


def test_a_sweep_is_the_filtering_by_every_threshold_and_faster():
    """Documents per CPU-second, for all thresholds of all rules."""
    rules = read_rules("redpajama-lucie")
    drawn = np.random.default_rng(0)
    columns = {
        rule.column: drawn.lognormal(0, 1, N_SWEPT) * (rule.at_most or rule.at_least or 1) / 2
        for rule in rules.rules
    }
    fast, swept = cpu_seconds(lambda _: sweep(columns, rules, allowed=np.ones(N_SWEPT, np.bool_)))
    slow, counts = cpu_seconds(lambda _: one_by_one(columns, rules, swept.to_pylist()), rounds=1)
    assert counts == swept["kept_with_the_others"].to_pylist()
    say(
        f"sweep {len(swept)} thresholds",
        N_SWEPT / 1e3,
        "thousand documents",
        fast,
        tested_again=slow,
    )
    assert fast * 2 < slow


def one_by_one(columns, rules, thresholds):
    """What one would write first: change one bound, test everything again."""
    counts = []
    for at in thresholds:
        bounds = {"at_least": -np.inf, "at_most": np.inf}
        (rule,) = [rule for rule in rules.rules if rule.name == at["rule"]]
        bounds |= {name: bound for name in bounds if (bound := getattr(rule, name)) is not None} | {
            at["bound"]: at["threshold"]
        }
        others = [other.fails(columns[other.column]) for other in rules.rules if other is not rule]
        values = columns[rule.column]
        keeps = (
            ~np.any(others, axis=0) & (values >= bounds["at_least"]) & (values <= bounds["at_most"])
        )
        counts.append(int(keeps.sum()))
    return counts
