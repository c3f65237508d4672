"""``lc plan``: what is out of date and why (`lc_assets.stages.planning`), and its estimated cost
(`lc_assets.stages.costing`).
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated

import typer
from typer import Option

from lc_assets.builds.building import context_for
from lc_assets.builds.recipe_files import read_recipe, recorded_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.cli import options
from lc_assets.cli.printing import lasted, say, sized, table
from lc_assets.cli.reports import add_results
from lc_assets.execution.progress import on_terminal
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.records import record
from lc_assets.stages import costing
from lc_assets.stages.catalogue import refused_by
from lc_assets.stages.costing import Cost
from lc_assets.stages.planning import Plan
from lc_assets.stages.snapshots import chosen_snapshots, planner_of
from lc_assets.vocabulary import REDPAJAMA_V2

OUT_OF_DATE = 3


@record
class LakeOptions:
    """The lake, its sources and its settings."""

    lake: options.Lake
    upstream: options.Upstream = REDPAJAMA_V2
    crawl: options.Crawl = ""
    recipe: options.Recipe = None
    withdrawn: options.Withdrawn = ""
    snapshot: options.Snapshots = None
    until: options.Until = None


@record
class ExecutionOptions:
    """Where tasks run, and for how long."""

    workers: options.Workers = None
    executor: options.Executor = ""
    task_seconds: options.TaskSeconds = 0.0

    @property
    def n_workers(self) -> int:
        """Processes on this machine."""
        return self.workers or os.cpu_count() or 1


def plan(
    where: LakeOptions,
    look_upstream: bool = False,
    every: Annotated[bool, Option("--all")] = False,
    calibrate: bool = False,
) -> None:
    """List what is out of date, why, and what building it takes; exit with 3 when
    something is.

    Compares receipts with inputs, settings and code; builds nothing in the lake. Without --recipe:
    the recipe that the lake was last built by. Seconds are estimated from past builds, by the byte;
    with --calibrate from builds of some shards outside the lake. Without --snapshot: the snapshots
    that the lake holds or the upstream folder lists.

    Args:
        look_upstream: compare with the upstream, and the crawl, as they are now.
        every: show what is current too.
        calibrate: estimate what the lake has not built yet, from a minute's builds of some shards.

    Example: lc plan --lake lake --look-upstream
    """
    context = context_of(recipe_of_lake(where), ExecutionOptions())
    plans = planner_of(context, where.snapshot, look=look_upstream, until=where.until)()
    add_results(partitions=[made for made in plans if every or made.status != "current"])
    filled = _calibrated(context, where.snapshot) if calibrate else list
    behind = show_plans(context, plans, every=every, filled=filled)
    raise typer.Exit(OUT_OF_DATE if behind else 0)


def _calibrated(
    context: BuildContext, named: list[str] | None
) -> Callable[[Iterable[Cost]], list[Cost]]:
    """A function that fills in the seconds of costs; prints what it was measured on."""
    from lc_assets.stages.calibrating import calibrate

    at_once = ExecutionOptions().n_workers
    found = calibrate(context, chosen_snapshots(context, named), at_once=at_once)
    built = ", ".join(f"{n_shards:,} shards of {key}" for key, n_shards in found.n_shards.items())
    say(f"calibrated by builds of up to {built}")
    rows = [
        (f"{name}/{key}", lasted(line.fixed), lasted(line.per_byte * 1e9))
        for key, lines in found.lines.items()
        for name, line in lines.items()
    ]
    table(("stage", "a partition", "and a GB upstream"), rows)
    return found.filled


def recipe_of_lake(where: LakeOptions) -> LakeOptions:
    """The same with the recipe that the lake was last built by, unless one is named; prints
    which.
    """
    recorded = recorded_recipe(where.lake) if where.recipe is None else None
    if recorded is None:
        return where
    say(f"recipe: {recorded}, by which the lake was last built")
    return replace(where, recipe=recorded)


def context_of(where: LakeOptions, execution: ExecutionOptions) -> BuildContext:
    """A build context as the options name it, with progress on the terminal."""
    return context_for(
        open_lake(where.lake),
        read_recipe(where.recipe, withdrawn=where.withdrawn),
        upstream=where.upstream,
        crawl=where.crawl,
        executor=execution.executor,
        workers=execution.n_workers,
        task_seconds=execution.task_seconds,
        watch=on_terminal,
        say=say,
    )


def show_plans(
    context: BuildContext,
    plans: list[Plan],
    *,
    every: bool,
    filled: Callable[[Iterable[Cost]], list[Cost]] = list,
) -> int:
    """Print the plans, or those that are not current, what they would cost, and a sentence with the
    counts; and which stages the recipe cannot have. Return how many are not current.

    Args:
        context: provides lake and recipe.
        plans: of all partitions.
        every: whether to print what is current too.
        filled: adds seconds to costs.
    """
    costs = filled(costing.costs_of(context.lake, context.recipe, plans))
    shown = [made for made in plans if every or made.status != "current"]
    by_name = {cost.name: cost for cost in costs}
    if shown:
        table(
            ("partition", "status", "why", "shards", "reads", "about"),
            [_line(made, by_name.get(made.name)) for made in shown],
        )
    behind = sum(made.status != "current" for made in plans)
    taken = sum(bool(made.taken_from) for made in plans)
    say(
        f"{len(plans):,} partitions: {len(plans) - behind:,} current, {behind:,} out of "
        f"date{f', {taken:,} of these in another lake' if taken else ''}{_together(costs)}"
    )
    for name, why in refused_by(context.recipe).items():
        say(f"{name} is left out: {why}")
    return behind


def _line(made: Plan, cost: Cost | None) -> tuple[str | None, ...]:
    line = made.name, made.status, made.why
    if cost is None:
        return *line, None, None, None if made.seconds is None else lasted(made.seconds)
    n_shards = None if cost.shards is None else cost.shards + (cost.reused or 0)
    return (
        *line,
        None if n_shards is None else f"{cost.shards:,} of {n_shards:,}",
        None if cost.bytes_read is None else f"{cost.files:,} files, {sized(cost.bytes_read)}",
        "?" if cost.seconds is None else f"{'≤ ' if cost.at_most else ''}{lasted(cost.seconds)}",
    )


def _together(costs: list[Cost]) -> str:
    """What is known of all of them, and of how many nothing is."""
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    to_compute, to_reuse, n_bytes = (
        sum(getattr(cost, name) or 0 for cost in costs)
        for name in ("shards", "reused", "bytes_read")
    )
    at_most = "at most " if any(cost.at_most for cost in costs) else ""
    words = {
        f"{to_compute:,} shards to compute, {to_reuse:,} to reuse": to_compute or to_reuse,
        f"{sized(n_bytes)} to read": n_bytes,
        f"{at_most}about {lasted(sum(known))}": known,
        f"unknown for {len(costs) - len(known):,}": len(known) < len(costs),
    }
    shown = ", ".join(sentence for sentence, is_shown in words.items() if is_shown)
    return f"; {shown}" if shown else ""
