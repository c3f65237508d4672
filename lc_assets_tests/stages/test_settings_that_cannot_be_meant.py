"""Settings that cannot be meant, or do not fit what stands published: each is one sentence, and
nothing is built.
"""

from dataclasses import replace

import msgspec
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import parse_recipe, read_recipe
from lc_assets.builds.settings.documents import Bounds, FilteringSettings
from lc_assets.builds.settings.rows import (
    GriddingSettings,
    MegatronSettings,
    MixSettings,
    TokenizingSettings,
)
from lc_assets.errors import BadInput, LcError, Mismatch
from lc_assets.sources.opening import known_snapshots
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_context, tiny_lake, tiny_upstream
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot, digests, unpublished

OLD, NEW = SNAPSHOTS

MEANINGLESS = {
    "[filtered_documents]\nmin_word = 3": r"unknown field `min_word` - at `\$.filtered_documents`; there are rules, thresholds, bounds, min_words, .*; did you mean min_words",
    "[filterin]\nmin_words = 3": (
        "unknown field `filterin`; there are target, reuses, sources, raw_snapshot, document_signals, filtered_documents, "
    ),
    "[filtered_documents.thresholds]\nwords = {at_lest = 3}": r"unknown field `at_lest` - at `\$.filtered_documents.thresholds.*; there are at_least, ",
    '[filtered_documents]\nmin_words = "many"': r"Expected `int`, got `str` - at `\$.filtered_documents.min_words`",
    "[filtered_documents]\nmin_words = -1": r"Expected `int` >= 0 - at `\$.filtered_documents.min_words`",
    '[filtered_documents]\nmissing_signals = "treat_as_unique"': r"'treat_as_unique' - at `\$.filtered_documents.missing_signals`; there are compute, fail, ",
    f"[filtered_documents]\nmax_line_bytes = {2**63}": r"Expected `int` <= 1073741824 - at `\$.filtered_documents.max_line_bytes`",
    '[raw_snapshot]\nlanguages = ["en", "tlh"]': r"'tlh' - at `\$.raw_snapshot.languages\[1\]`; there are de, en, es, fr, it",
    '[removed_documents]\nprefer = ["best_perplexity"]': (
        "compared only where removed_documents.exact names something"
    ),
    '[removed_documents]\nprefer = ["source=2022"]\n[sources.a]\npath = "/a"\n[sources.b]\npath = "/b"': (
        "no source has a partition '2022'; keys begin with one of a-, b-"
    ),
    "[raw_snapshot]\nlanguages = []": r"array` of length >= 1 - at `\$.raw_snapshot.languages`",
    '[raw_snapshot]\nbuckets = ["tail"]': "'tail' .*; there are head, middle",
    "[token_grid]\nheldout_fraction = 1.5": r"Expected `float` <= 1.0 - at `\$.token_grid.heldout_fraction`",
    "[token_grid]\nheldout_fraction = nan": r"Expected `float` >= 0.0 - at `\$.token_grid.heldout_fraction`",
    "[token_grid]\nrow_tokens = 0": r"Expected `int` >= 1 - at `\$.token_grid.row_tokens`",
    "[token_grid]\nrow_tokens = 131072": r"min_tokens \(65,536\) is below token_grid.row_tokens \(131,072\): shorter documents would not fill",
    "[token_documents]\nfirst_tokens = 9": r"first_tokens \(9\) is below min_tokens \(65,536\): what is kept could not show that",
    "[token_grid]\nrows_per_document = 0": r"Expected `int` >= 1 - at `\$.token_grid.rows_per_document`",
    "[token_documents]\nfirst_tokens = 65536\n[token_grid]\nrows_per_document = 2": r"first_tokens \(65,536\) is below what token_grid may take",
    "[token_grid]\nchunk_rows = 100": (
        "shard_rows must be at most inner_rows, 100, or a multiple of it, got 2,048"
    ),
    "[token_grid]\nchunk_rows = 1\nchunk_tokens = 1": r"inner chunks of a shard must be 1 to 65,536, got 134,217,728 - at `\$.token_grid`",
    "[token_grid]\nzstd_level = 23": r"Expected `int` <= 22 - at `\$.token_grid.zstd_level`",
    f"[token_grid]\nrow_tokens = {2**70}": r"Expected `int` <= 2147483647 - at `\$.token_grid.row_tokens`",
    f"[token_grid]\nseed = {2**70}": r"Expected `int` <= .* - at `\$.token_grid.seed`",
    f"[megatron_rows]\nsequence_length = {2**33}": r"Expected `int` <= 2147483647 - at `\$.megatron_rows.sequence_length`",
    "[blended_mix.a]\nsamples = 0": r"Expected `int` >= 1 - at `\$.blended_mix\[...\].samples`",
    f"[blended_mix.a]\nsamples = {2**40}": r"Expected `int` <= 1000000000 - at `\$.blended_mix\[...\].samples`",
    '[blended_mix.a]\nweights = "half"': "'half' .*; there are equal, tokens",
    "[blended_mix.a]\nweights = {2023-06 = 0}": "Expected `float` > 0.0",
    "[blended_mix.a]\nweights = {2023-06 = inf}": "Expected `float` <= 1e",
    '[blended_mix."../../x"]': "a mix cannot be called '../../x': expected at most 40 letters",
    '[blended_mix."a/b"]': "a mix cannot be called 'a/b'",
    "min_words = = 3": "Invalid value .at line 1, column 13.",
    "\xff": "can't decode byte 0xff",
}


