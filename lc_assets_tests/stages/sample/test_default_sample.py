"""The sample that everybody gets who names no folder: novels that come with the package."""

from pathlib import Path

import numpy as np

from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.sample import prose
from lc_assets.sample.prose import novels
from lc_assets.sample.writing import write_sample
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets.vocabulary import ROW_TOKENS
from lc_assets_tests.stages.sample.conftest import MB, listed_shards
from lc_assets_tests.stages.sample.made_signals import measured

CHARS_PER_TOKEN = 4.6
"""At most, in these novels."""


def test_pages_have_addresses_and_texts_of_their_own() -> None:
    pages = novels().pages
    assert len({page.url for page in pages}) == len({page.digest for page in pages}) == len(pages)
    for page in pages:
        assert all(line and line == " ".join(line.split()) for line in page.lines), page.url


def test_the_signals_that_come_with_the_package_are_those_that_would_be_computed() -> None:
    assert prose._content(prose.SIGNALS) == measured()


def test_of_the_default_sample_no_signals_are_computed(monkeypatch, tmp_path: Path) -> None:
    """Their kernels would take many seconds to compile."""
    monkeypatch.setattr(prose, "signals_of", None)
    write_sample(tmp_path / "s", texts=novels(), executor=LocalExecutor())


def test_signals_are_written_as_if_they_had_been_computed(monkeypatch, tmp_path: Path) -> None:
    write_sample(tmp_path / "read", texts=novels(), executor=LocalExecutor())
    monkeypatch.setattr(prose, "_measured", dict)
    write_sample(tmp_path / "computed", texts=novels(), executor=LocalExecutor())
    for shard in listed_shards(tmp_path / "read"):
        part = part_path("signals", shard)
        assert (tmp_path / "read" / part).read_bytes() == (
            tmp_path / "computed" / part
        ).read_bytes()


def test_long_pages_pass_the_rules_and_a_table_of_contents_does_not(tmp_path: Path) -> None:
    """Rules are those of the Lucie corpus, none left out; long is what fills a row."""
    write_sample(tmp_path / "s", texts=novels(), executor=LocalExecutor())
    rules = read_rules("redpajama-lucie")
    n_long_and_good = n_bad = 0
    for shard in listed_shards(tmp_path / "s"):
        with (tmp_path / "s" / part_path("signals", shard)).open("rb") as stream:
            wanted = [*rules.columns, "ccnet_length"]
            table = read_signals(
                stream, shard=shard, where=shard.tag, names=wanted, max_line_bytes=64 * MB
            )
        failed = np.stack([rule.fails(table.columns[rule.column]) for rule in rules.rules])
        fills_a_row = table.columns["ccnet_length"] >= ROW_TOKENS * CHARS_PER_TOKEN
        n_long_and_good += int((~failed.any(axis=0) & fills_a_row).sum())
        n_bad += int(failed.any(axis=0).sum())
    assert n_long_and_good >= 9
    assert n_bad >= 1
