"""What another lake has is taken from it: planned so, in folders and buckets, and by Dagster."""

import shutil
from dataclasses import replace

import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from msgspec import structs
from typer.testing import CliRunner

from lc_assets.cli.app import app
from lc_assets.definitions import ASSET_OF
from lc_assets.errors import DamagedInput, Unreachable
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.stages.catalogue import read_by, stage_named
from lc_assets.stages.costing import costs_of
from lc_assets.stages.snapshots import planner_of
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import SNAPSHOTS, build_all, recipe_file, tiny_lake, tokenizer_json
from lc_assets_tests.materializations import skip_plots
from lc_assets_tests.orchestration.clockwork import Clockwork
from lc_assets_tests.orchestration.test_staleness import CHECK, expected, look, observed, warned

OLD, _ = SNAPSHOTS
FIRST = ("raw_snapshot", "filtered_documents", "document_signatures")


@pytest.fixture(scope="module")
def by_gpt2(tmp_path_factory):
    """A lake of the whole chain."""
    return tiny_lake(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return str(tokenizer_json(tmp_path_factory.mktemp("tokenizer") / "two.json"))


def by_another(folder, lake, tokenizer, *reused):
    """A context over the same upstream, by another vocabulary, into an empty lake."""
    tokens = structs.replace(lake.context.recipe.token_documents, tokenizer=tokenizer)
    recipe = structs.replace(lake.context.recipe, token_documents=tokens, reuses=reused)
    return replace(lake.with_recipe(recipe), lake=Lake(folder))


def test_a_recipe_takes_what_leads_to_the_tokens_from_the_lake_of_another(
    tmp_path, by_gpt2, tokenizer
):
    """All that its own build would give; what is the same is there under a second name. Exclusions
    are not the same: a text with too few tokens is no copy that is kept.
    """
    wanted = build_all(by_another(tmp_path / "alone", by_gpt2, tokenizer))
    context = by_another(tmp_path / "lake", by_gpt2, tokenizer, str(by_gpt2.root))
    plans = {made.name: made for made in planner_of(context, look=True)()}
    found = build_all(context)
    assert {name: one.published.digest for name, one in found.items()} == {
        name: one.published.digest for name, one in wanted.items()
    }
    reused = {name for name, one in found.items() if one.reused}
    assert {name for name, made in plans.items() if made.taken_from} == reused
    leading = {*read_by(stage_named("token_documents"), context.recipe)}
    assert {name.partition("/")[0] for name in reused} >= leading - {"removed_documents"}
    for name, one in found.items():
        ours, theirs = one.published, by_gpt2.built[name].published
        assert plans[name].target in ({ours.version} if name in reused else {ours.version, None})
        assert (ours.version == theirs.version) == (name in reused)
        for fact in ours.receipt.files if name in reused else ():
            assert (ours.home / fact.path).samefile(theirs.home / fact.path)
    assert {made.status for made in planner_of(context, look=True)()} == {"current"}


def test_a_lake_that_is_missing_or_damaged_is_not_taken_from(tmp_path, by_gpt2):
    """The first is no error: it may be built later. A file that has lost bytes is made anew, one
    with others is refused.
    """
    other = shutil.copytree(by_gpt2.root, tmp_path / "other")
    reused = (str(tmp_path / "nowhere"), str(other))
    context = by_another(tmp_path / "lake", by_gpt2, "gpt2", *reused)
    snapshots, filtered = map(stage_named, ("raw_snapshot", "filtered_documents"))
    old, new = SNAPSHOTS
    (short,) = other.glob(f"raw_snapshot/{old}/*/manifest.parquet")
    short.write_bytes(short.read_bytes()[:-1])
    taken = {made.name: made.taken_from for made in planner_of(context, look=True)()}
    assert [taken[f"raw_snapshot/{key}"] for key in (old, new)] == ["", str(other)]
    assert [snapshots.build(context, key).reused for key in (old, new)] == [False, True]
    changed = next(other.glob(f"filtered_documents/{old}/*/*.documents.parquet"))
    changed.write_bytes(bytes(changed.stat().st_size))
    with pytest.raises(DamagedInput, match=r"differs from its receipt"):
        filtered.build(context, old)
    assert filtered.build(replace(context, recipe=by_gpt2.context.recipe), old).reused is False


def test_a_plan_says_from_where_and_that_it_costs_nothing(tmp_path, by_gpt2, tokenizer):
    """With and without a look upstream; what is made of what is taken has a target at once, and
    what changes there later is planned as ever.
    """
    context = by_another(tmp_path / "lake", by_gpt2, tokenizer, str(by_gpt2.root))
    by_looking, plans = (planner_of(context, look=look)() for look in (True, False))
    assert by_looking == plans
    taken = {made.name: made for made in plans if made.taken_from}
    pairs = taken[f"near_duplicate_pairs/{OLD}"]
    assert pairs.why == f"never built; taken from {by_gpt2.root}"
    assert pairs.waits_for == (f"filtered_documents/{OLD}", f"signature_index/{OLD}")
    removed = next(made for made in plans if made.name == f"removed_documents/{OLD}")
    assert (removed.status, removed.taken_from, bool(removed.waits_for)) == ("missing", "", True)
    costs = {cost.name: cost.seconds for cost in costs_of(context.lake, context.recipe, plans)}
    assert {costs[name] for name in taken} == {0.0}
    assert costs[removed.name] is None
    recipe = recipe_file(tmp_path / "recipe.toml", context.recipe)
    root = ["--lake", str(context.lake.root), "--upstream", context.upstream.root]
    said = CliRunner().invoke(app, ["plan", *root, "--recipe", str(recipe)])
    assert said.exit_code == 3, said.output
    behind = f"0 current, {len(plans)} out of date, {len(taken)} of these in another lake"
    assert behind in " ".join(said.stdout.split())
    assert not context.lake.root.exists()


def test_what_is_stale_is_taken_too_and_stays_without_the_other_lake(tmp_path, by_gpt2):
    """A change to what the other lake has: the plan says both, and the build computes nothing."""
    other = shutil.copytree(by_gpt2.root, tmp_path / "other")
    context = by_another(tmp_path / "lake", by_gpt2, "gpt2", str(other))
    snapshots, filtered = map(stage_named, ("raw_snapshot", "filtered_documents"))
    settings = context.recipe.filtered_documents
    changed = structs.replace(settings, min_words=settings.min_words + 1)
    recipe = structs.replace(context.recipe, filtered_documents=changed)
    assert snapshots.build(context, OLD).reused
    assert not filtered.build(replace(context, recipe=recipe), OLD).reused
    planned = planner_of(context, [OLD], look=True, until=["filtered_documents"])
    stale = planned()[-1]
    assert stale.reasons[0] == "min_words 41 → 40"
    assert stale.reasons[-1] == f"taken from {other}"
    assert filtered.build(context, OLD).reused
    shutil.rmtree(other)
    assert [made.status for made in planned()] == ["current"] * 2
    assert filtered.build(context, OLD).published.damage() == []


@pytest.mark.parametrize(
    ("own", "other"), [("gs://crawl/own", ""), ("", "gs://crawl/other"), ("gs://crawl/own",) * 2]
)
def test_lakes_in_buckets_take_and_are_taken_from(
    tmp_path, by_gpt2, tokenizer, monkeypatch, own, other
):
    """Into a bucket, from one, and from one to another; a bucket that does not answer is an error,
    since what it has would be made anew.
    """
    with bucket_server(monkeypatch) as server:
        monkeypatch.setenv("LC_CACHE", str(tmp_path / "cache"))
        other = other.replace("own", "other") or str(by_gpt2.root)
        if other != str(by_gpt2.root):
            filled = replace(by_gpt2.context, lake=open_lake(other))
            for name in FIRST:
                stage_named(name).build(filled, OLD)
            shutil.rmtree(tmp_path / "cache")
        context = by_another(tmp_path / "lake", by_gpt2, tokenizer, other)
        context = replace(context, lake=open_lake(own)) if own else context
        planner = planner_of(context, [OLD], look=True)
        plans = {made.stage: made for made in planner() if made.stage in FIRST}
        assert {made.taken_from for made in plans.values()} == {other}
        for name in FIRST:
            built = stage_named(name).build(context, OLD)
            assert built.reused
            assert built.published.version == plans[name].target
            assert built.published.digest == by_gpt2.built[f"{name}/{OLD}"].published.digest
            assert built.published.damage() == []
        if own:  # a machine with nothing at hand reads what was taken
            away = open_lake(own, environment={"LC_CACHE": str(tmp_path / "away")})
            assert away.partition(FIRST[1], OLD).require().damage() == []
        assert {made.status for made in planner() if made.stage in FIRST} == {"current"}
        if not own:
            server.faults = {"state": [400], "read": [400]}
            with pytest.raises(Unreachable):
                stage_named("document_keys").build(context, OLD)


@pytest.fixture
def clock(tmp_path, by_gpt2, tokenizer, monkeypatch):
    """A code location whose recipe reuses the lake; nothing is built."""
    skip_plots(monkeypatch)
    recipe = by_another(tmp_path, by_gpt2, tokenizer, str(by_gpt2.root)).recipe
    recipe = structs.replace(recipe, target="token_documents")
    return Clockwork(tmp_path / "clock", by_gpt2.context.upstream.root, recipe)


def materialize(clock, asked) -> dict[str, str]:
    """What a run of Dagster says of each partition that it materialized."""
    ended = clock.materialize(asked.stages, asked.partition)
    assert ended.success, [event.message for event in ended.all_events if event.is_failure]
    failed = [found for found in ended.get_asset_check_evaluations() if not found.passed]
    assert {found.check_name for found in failed} <= {CHECK}
    return {
        f"{found.asset_key.to_user_string()}/{found.partition or GLOBAL}": found.metadata[
            "built"
        ].value
        for event in ended.get_asset_materialization_events()
        if (found := event.materialization)
    }


def test_dagster_takes_it_too(clock, by_gpt2):
    """By automation: each partition is requested once, runs say of what was taken that nothing was
    computed, and the check warns of it until it is here. Then nothing is stale or out of date.
    """
    clock.look()
    look(clock)
    assert warned(clock) == expected(clock) != set()
    name = f"filtered_documents/{OLD}"
    assert observed(clock, *name.split("/")) == f"missing: never built; taken from {by_gpt2.root}"
    planned, said, n_asked = clock.planned(), {}, 0
    while asked := clock.tick(run=False):
        for one in asked:
            n_asked += len(one.stages)
            said |= materialize(clock, one)
    assert n_asked == len(said) == len(planned)
    taken = {name for name, made in planned.items() if made.taken_from}
    assert {name for name, built in said.items() if "nothing was computed" in built} == taken
    assert name in taken
    look(clock)
    assert warned(clock) == expected(clock) == set()
    assert clock.tick() == clock.night() == []
    resolver = CachingStaleStatusResolver(
        clock.instance, clock.defs.resolve_asset_graph(), LoadingContextForTest(clock.instance)
    )
    built = [name.split("/") for name in said]
    statuses = {
        resolver.get_status(ASSET_OF[stage], None if key == GLOBAL else key) for stage, key in built
    }
    assert statuses == {StaleStatus.FRESH}