@pytest.mark.parametrize("content", MEANINGLESS)
def test_a_recipe_that_cannot_be_meant_is_refused_with_its_place(content):
    """The file, the setting, what was found and what could stand there, in one line."""
    with pytest.raises(BadInput, match=MEANINGLESS[content]) as caught:
        parse_recipe(content.encode("latin-1"), where="mine.toml")
    assert str(caught.value).startswith("mine.toml: not a recipe: ")
    assert "\n" not in str(caught.value)


def test_a_recipe_that_is_not_there_is_named(tmp_path):
    """A misspelt path is not taken for the default recipe."""
    with pytest.raises(BadInput, match="mine.toml: no such recipe file"):
        read_recipe(tmp_path / "mine.toml")


def test_a_list_of_snapshots_that_is_no_text_is_named(tmp_path):
    """Bytes that are not UTF-8, and a name that would be a path."""
    own = tmp_path / "mine.txt"
    for content, words in (
        (b"books-\xe9\n", "not UTF-8 text"),
        (b"../../x\n", "not a snapshot: '../../x'"),
    ):
        own.write_bytes(content)
        with pytest.raises(BadInput, match=f"mine.txt: {words}"):
            known_snapshots(own)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A lake in which everything is built; tests add nothing to it but what is refused."""
    return tiny_lake(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("sound"))


def changed(recipe: Recipe, stage: str, **settings) -> Recipe:
    return msgspec.structs.replace(
        recipe, **{stage: msgspec.structs.replace(getattr(recipe, stage), **settings)}
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"thresholds": {"wrods": Bounds(at_least=3)}},
            "rules lenient: no rule is called wrods; there are mean_word_length, symbols",
        ),
        (
            {"thresholds": {"symbols": Bounds(at_least=3)}},
            "rule symbols: at_least = 3.0 is above at_most = 0.5, so nothing can pass",
        ),
        (
            {"rules": "no-such-preset"},
            "no-such-preset: no readable file of rules; the presets are .*redpajama-lucie",
        ),
        ({"rules": ""}, "no readable file of rules"),
    ],
    ids=["unknown rule", "bounds that cross", "unknown preset", "no name"],
)
def test_rules_that_cannot_be_meant_stop_filter_and_planner(finished, settings, words):
    """Both say the same sentence; what is published stays."""
    context = finished.with_recipe(
        changed(finished.context.recipe, "filtered_documents", **settings)
    )
    before = context.lake.partition("filtered_documents", OLD).require()
    with pytest.raises(BadInput, match=words):
        build_snapshot(context, OLD, ["filtered_documents"])
    with pytest.raises(BadInput, match=words):
        plan(context.lake, context.recipe, SNAPSHOTS)
    assert context.lake.partition("filtered_documents", OLD).require() == before


@pytest.mark.parametrize("name", ["2022", "2023-99", "a-b"])
def test_a_source_that_nobody_knows_is_not_preferred(finished, name):
    """A snapshot that is published, planned or one of RedPajama-V2's may be."""
    recipe = finished.context.recipe
    for known in (OLD, "2014-15"):
        preferring = changed(recipe, "removed_documents", prefer=(f"source={known}",))
        plan(finished.context.lake, preferring, SNAPSHOTS)
    preferring = changed(recipe, "removed_documents", prefer=("oldest", f"source={name}"))
    with pytest.raises(BadInput, match=f"source={name}, and no partition is called {name}: there"):
        plan(finished.context.lake, preferring, SNAPSHOTS)


