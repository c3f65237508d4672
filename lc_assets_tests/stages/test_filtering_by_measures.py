"""Filtering by what no published signal holds, without published signals, and what other thresholds
would have kept.
"""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import Bounds, FilteringSettings, ListSettings
from lc_assets.errors import BadInput
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.documents.explaining import explain_in_lake
from lc_assets.stages.documents.filtered_documents import STAGE
from lc_assets.stages.documents.measuring import record_offers, rules_of
from lc_assets.stages.documents.sweeping import total_sweep
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.rules import failures
from lc_assets.text.signals.names import SCALARS
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    LENIENT_RULES,
    SNAPSHOTS,
    TINY_MIN_WORDS,
    tiny_context,
    tiny_upstream,
)

SNAPSHOT = SNAPSHOTS[0]
TAGS = ("0000/en_head", "0000/en_middle")

MEASURED_RULES = f"""{LENIENT_RULES}
[[rule]]
name = "stop_words"
signal = "stop_words_distinct"
words = "whitespace"
at_least = 7

[[rule]]
name = "zipped"
signal = "gzip_ratio"
at_most = 0.62
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"), snapshots=[SNAPSHOT], tags=TAGS)


def filtered(folder: Path, upstream: Path, rules: str, **settings):
    """Filter the snapshot by rules of one's own."""
    folder.mkdir(exist_ok=True)
    path = folder / "rules.toml"
    path.write_text(rules)
    found = FilteringSettings(rules=str(path), **({"min_words": TINY_MIN_WORDS} | settings))
    context = tiny_context(folder, upstream=upstream, filtered_documents=found)
    stage_named("raw_snapshot").build(context, SNAPSHOT)
    return context, stage_named("filtered_documents").build(context, SNAPSHOT)


def table(built, pattern: str) -> list[dict]:
    return [
        row
        for path in sorted(built.published.folder.glob(pattern))
        for row in pq.read_table(path).to_pylist()
    ]


def records(upstream: Path):
    for tag in TAGS:
        shard = Shard.parse(f"{SNAPSHOT}/{tag}")
        with (upstream / f"documents/{shard.tag}.json.gz").open("rb") as stream:
            for line, raw in read_lines(stream, where=tag, max_line_bytes=1 << 20):
                yield shard, line, decode_document(raw, where=tag)


def expected(upstream: Path, settings: FilteringSettings) -> dict[str, list[tuple[str, float]]]:
    """Reasons against each document, one document at a time: published rules, and the others where
    these say nothing.
    """
    rules = rules_of(settings)
    reasons = {}
    for shard, line, record in records(upstream):
        values = values_of(record_offers(record, rules), rules.columns)
        found = [("duplicate", 1.0)] if line == 11 else []
        found += failures(values, rules.on(SCALARS))
        found = found or failures(values, rules.but_on(SCALARS))
        reasons[shard.document_id(line)] = found
    return reasons


def test_measures_are_asked_of_those_that_the_published_signals_speak_for(tmp_path, upstream):
    """Kept documents have their values, dropped ones the reason; and the counts balance."""
    context, built = filtered(tmp_path, upstream, MEASURED_RULES)
    wanted = expected(upstream, context.recipe.filtered_documents)
    kept, dropped = table(built, "*.documents.parquet"), table(built, "*.dropped.parquet")
    assert {row["id"] for row in kept} == {name for name, reasons in wanted.items() if not reasons}
    assert {
        row["id"]: list(zip(row["reasons"], row["values"], strict=True)) for row in dropped
    } == {name: reasons for name, reasons in wanted.items() if reasons}
    late = {"stop_words", "zipped"}
    assert late & set(built.counts.dropped)
    assert (
        built.counts.seen == len(wanted) == built.counts.kept + sum(built.counts.dropped.values())
    )
    assert all(
        row["stop_words_distinct:whitespace"] >= 7 and row["gzip_ratio"] <= 0.62 for row in kept
    )
    assert all(finding.passed for finding in built.findings), built.findings
    urls = {shard.document_id(line): record.url for shard, line, record in records(upstream)}
    assert all(urls[row["id"]] == row["url"] for row in dropped)


@pytest.mark.parametrize("rules", [LENIENT_RULES, MEASURED_RULES])
def test_a_sweep_says_what_filtering_with_that_threshold_keeps(tmp_path, upstream, rules):
    """For each bound a few thresholds, stricter and laxer: the snapshot is filtered again by
    them.
    """
    _, built = filtered(tmp_path / "own", upstream, rules)
    swept = total_sweep([built.published.folder]).to_pylist()
    asked = [
        line
        for line in swept
        if line["kept_with_the_others"] is not None and line["rule"] != "long_enough"
    ]
    assert {line["rule"] for line in asked} >= {"mean_word_length", "symbols"}
    for number, line in enumerate(asked[::7]):
        changed = {line["rule"]: Bounds(**{line["bound"]: line["threshold"]})}
        _, again = filtered(tmp_path / f"by {number}", upstream, rules, thresholds=changed)
        assert again.counts.kept == line["kept_with_the_others"], line


