"""Plans name the very version that a build would make, say what can go together, and what it would
cost: which is what it then costs.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import CorruptFile, LcError, Mismatch
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import Partition
from lc_assets.lake.receipts import Fingerprint
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.costing import costs_of, rate_of
from lc_assets.stages.planning import Plan, plan, runs_of
from lc_assets.stages.rebuilding import PartitionFailed, rebuild
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    N_LONG,
    SNAPSHOTS,
    build_all,
    tiny_context,
    tiny_documents,
    write_shard,
)
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot

OLD, NEW = SNAPSHOTS


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> BuildContext:
    """A lake in which everything is built; read only."""
    context = tiny_context(
        tmp_path_factory.mktemp("whole"), blended_mix={"by-tokens": MixSettings()}
    )
    build_all(context)
    return context


@pytest.fixture
def context(tmp_path, whole) -> BuildContext:
    """A copy of it, to be changed."""
    shutil.copytree(whole.lake.root.parent, tmp_path / "copy")
    return replace(
        whole,
        lake=Lake(tmp_path / "copy" / "lake"),
        upstream=replace(whole.upstream, root=str(tmp_path / "copy/upstream")),
    )


def with_filter(context: BuildContext, **changes) -> BuildContext:
    filtering = msgspec.structs.replace(context.recipe.filtered_documents, **changes)
    return replace(
        context, recipe=msgspec.structs.replace(context.recipe, filtered_documents=filtering)
    )


def behind(context: BuildContext) -> dict[str, Plan]:
    return {
        made.name: made
        for made in plan(context.lake, context.recipe, SNAPSHOTS)
        if made.status != "current"
    }


def a_plan(name: str, status: str, *waits_for: str, rejected: bool = False) -> Plan:
    stage, _, key = name.partition("/")
    target = None if waits_for else f"{stage}{key}".replace("-", "")
    return Plan(
        stage=stage, key=key, status=status, waits_for=waits_for, target=target, rejected=rejected
    )


def test_a_plan_names_the_version_that_a_build_makes(context):
    """Stage by stage down a snapshot after a changed rule: the target is the folder that
    appears.
    """
    changed = with_filter(context, min_words=100)
    n_built = 0
    while ready := [
        made for made in behind(changed).values() if made.target and made.status == "stale"
    ]:
        for made in ready:
            assert stage_named(made.stage).build(changed, made.key).published.version == made.target
            n_built += 1
    assert n_built >= 12
    assert behind(changed) == {}


def test_what_waits_has_no_target_and_says_for_what(context):
    made = behind(with_filter(context, min_words=100))
    assert made[f"filtered_documents/{OLD}"].waits_for == ()
    assert made[f"token_documents/{OLD}"].target is None
    assert made[f"token_documents/{OLD}"].waits_for == (
        f"filtered_documents/{OLD}",
        f"removed_documents/{OLD}",
    )
    assert made["longcrawl/all"].waits_for == tuple(f"token_grid/{key}" for key in SNAPSHOTS)


def test_each_pointer_is_read_once_however_many_ask(whole, monkeypatch):
    """84 snapshots that read all older ones would read 84 × 84 receipts."""
    asked: list[str] = []
    really = Partition._read_pointer
    monkeypatch.setattr(
        Partition, "_read_pointer", lambda self: asked.append(self.name) or really(self)
    )
    plan(whole.lake, whole.recipe, SNAPSHOTS)
    assert len(asked) == len(set(asked))
    assert len(asked) >= 20


def test_a_changed_rule_is_said_by_its_name():
    """Rules are a list; the words say which one changed and how, not both lists."""
    rules = [{"name": "short", "at_least": 3}, {"name": "loud", "at_most": 1}]
    old = Fingerprint(
        stage="s", key="k", code_version="1", params={"rules": {"rules": rules}}, inputs={}
    )
    new = msgspec.structs.replace(
        old, params={"rules": {"rules": [rules[0] | {"at_least": 4}, rules[1]]}}
    )
    swapped = msgspec.structs.replace(old, params={"rules": {"rules": rules[::-1]}})
    long = msgspec.structs.replace(old, params={"rules": {"rules": rules}, "list": ["word"] * 100})
    assert old.differences(new) == ["rules.rules.short.at_least 3 → 4"]
    assert old.differences(swapped) == ["the settings are in another order"]
    assert len(old.differences(long)[0]) < 200


def test_what_can_be_built_goes_together_by_key():
    """What waits for its own key goes along; what waits for another key, or cannot be read, does
    not; nor what follows that.
    """
    plans = [
        a_plan("raw_snapshot/a", "current"),
        a_plan("filtered_documents/a", "stale"),
        a_plan("filtered_documents/b", "stale"),
        a_plan("document_signatures/a", "waiting", "filtered_documents/a"),
        a_plan("near_duplicate_pairs/b", "waiting", "filtered_documents/a", "filtered_documents/b"),
        a_plan("removed_documents/b", "waiting", "near_duplicate_pairs/b"),
        a_plan("token_documents/a", "waiting"),
        a_plan("blended_mix/a", "missing"),
    ]
    found = [(run.key, run.stages) for run in runs_of(plans)]
    assert found == [
        ("a", ("filtered_documents", "document_signatures")),
        ("b", ("filtered_documents",)),
        ("a", ("blended_mix",)),
    ]
    assert runs_of([a_plan("filtered_documents/a", "current")]) == []


def test_what_was_refused_is_tried_again_by_people_only():
    plans = [
        a_plan("filtered_documents/a", "stale", rejected=True),
        a_plan("document_signatures/a", "waiting", "filtered_documents/a"),
        a_plan("filtered_documents/b", "stale"),
    ]
    assert [(run.key, run.stages) for run in runs_of(plans)] == [("b", ("filtered_documents",))]
    assert [(run.key, run.stages) for run in runs_of(plans, rejected=True)] == [
        ("a", ("filtered_documents", "document_signatures")),
        ("b", ("filtered_documents",)),
    ]


def test_a_runs_identity_is_what_it_is_to_make():
    """The same while nothing changed; another version, or another member, gives another."""
    one, two = (
        a_plan("filtered_documents/a", "stale"),
        a_plan("document_signatures/a", "waiting", "filtered_documents/a"),
    )
    other = msgspec.structs.replace(one, target="else")
    identities = {
        runs_of(plans)[0].identity for plans in ([one], [one, two], [other], [other, two])
    }
    assert len(identities) == 4
    assert runs_of([one, two])[0].identity == runs_of([one, two])[0].identity


def test_the_cost_is_what_it_then_costs(context):
    """One shard of three changed upstream: the plan says one to do and two to take over, and its
    bytes; so it comes.
    """
    shard = Shard.parse(f"{NEW}/0001/en_head")
    write_shard(
        Path(context.upstream.root), shard, tiny_documents(shard, seed=5), duplicates=[N_LONG + 3]
    )
    build_snapshot(context, NEW, ["raw_snapshot"])
    for stage in (*BEFORE_TOKENS[1:], "token_documents", "token_grid"):
        plans = [made for made in behind(context).values() if made.name == f"{stage}/{NEW}"]
        if not plans:
            continue
        (cost,) = costs_of(context.lake, context.recipe, plans)
        measured = stage_named(stage).build(context, NEW).published.receipt.measured
        assert cost.bytes_read == measured["bytes_read"], stage
        if stage == "contaminated_documents":  # no evaluation sets: nothing is read
            assert (cost.shards, cost.files, cost.bytes_read) == (0, 0, 0)
        elif stage_named(stage).sharding:
            assert (
                (cost.shards, cost.reused)
                == (measured["shards_computed"], measured["shards_reused"])
                == (1, 2)
            )
            assert cost.files in {1, 2, 3}
            assert cost.seconds is not None


def test_what_nobody_can_know_is_said_to_be_unknown(tmp_path, whole):
    """Nothing built: nothing is known. What waits: at most what it took last time."""
    empty = Lake(tmp_path / "empty")
    for cost in costs_of(empty, whole.recipe, plan(empty, whole.recipe, SNAPSHOTS)):
        n_bytes = 0 if cost.name == "withdrawn_documents/all" else None  # no lists, so no documents
        assert (cost.seconds, cost.bytes_read, cost.at_most) == (None, n_bytes, False)
    changed = with_filter(whole, min_words=100)
    costs = {
        cost.name: cost for cost in costs_of(changed.lake, changed.recipe, behind(changed).values())
    }
    assert costs[f"filtered_documents/{OLD}"].shards == 3
    assert not costs[f"filtered_documents/{OLD}"].at_most
    waiting = costs[f"token_documents/{OLD}"]
    measured = whole.lake.partition("token_documents", OLD).require().receipt.measured
    assert (waiting.at_most, waiting.bytes_read) == (True, None)
    assert waiting.seconds == pytest.approx(measured["seconds"] + measured["audit_seconds"])


def test_seconds_go_by_the_bytes():
    """Twice the bytes, twice the seconds; builds that took shards over count by what they read, and
    say nothing of a whole audit.
    """
    full = {"seconds": 10.0, "audit_seconds": 2.0, "bytes_read": 100.0}
    part = {"seconds": 1.0, "audit_seconds": 2.0, "bytes_read": 10.0, "shards_reused": 9.0}
    assert rate_of([full]) == rate_of([full, part]) == rate_of([full, {"seconds": 3.0}, part])
    assert (rate_of([full]).per_byte_read, rate_of([full]).audit_per_byte_read) == (0.1, 0.02)


class Toy:
    """A chain of two stages for two keys; what was built is current; some fail."""

    def __init__(self, *failing: str, stubborn: str = "") -> None:
        self.failing, self.stubborn, self.built = failing, stubborn, list[str]()

    def ask(self) -> list[Plan]:
        plans = []
        for key in "ab":
            first, second = f"filtered_documents/{key}", f"document_signatures/{key}"
            done = first in self.built and first != self.stubborn
            plans.append(a_plan(first, "current" if done else "stale"))
            plans.append(
                a_plan(
                    second,
                    "current" if second in self.built else "waiting",
                    *(() if done else (first,)),
                )
            )
            if done and second not in self.built:
                plans[-1] = a_plan(second, "stale")
        return plans

    def build(self, run) -> None:
        for made in run.plans:
            if made.name in self.failing:
                raise PartitionFailed(made.name, "no good")
            self.built.append(made.name)


def test_a_rebuild_builds_everything_once_and_in_order():
    toy = Toy()
    made = rebuild(toy.ask, toy.build)
    assert (
        toy.built
        == made.done
        == [
            "filtered_documents/a",
            "document_signatures/a",
            "filtered_documents/b",
            "document_signatures/b",
        ]
    )
    assert (made.failed, made.left) == ({}, [])


def test_what_fails_is_left_alone_with_what_waits_for_it():
    """The other key is built; the failure is told, and what waits for it is named."""
    toy = Toy("filtered_documents/a")
    made = rebuild(toy.ask, toy.build)
    assert toy.built == made.done == ["filtered_documents/b", "document_signatures/b"]
    assert made.failed == {"filtered_documents/a": "filtered_documents/a: no good"}
    assert [left.name for left in made.left] == ["document_signatures/a"]


def test_a_failure_in_the_middle_of_a_run_keeps_what_was_done_before():
    toy = Toy("document_signatures/a")
    made = rebuild(toy.ask, toy.build)
    assert made.done == ["filtered_documents/a", "filtered_documents/b", "document_signatures/b"]
    assert list(made.failed) == ["document_signatures/a"]
    assert made.left == []


def test_what_stands_after_a_failure_in_its_run_and_does_not_wait_for_it_is_built():
    """A run holds partitions of one key, and not all of them read one another."""
    stages = ["document_keys", "contaminated_documents"]
    built = []

    def ask():
        return [
            a_plan(f"{stage}/a", "current" if stage in built else "missing") for stage in stages
        ]

    def build(run) -> None:
        for made in run.plans:
            if made.stage == "document_keys":
                raise PartitionFailed(made.name, "no good")
            built.append(made.stage)

    made = rebuild(ask, build)
    assert made.failed == {"document_keys/a": "document_keys/a: no good"}
    assert built == ["contaminated_documents"]


def test_the_first_failure_stops_when_asked():
    with pytest.raises(PartitionFailed, match="filtered_documents/a: no good"):
        rebuild(
            Toy("filtered_documents/a").ask, Toy("filtered_documents/a").build, stop_at_once=True
        )


def test_what_is_out_of_date_after_it_was_built_is_an_error_and_not_a_loop():
    toy = Toy(stubborn="filtered_documents/a")
    made = rebuild(toy.ask, toy.build)
    assert "is out of date after it was built" in made.failed["filtered_documents/a"]
    assert toy.built.count("filtered_documents/a") == 1
    assert issubclass(Mismatch, LcError)


def test_a_real_rebuild_ends_current_and_does_not_touch_the_rest(context):
    """By the verbs, after a changed rule, with a stage that fails for one snapshot."""
    changed = with_filter(context, min_words=100)
    before = {
        path: path.stat().st_mtime_ns
        for path in context.lake.root.rglob("*")
        if path.is_file() and path.name != "current.json"
    }

    def build(run) -> None:
        for made in run.plans:
            try:
                if made.name == f"token_grid/{NEW}":
                    raise CorruptFile("no good")
                stage_named(made.stage).build(changed, made.key)
            except LcError as error:
                raise PartitionFailed(made.name, str(error)) from error

    made = rebuild(lambda: plan(changed.lake, changed.recipe, SNAPSHOTS), build)
    assert list(made.failed) == [f"token_grid/{NEW}"]
    assert {left.name for left in made.left} == set(behind(changed)) - {f"token_grid/{NEW}"}
    assert f"megatron_rows/{OLD}" in made.done
    after = {path: path.stat().st_mtime_ns for path in before if path.name != ".lock"}
    assert after == {path: when for path, when in before.items() if path.name != ".lock"}
