"""Judging plain files by Gopher's rules, judging stored values again, and sweeping thresholds. Run
with ``-s`` to see the figures.
"""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.stages.documents.judges import in_order_of_cost
from lc_assets.stages.documents.judging import JudgeTask, judge_file
from lc_assets.text.rules.rules import RuleSet, judge_columns
from lc_assets.text.rules.sweeps import sweep
from lc_assets_tests.benchmarks.crawl import crawl_texts
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

N_CHARS = 6_000_000
N_SWEPT = 30_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Texts of a crawl's lengths, one file, and their size in bytes."""
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl.gz"
    texts = list(crawl_texts(N_CHARS))
    path.write_bytes(
        gzip.compress(
            "\n".join(
                json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)
            ).encode(),
            1,
        )
    )
    return path, sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize(
    "preset", ["gopher-paper", "gopher-datatrove", "gopher-dolma", "redpajama-lucie"]
)
def test_stored_values_are_judged_faster_than_texts(pages, tmp_path, preset):
    """MB of text per CPU-second; the same documents are kept. Compiling is paid before."""
    file, n_bytes = pages
    rules = in_order_of_cost(read_rules(preset))
    task = JudgeTask(file=file, out=tmp_path / "texts", stem="pages", rules=rules)
    judge_file(task)
    texts, counts = cpu_seconds(lambda _: judge_file(task), rounds=2)
    everything, _ = cpu_seconds(
        lambda _: judge_file(replace(task, out=tmp_path / "all", all_signals=True)), rounds=1
    )
    stored_task = replace(task, file=task.place("signals", ".parquet"), out=tmp_path / "stored")
    stored, again = cpu_seconds(lambda _: judge_file(stored_task), rounds=2)
    assert (again.seen, again.kept, again.dropped) == (counts.seen, counts.kept, counts.dropped)
    say(
        f"judge texts by {preset}",
        n_bytes / 1e6,
        "MB of text",
        texts,
        all_signals=everything,
        stored_values=stored,
    )
    assert stored < texts


def test_a_sweep_is_the_judging_by_every_threshold_and_faster():
    """Documents per CPU-second, for all thresholds of all rules."""
    rules = read_rules("redpajama-lucie")
    drawn = np.random.default_rng(0)
    columns = {
        rule.column: drawn.lognormal(0, 1, N_SWEPT) * (rule.at_most or rule.at_least or 1) / 2
        for rule in rules.rules
    }
    fast, swept = cpu_seconds(lambda _: sweep(columns, rules))
    slow, counts = cpu_seconds(lambda _: one_by_one(columns, rules, swept.thresholds), rounds=1)
    assert counts == swept.kept_with_the_others.tolist()
    say(
        f"sweep {len(swept.thresholds)} thresholds",
        N_SWEPT / 1e3,
        "thousand documents",
        fast,
        judged_again=slow,
    )
    assert fast * 2 < slow


def one_by_one(columns, rules, thresholds):
    """What one would write first: change one bound, judge everything again."""
    counts = []
    for at in thresholds:
        bounds = {"at_least": -np.inf, "at_most": np.inf}
        (rule,) = [rule for rule in rules.rules if rule.name == at.rule]
        bounds |= {name: bound for name in bounds if (bound := getattr(rule, name)) is not None} | {
            at.bound: at.threshold
        }
        others = RuleSet("others", tuple(other for other in rules.rules if other.name != at.rule))
        values = columns[rule.column]
        keeps = (
            ~judge_columns(columns, others).any(axis=0)
            & (values >= bounds["at_least"])
            & (values <= bounds["at_most"])
        )
        counts.append(int(keeps.sum()))
    return counts