NOTHING_TO_MIX = [
    (
        MixSettings(weights={"2023-06": 1.0, "2014-15": 1.0}),
        "the mix names 2014-15, of which no `megatron_rows` is published: build it, or take it",
    ),
    (
        MixSettings(weights={"../../x": 1.0}),
        "the mix names ../../x, of which no `megatron_rows` is published",
    ),
    (MixSettings(weights={}), "nothing to mix: no snapshot is named"),
    (
        MixSettings(weights={"2023-06": 1e-320, "2023-14": 1e18}),
        "some shares are zero",
    ),
    (
        MixSettings(samples=10**9),
        (
            "the mix requests .* samples, one epoch has .*: that is more than 1,000 epochs; "
            "request fewer"
        ),
    ),
    (
        MixSettings(weights={"2023-06": 1.0}, samples=10**6),
        "requests 1,000,000 samples, one epoch has",
    ),
]


@pytest.mark.parametrize(("mix", "words"), NOTHING_TO_MIX, ids=range(len(NOTHING_TO_MIX)))
def test_a_mix_that_cannot_be_made_says_why(finished, mix, words):
    """A snapshot that is not there, no snapshot, weights without meaning, sizes beyond reason; no
    mix of that name appears.
    """
    context = finished.with_recipe(
        msgspec.structs.replace(finished.context.recipe, blended_mix={"odd": mix})
    )
    with pytest.raises(BadInput, match=words):
        stage_named("blended_mix").build(context, "odd")
    assert "odd" not in context.lake.published("blended_mix")
    assert {made.name: made.status for made in plan(context.lake, context.recipe, SNAPSHOTS)}[
        "blended_mix/odd"
    ] == "missing"


def test_an_unknown_mix_is_refused_with_those_there_are(finished):
    """A misspelt mix lists the others, and leaves no folder."""
    with pytest.raises(
        BadInput, match="the recipe has no mix 'by-token'; it has by-tokens, one-sided"
    ):
        stage_named("blended_mix").build(finished.context, "by-token")
    assert not finished.context.lake.partition("blended_mix", "by-token").folder.exists()


def test_more_samples_than_reason_are_refused_by_megatron_too(finished):
    """An index over a million epochs is not begun."""
    context = finished.with_recipe(changed(finished.context.recipe, "megatron_rows", samples=10**9))
    before = context.lake.partition("megatron_rows", OLD).require()
    with pytest.raises(
        BadInput,
        match="megatron_rows.samples requests 1,000,000,000 samples, one epoch has 4.: that "
        "is "
        "more than 1,000 epochs",
    ):
        build_snapshot(context, OLD, ["megatron_rows"])
    assert context.lake.partition("megatron_rows", OLD).require() == before


