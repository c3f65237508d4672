"""The sample that everybody gets who names no folder: made of this very installation's
documentation.
"""

from pathlib import Path

import numpy as np
import pytest

from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.sample.pages import Texts
from lc_assets.sample.prose import PAGE_CHARS, installed_prose
from lc_assets.sample.writing import write_sample
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets_tests.stages.sample.conftest import listed_shards

MB = 1_000_000


@pytest.fixture(scope="module")
def prose() -> Texts:
    return installed_prose(executor=LocalExecutor(workers=2))


@pytest.mark.slow
def test_every_page_has_an_address_of_its_own(prose: Texts) -> None:
    assert len({page.url for page in prose.pages}) == len(prose.pages)


@pytest.mark.slow
def test_six_long_pages_pass_the_rules_and_others_fail_for_several_reasons(
    prose: Texts, tmp_path: Path
) -> None:
    """A page of `PAGE_CHARS` characters fills a row of the token grid; rules are those of the Lucie
    corpus, none left out.
    """
    report = write_sample(tmp_path / "s", texts=prose, executor=LocalExecutor(workers=2))
    rules = read_rules("redpajama-lucie")
    n_long_and_good, broken = 0, np.zeros(len(rules.rules), np.int64)
    for shard in listed_shards(tmp_path / "s"):
        with (tmp_path / "s" / part_path("signals", shard)).open("rb") as stream:
            wanted = [*rules.columns, "ccnet_length"]
            table = read_signals(
                stream, shard=shard, where=shard.tag, names=wanted, max_line_bytes=64 * MB
            )
        failed = np.stack([rule.fails(table.columns[rule.column]) for rule in rules.rules])
        n_long_and_good += int(
            (~failed.any(axis=0) & (table.columns["ccnet_length"] >= PAGE_CHARS)).sum()
        )
        broken += failed.sum(axis=1)
    assert n_long_and_good >= 6
    reasons = {
        rule.name: int(count) for rule, count in zip(rules.rules, broken, strict=True) if count
    }
    assert {"words", "no_alphabetic_words", "dupe_5grams"} <= reasons.keys(), reasons
    assert (
        report.listed_duplicates > report.documents["duplicate"]
    )  # licences are word for word the same
