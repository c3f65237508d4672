"""Rules, readers and exporters of another package: an example package, installed in a folder."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.rule_files import preset_names, read_rules
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.plugins import plugins
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.file_lakes import build_for
from lc_assets.stages.megatron.megatron_files import export_by
from lc_assets.vocabulary import NO_RULES

MODULE = '''
from lc_assets.formats.corpora.containers import CorpusDocument

RULES = """
name = "no-short"
[[rule]]
name = "words"
signal = "rps_doc_word_count"
at_least = 3
source = "ours"
"""

def write_lines(data, folder):
    (folder / "ids.txt").write_text("\\n".join(" ".join(map(str, ids)) for ids in data))

def read_verses(path, options):
    for number, verse in enumerate(path.read_text("utf-8").split("--")):
        yield CorpusDocument(id=f"{path.name}/{number}", text=verse.strip())
'''
ENTRY_POINTS = """
[lc_assets.rules]
no-short = verse_plugin:RULES
[lc_assets.readers]
verse = verse_plugin:read_verses
[lc_assets.exporters]
lines = verse_plugin:write_lines
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package ``verse-plugin 1.0``, as pip leaves it; returns a function that installs another
    version.
    """
    folder = tmp_path / "site"

    def install(name: str = "verse_plugin", version: str = "1.0") -> None:
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / f"{name}.py").write_text(MODULE)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(ENTRY_POINTS)
        importlib.invalidate_caches()
        plugins.cache_clear()

    install()
    monkeypatch.syspath_prepend(folder)
    plugins.cache_clear()
    yield install
    plugins.cache_clear()
    sys.modules.pop("verse_plugin", None)


def context(corpus: Path, lake: Path, rules: str = "no-short") -> BuildContext:
    source = SourceSettings(path=str(corpus), reader="verse", language="en")
    recipe = Recipe(
        sources={"verses": source},
        filtered_documents=FilteringSettings(rules=rules, min_words=0, missing_signals="compute"),
    )
    executor = LocalExecutor(workers=1)
    return BuildContext(lake=Lake(lake), upstream=Upstream(""), recipe=recipe, executor=executor)


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.verse").write_text("one two three four -- short -- five six seven")
    (folder / "other.jsonl").write_text('{"text": "is not read by this reader"}\n')
    return folder


def test_the_rules_of_another_package_are_a_preset(installed):
    assert "no-short" in preset_names()
    assert [rule.name for rule in read_rules("no-short").rules] == ["words"]


def test_the_reader_of_another_package_reads_its_files(installed, corpus, tmp_path):
    made = context(corpus, tmp_path / "lake")
    (built,) = build_for(made, "filtered_documents")["filtered_documents"].values()
    assert (built.counts.seen, built.counts.kept, built.counts.dropped) == (3, 2, {"words": 1})
    source = built.published.receipt.fingerprint.params["source"]
    assert source["reader"] == "verse-plugin 1.0"


def test_the_exporter_of_another_package_writes_tokens(installed, tmp_path):
    with MegatronWriter.publishing(tmp_path / "data", np.dtype(np.uint16)) as writer:
        writer.add(np.array([1, 2, 3]))
        writer.add(np.array([4]))
    assert export_by("lines", tmp_path / "data", tmp_path / "out") == 2
    assert (tmp_path / "out" / "ids.txt").read_text() == "1 2 3\n4"


def test_another_version_of_the_package_makes_documents_out_of_date(installed, corpus, tmp_path):
    made, stage = context(corpus, tmp_path / "lake"), stage_named("filtered_documents")
    key = "verses"
    before = stage.resolved(made.recipe, key)
    for path in (tmp_path / "site").glob("*.dist-info/METADATA"):
        path.write_text(path.read_text().replace("1.0", "2.0"))
    plugins.cache_clear()
    assert stage.resolved(made.recipe, key) != before


def test_two_packages_of_one_name_are_refused(installed):
    installed("other_plugin")
    with pytest.raises(BadInput, match="both add rules named no-short"):
        read_rules("no-short")


def test_a_reader_that_is_not_installed_is_named(corpus, tmp_path):
    with pytest.raises(BadInput, match="no installed package adds readers named 'verse'"):
        build_for(context(corpus, tmp_path / "lake", rules=NO_RULES), "filtered_documents")
