"""The parts of a made-up scale that ask: plans, checks, look-ups and ticks; they build nothing
(`scale_parts`).
"""

import math
from collections.abc import Callable

import numpy as np

from lc_assets.builds.building import (
    check_input_of,
    run_check,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.orchestration.assets import WHOLE, every_file_is_as_published, findings_of
from lc_assets.orchestration.automation import DagsterPlanner
from lc_assets.stages import costing, planning, watching
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage import histories, tracing, whereabouts
from lc_assets.stages.rows.token_grid import (
    every_row_is_planned_once,
    order_and_shifts_are_uniform,
    train_and_heldout_share_nothing,
)
from lc_assets_tests.benchmarks import scaled_lake as made
from lc_assets_tests.benchmarks.scaled_lake import RECIPE, Bench, Measured

GRID_CLAIMS = (
    every_row_is_planned_once,
    train_and_heldout_share_nothing,
    order_and_shifts_are_uniform,
)
"""Those that read tables only."""
LOOK_UPS = 200


def plan_current(bench: Bench) -> Measured:
    """`lc plan` where everything is current, costs included; partitions."""

    def ask() -> int:
        plans = planning.plan(bench.lake, RECIPE, bench.scale.snapshots)
        behind = [made.name for made in plans if made.status != "current"]
        assert not behind, behind[:5]
        costing.costs_of(bench.lake, RECIPE, plans)
        return len(plans)

    return ask


def plan_stale(bench: Bench) -> Measured:
    """`lc plan` after a threshold has changed: every snapshot's shards are compared with those that
    stand; shards to do.
    """
    recipe = Recipe(
        raw_snapshot=RECIPE.raw_snapshot, filtered_documents=FilteringSettings(min_words=20_000)
    )

    def ask() -> int:
        costs = costing.costs_of(
            bench.lake, recipe, planning.plan(bench.lake, recipe, bench.scale.snapshots)
        )
        n_shards = sum(
            cost.shards or 0 for cost in costs if cost.name.startswith("filtered_documents/")
        )
        assert n_shards == len(bench.scale.snapshots) * bench.scale.n_shards * len(made.BUCKETS)
        return n_shards

    return ask


def checks_of(stage: str, *, only: bool = False) -> Callable[[Bench], Measured]:
    """Every claim of a stage as an asset check, on every snapshot or on the one that is whole;
    partitions.
    """

    def part(bench: Bench) -> Measured:
        found = stage_named(stage)
        keys = [bench.scale.whole] if only else bench.lake.keys(stage)
        chosen = {claim.__name__ for claim in found.checks} | {WHOLE}

        def check() -> int:
            for key in keys:
                findings = findings_of(bench.lake, found, key, chosen, recipe=RECIPE)
                wrong = [finding for finding in findings if not finding.passed]
                assert not wrong, wrong
            return len(keys)

        return check

    return part


def checks_of_row_tables(bench: Bench) -> Measured:
    """Those claims of `grid` that read tables only, as asset checks, and its files against the
    receipt; partitions.
    """

    def check() -> int:
        published = bench.lake.published("token_grid")
        for version in published.values():
            evidence = check_input_of(bench.lake, version)
            findings = [run_check(claim, evidence) for claim in GRID_CLAIMS] + [
                every_file_is_as_published(version)
            ]
            assert all(finding.passed for finding in findings), findings
        return len(published)

    return check


def look_ups(bench: Bench) -> Measured:
    """`lc trace` both ways, every file opened anew: position → document; id, address, domain →
    rows; address → documents.
    """
    order = bench.lake.partition("longcrawl").require()
    n_rows = len(GlobalOrder.open(order.home, "train", pass_over=False))
    positions = np.random.default_rng(1).integers(0, n_rows, LOOK_UPS).tolist()

    def ask() -> int:
        lake = bench.lake
        for position in positions:
            row = tracing.row_of_order(lake, "train", position)
            (found,) = whereabouts.find(lake, "document", row.id)
            assert found.position == position
            assert row in whereabouts.rows_by(lake, "url", row.url)
            assert whereabouts.rows_by(lake, "domain", row.url.split("/")[2])
            assert [line["id"] for line in histories.documents_by(lake, "url", row.url)] == [row.id]
            assert histories.filter_values(lake, row) is not None
        return len(positions)

    return ask


def tick_upstream(bench: Bench) -> Measured:
    """A sensor's tick over an upstream that is listed, as a bucket is: a state per snapshot;
    files.
    """
    watching.TICK_SECONDS = math.inf

    def look() -> int:
        found = watching.survey(
            made.MadeUpUpstream(bench.scale),  # type: ignore[arg-type]
            RECIPE.raw_snapshot,
            known=bench.scale.snapshots,
            begun=(),
        )
        assert len(found.states) == len(bench.scale.snapshots)
        return len(found.states) * bench.scale.n_shards * len(made.BUCKETS) * len(made.SHARD_BYTES)

    return look


def tick_out_of_date(bench: Bench) -> Measured:
    """A tick of what asks for everything that is out of date: one plan; partitions."""

    def look() -> int:
        planner = DagsterPlanner(
            lake=lambda: bench.lake,
            recipe=lambda: RECIPE,
            snapshots=frozenset(bench.scale.snapshots),
        )
        assert planner.runs() == []
        return len(bench.scale.snapshots)

    return look