def test_samples_longer_than_all_rows_are_no_samples(finished, tmp_path):
    """The index is empty and stands, and so is the mix, unless it is to have samples."""
    context = tiny_context(
        tmp_path,
        upstream=finished.root.parent / "upstream",
        megatron_rows=MegatronSettings(sequence_length=2000),
    )
    for snapshot in SNAPSHOTS:
        build_snapshot(context, snapshot)
    assert stage_named("blended_mix").build(context, "by-tokens").counts.kept == 0
    asking = msgspec.structs.replace(
        context.recipe, blended_mix={"asking": MixSettings(samples=10)}
    )
    with pytest.raises(
        BadInput,
        match="nothing to take samples from: every published snapshot is one without training "
        "samples .*sequence_length",
    ):
        stage_named("blended_mix").build(replace(context, recipe=asking), "asking")


def test_a_snapshot_that_takes_the_mixs_own_names_is_refused(tmp_path):
    """The index of a snapshot called `dataset` would lie where the mix's own arrays do."""
    context = tiny_context(
        tmp_path, upstream=tiny_upstream(tmp_path / "upstream", snapshots=["dataset"])
    )
    build_snapshot(context, "dataset")
    with pytest.raises(BadInput, match="a snapshot called 'dataset' cannot be mixed.*rename it"):
        stage_named("blended_mix").build(context, "by-tokens")


def test_rows_of_two_lengths_have_no_common_order(finished, tmp_path):
    """Each grid stands, the order says which has which length, and by one recipe it is made as if
    nothing had been.
    """
    context = tiny_context(tmp_path, upstream=finished.root.parent / "upstream")
    shorter = replace(context, recipe=changed(context.recipe, "token_grid", row_tokens=32))
    build_snapshot(context, OLD)
    build_snapshot(shorter, NEW)
    with pytest.raises(
        Mismatch,
        match="no common order: {'token_grid/2023-06': 64, 'token_grid/2023-14': 32}; materialize "
        "them by one "
        "recipe",
    ):
        stage_named("longcrawl").build(context, "all")
    assert unpublished(context.lake, "longcrawl")
    with pytest.raises(
        Mismatch,
        match="lengths have no common mix: {'megatron_rows/2023-06': 64, "
        "'megatron_rows/2023-14': 32}",
    ):
        stage_named("blended_mix").build(context, "by-tokens")
    assert digests(build_all(context)) == digests(finished.built)


def test_rows_longer_than_the_published_documents_are_refused(tmp_path, sound):
    """The tokens were published for shorter rows: the grid says so before it reads one, and nothing
    is published.
    """
    context = tiny_context(tmp_path, upstream=sound)
    build_snapshot(context, OLD, [*BEFORE_TOKENS, "token_documents"])
    longer = replace(
        context,
        recipe=msgspec.structs.replace(
            context.recipe,
            token_documents=TokenizingSettings(min_tokens=100),
            token_grid=GriddingSettings(row_tokens=100, heldout_fraction=0.2),
        ),
    )
    with pytest.raises(
        Mismatch,
        match="token_documents/2023-06 holds documents from 64 tokens on, rows have "
        "100.*materialize it by "
        "this one first",
    ):
        build_snapshot(longer, OLD, ["token_grid"])
    assert unpublished(context.lake, "token_grid")
    rebuilt = build_snapshot(longer, OLD, ["token_documents", "token_grid"])
    assert 0 < rebuilt["token_grid"].counts.kept < 24


def test_settings_that_keep_nothing_still_make_a_chain(tmp_path, sound):
    """No document has a million words: every stage of the snapshot stands empty, and the counts say
    where all went.
    """
    filtering = FilteringSettings(rules="redpajama-lucie", min_words=10**6)
    built = build_snapshot(
        tiny_context(tmp_path, upstream=sound, filtered_documents=filtering), OLD
    )
    assert (built["filtered_documents"].counts.seen, built["filtered_documents"].counts.kept) == (
        36,
        0,
    )
    assert sum(built["filtered_documents"].counts.dropped.values()) == 36
    assert built["megatron_rows"].counts.seen == 0


def test_every_refusal_is_one_of_ours():
    """`LcError` catches whatever a person can do wrong."""
    assert issubclass(BadInput, LcError)
    assert issubclass(Mismatch, LcError)