def test_a_sweep_knows_what_it_cannot_know(tmp_path, upstream):
    """Alone, a bound on a measure, and with measures in force a laxer published bound, would want
    texts that nobody read.
    """
    _, built = filtered(tmp_path, upstream, MEASURED_RULES)
    for line in total_sweep([built.published.folder]).to_pylist():
        assert (line["kept_alone"] is None) == (line["rule"] in {"stop_words", "zipped"})
        if line["in_force"]:
            assert line["kept_with_the_others"] == built.counts.kept
    symbols = [
        line
        for line in total_sweep([built.published.folder]).to_pylist()
        if line["rule"] == "symbols"
    ]
    assert [line["kept_with_the_others"] is None for line in symbols] == [
        line["threshold"] > 0.5 for line in symbols
    ]


@pytest.mark.parametrize("rules", [LENIENT_RULES, MEASURED_RULES])
def test_signals_that_upstream_lacks_are_computed_where_the_recipe_says_so(tmp_path, rules):
    """The same documents for the same reasons, and the shard is counted as one that had to be
    computed.
    """
    root = tiny_upstream(tmp_path / "upstream", snapshots=[SNAPSHOT], tags=TAGS)
    _, sound = filtered(tmp_path / "sound", root, rules, missing_signals="compute")
    (root / f"quality_signals/{SNAPSHOT}/0000/en_middle.signals.json.gz").unlink()
    _, computed = filtered(tmp_path / "computed", root, rules, missing_signals="compute")
    assert computed.counts.extra["shards with computed signals"] == 1
    assert sound.counts.extra["shards with computed signals"] == 0
    for pattern in ("*.documents.parquet", "*.dropped.parquet", "*.sweep.parquet"):
        assert table(computed, pattern) == table(sound, pattern)
    assert computed.counts.dropped == sound.counts.dropped


def test_rules_that_edit_lines_are_for_plain_files(tmp_path):
    with pytest.raises(
        BadInput,
        match=r"rules c4: edit lines \(c4\), but published signals are of the whole text; .*lc filter",
    ):
        rules_of(FilteringSettings(rules="c4"))


def test_rules_that_need_a_model_cannot_be_computed(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(
        LENIENT_RULES
        + '[[rule]]\nname = "palm"\nsignal = "rps_doc_ml_palm_score"\nat_least = 0.1\n'
    )
    assert rules_of(FilteringSettings(rules=str(path))).rules[2].name == "palm"
    with pytest.raises(BadInput, match="rps_doc_ml_palm_score: cannot be computed"):
        rules_of(FilteringSettings(rules=str(path), missing_signals="compute"))


def test_a_receipt_says_which_lists_and_another_list_is_another_version(tmp_path):
    """By content: a list that changed under its name makes what was filtered by it out of date."""
    lists = tmp_path / "stop words"
    lists.mkdir()
    (lists / "en.txt").write_text("the\nof\n", "utf-8")
    settings = FilteringSettings(lists=ListSettings(stop_words=str(lists)))
    recipe = Recipe(filtered_documents=settings)
    before = STAGE.params(recipe, SNAPSHOT)["lists"]
    (lists / "en.txt").write_text("the\nof\nand\n", "utf-8")
    after = STAGE.params(recipe, SNAPSHOT)["lists"]
    assert len(before) == len(after) == 1
    assert before != after
    assert STAGE.params(Recipe(), SNAPSHOT)["lists"] == {}


def test_every_document_of_a_lake_can_be_explained(tmp_path, upstream):
    """By what stands published alone, and with the published signals beside it; the verdict is that
    of the stage.
    """
    context, built = filtered(tmp_path, upstream, MEASURED_RULES)
    dropped = {row["id"]: row["reasons"] for row in table(built, "*.dropped.parquet")}
    for shard, line, _ in records(upstream):
        name = shard.document_id(line)
        for source in (None, Upstream(str(upstream))):
            found = explain_in_lake(context.lake, name, upstream=source)
            assert bool(found.reasons) is (name in dropped)
            assert len(found.reasons) == len(dropped.get(name, []))
            assert len(found.values) > 25 or source is None
        assert (found.text is None) == (name in dropped)
