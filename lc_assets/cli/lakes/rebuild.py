"""``lc rebuild``: build what is out of date, in order, and nothing else, in this process; see
`lc_assets.stages.rebuilding`.

Where ``DAGSTER_HOME`` is set, through Dagster, so that its history has the runs and the checks are
tested; otherwise by the stages' verbs, which costs nothing beside the work.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.lakes.plan import (
    OUT_OF_DATE,
    chosen_snapshots,
    look_at_all,
    recipe_of_lake,
    show_plans,
)
from lc_assets.cli.printing import complain, lasted, say

if TYPE_CHECKING:
    from lc_assets.build.stage import (
        BuildContext,
        Built,
    )
    from lc_assets.stages.planning import Plan, Run
    from lc_assets.stages.rebuilding import Rebuilt

FAILED = 1


def rebuild(
    lake: options.Lake,
    upstream: options.Upstream = options.REDPAJAMA_V2,
    crawl: options.Crawl = "",
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
    snapshot: options.Snapshots = None,
    own: Annotated[
        Path | None,
        typer.Option(
            "--own", envvar="LC_SNAPSHOTS", help="Text file with further snapshots of one's own."
        ),
    ] = None,
    workers: options.Workers = None,
    executor: options.Executor = "",
    task_seconds: options.TaskSeconds = 0.0,
    look_upstream: Annotated[
        bool, typer.Option("--look-upstream", help="Look first at what is upstream as it is now.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the plan and end with 3 when there is something to do."
        ),
    ] = False,
    stop: Annotated[
        bool,
        typer.Option("--stop", help="Stop at the first failure instead of going on with the rest."),
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option(
            "--dagster-home",
            envvar="DAGSTER_HOME",
            help="Go through Dagster, whose history lies there.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", help="Append a JSON line per shard: what became of it, seconds, rate."
        ),
    ] = None,
) -> None:
    """Build what is out of date, in order, and nothing else; print the plan first.

    A partition that fails is left alone with what waits for it, the others are built, and the
    command ends with 1. Through Dagster where DAGSTER_HOME is set, so that its history has it.

    Example: lc rebuild --lake lake --upstream sample --dry-run
    """
    from lc_assets.build.recipe import record_recipe
    from lc_assets.build.shard_runs import log_shards_to
    from lc_assets.stages import costing, planning
    from lc_assets.stages.rebuilding import rebuild as rebuild_all

    recipe = recipe_of_lake(str(lake), recipe)
    context = context_of(
        str(lake), upstream, crawl, recipe, withdrawn, workers, executor, task_seconds
    )
    names = chosen_snapshots(context.lake, context.upstream, snapshot, context.recipe.sources)
    looked = look_at_all(context, names) if look_upstream else {}

    def ask() -> "list[Plan]":
        return planning.plan(context.lake, context.recipe, names, **looked)

    plans = ask()
    behind = [made for made in plans if made.status != "current"]
    show_plans(plans, costing.costs_of(context.lake, context.recipe, behind), every=False)
    if dry_run or not behind:
        raise typer.Exit(OUT_OF_DATE if behind else 0)
    record_recipe(str(lake), recipe)
    started = time.monotonic()
    how = by_stages(context)
    if home is not None:
        how = through_dagster(
            context,
            home,
            recipe,
            own,
            crawl=crawl,
            withdrawn=withdrawn,
            executor=executor,
            task_seconds=task_seconds,
        )
    with log_shards_to(log), how as build:
        made = rebuild_all(ask, build, stop_at_once=stop)
    raise typer.Exit(conclude(made, time.monotonic() - started))


def context_of(
    lake: str,
    upstream: str,
    crawl: str,
    recipe: Path | None,
    withdrawn: str,
    workers: int | None,
    executor: str,
    task_seconds: float,
) -> "BuildContext":
    """A build context as the options name it, with progress on the terminal."""
    import os

    from lc_assets.build.building import executor_for
    from lc_assets.build.recipe import read_recipe
    from lc_assets.build.stage import BuildContext
    from lc_assets.execution.progress import on_terminal
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.upstream import Upstream

    opened, read, archives = open_lake(lake), Upstream(upstream), Upstream(crawl) if crawl else None
    return BuildContext(
        lake=opened,
        upstream=read,
        recipe=read_recipe(recipe, withdrawn=withdrawn),
        executor=executor_for(
            executor,
            lake=opened,
            reads=(read, archives),
            workers=workers or os.cpu_count() or 1,
            watch=on_terminal,
            task_seconds=task_seconds,
        ),
        crawl=archives,
        say=say,
    )


@contextlib.contextmanager
def by_stages(context: "BuildContext") -> "Iterator[Callable[[Run], None]]":
    """Build by the stages themselves, without Dagster."""

    def build(run: "Run") -> None:
        from lc_assets.errors import LcError
        from lc_assets.stages.catalogue import stage_named
        from lc_assets.stages.rebuilding import PartitionFailed

        for made in run.plans:
            started = time.monotonic()
            try:
                built = stage_named(made.stage).build(context, run.key)
            except LcError as error:
                raise PartitionFailed(made.name, str(error)) from error
            say(f"{made.name:<28} {lasted(time.monotonic() - started):>10}   {_counted(built)}")

    yield build


def _counted(built: "Built") -> str:
    if built.reused:
        return "found finished, nothing was computed"
    measured = built.published.receipt.measured
    taken = int(measured.get("shards_reused", 0))
    shards = (
        f", {int(measured.get('shards_computed', 0)):,} shards computed and {taken:,} reused"
        if taken
        else ""
    )
    return f"{built.counts.kept:,} of {built.counts.seen:,} kept{shards}"


@contextlib.contextmanager
def through_dagster(
    context: "BuildContext",
    home: Path,
    recipe: Path | None,
    own: Path | None,
    *,
    crawl: str,
    withdrawn: str,
    executor: str,
    task_seconds: float,
) -> "Iterator[Callable[[Run], None]]":
    """Build by runs of Dagster in this process, recorded in the history below ``home``."""
    from lc_assets.definitions import build_defs
    from lc_assets.orchestration.in_process import Recorder, instance_at

    defs = build_defs(
        lake=context.lake.url,
        upstream=context.upstream.root,
        recipe=str(recipe) if recipe else None,
        snapshots=str(own) if own else None,
        workers=getattr(context.executor, "workers", 1),
        crawl=crawl,
        withdrawn=withdrawn,
        executor=executor,
        task_seconds=task_seconds,
    )
    with instance_at(home) as instance:
        yield Recorder(defs, instance, say).build


def conclude(made: "Rebuilt", seconds: float) -> int:
    """Print what came of a build; return the command's exit status."""
    for words in made.failed.values():
        complain(words)
    waiting = f", {len(made.left):,} wait for them" if made.left and made.failed else ""
    waiting = (
        f", {len(made.left):,} cannot be built: {made.left[0].reasons[0]}"
        if made.left and not made.failed
        else waiting
    )
    failed = f", {len(made.failed):,} failed{waiting}" if made.failed else waiting
    say(f"{len(made.done):,} partitions built in {lasted(seconds)}{failed}")
    return FAILED if made.failed or made.left else 0
