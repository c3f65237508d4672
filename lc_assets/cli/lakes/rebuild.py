"""``lc rebuild``: build what is out of date, in order, and nothing else, in this process; see
`lc_assets.stages.rebuilding`.

Where ``DAGSTER_HOME`` is set, stages run through Dagster, so that its history has the runs and the
results of the checks; otherwise they are called directly, without overhead.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from lc_assets.builds.recipe_files import RECIPE_FILE, read_recipe, recorded_content
from lc_assets.builds.shard_runs import log_shards_to
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.cli import options
from lc_assets.cli.lakes.plan import (
    OUT_OF_DATE,
    ExecutionOptions,
    LakeOptions,
    context_of,
    recipe_of_lake,
    show_plans,
)
from lc_assets.cli.printing import lasted, print_error, say
from lc_assets.errors import BadInput, Busy
from lc_assets.lake.lake import Lake
from lc_assets.sources.opening import known_snapshots
from lc_assets.stages.documents.shard_inputs import n_skipped
from lc_assets.stages.planning import Plan, Run
from lc_assets.stages.rebuilding import Rebuilt, build_run, damage_of, rebuild as rebuild_all
from lc_assets.stages.snapshots import chosen_snapshots, planner_of

FAILED = 1


def rebuild(
    where: LakeOptions,
    execution: ExecutionOptions,
    own: Annotated[Path | None, Option(envvar="LC_SNAPSHOTS")] = None,
    look_upstream: bool = False,
    dry_run: bool = False,
    stop: bool = False,
    repair: bool = False,
    verify: bool = False,
    home: options.DagsterHome = None,
    log: Path | None = None,
) -> None:
    """Build what is out of date, in order, and nothing else; print the plan first.

    When a partition fails, it and what waits for it are skipped, the others are built, and the
    command ends with 1. Where DAGSTER_HOME is set it runs through Dagster, whose history has it.

    Args:
        own: text file with the names of your own snapshots.
        look_upstream: look first at what is upstream as it is now.
        dry_run: print the plan and end with 3 when there is something to do.
        stop: stop at the first failure instead of building the rest.
        repair: build only versions that lost files; find them in a bucket too.
        verify: first read every byte of these, and remove damaged files.
        log: append a JSON line per shard: its outcome, seconds, rate.

    Example: lc rebuild --lake lake --upstream sample --dry-run
    """
    where = recipe_of_lake(where)
    context = context_of(where, execution)
    damaged = _damaged(context.lake, verify=verify, remove=not dry_run) if repair or verify else []
    planned = planner_of(context, where.snapshot, look=look_upstream, until=where.until)

    def plan() -> list[Plan]:
        plans = planned()
        return [made for made in plans if not repair or _is_repaired(context.lake, made)]

    plans = plan()
    behind = show_plans(context, plans, every=False)
    if dry_run:
        raise typer.Exit(OUT_OF_DATE if behind or damaged else 0)
    status = behind and run(
        where, execution, context, plan, home=home, own=own, log=log, stop_at_once=stop
    )
    raise typer.Exit(status or _report_left(context.lake, damaged))


def _damaged(lake: Lake, *, verify: bool, remove: bool) -> list[str]:
    """Names of damaged versions, see `damage_of`; prints their files."""
    found = dict(damage_of(lake, verify=verify, remove=remove))
    for name, paths in found.items():
        for path in paths:
            say(f"{lake.url}/{name}/{path}: missing or damaged")
    return list(found)


def _is_repaired(lake: Lake, made: Plan) -> bool:
    """Whether a partition is current, damaged, or has lost its pointer."""
    lost = made.status == "missing" and lake.partition(made.stage, made.key).version_names()
    return made.status == "current" or made.damaged or bool(lost)


def _report_left(lake: Lake, damaged: Collection[str]) -> int:
    """Name the damaged versions that were not built again; return an exit status."""
    left = [name for name, _ in damage_of(lake, verify=False, remove=False) if name in damaged]
    for name in left:
        print_error(
            f"{lake.url}/{name}: is not built again: see `lc plan`; if it is of another recipe, "
            "`lc rebuild --recipe` with that one builds it, and then with the present recipe "
            "publishes the present versions"
        )
    return FAILED if left else 0


def run(
    where: LakeOptions,
    execution: ExecutionOptions,
    context: BuildContext,
    plan: Callable[[], list[Plan]],
    *,
    home: Path | None,
    own: Path | None = None,
    log: Path | None = None,
    stop_at_once: bool = False,
) -> int:
    """Record the recipe and build what is out of date, through Dagster when it has a ``home``;
    return the command's exit status.
    """
    content = recorded_content(where.lake, where.recipe)
    n_done, n_behind = 0, sum(made.status != "current" for made in plan())
    started = latest = time.monotonic()

    def report(line: str) -> None:
        nonlocal n_done, latest
        n_done, took, latest = n_done + 1, time.monotonic() - latest, time.monotonic()
        say(f"{line}, {lasted(took)} [{n_done}/{max(n_behind, n_done)}]")

    with contextlib.ExitStack() as stack:
        stack.enter_context(context.lake.holding_note(RECIPE_FILE, content))
        if read_recipe(where.recipe, withdrawn=where.withdrawn) != context.recipe:
            raise Busy(f"{where.lake}: its recipe has been changed in the meantime; run this again")
        stack.enter_context(log_shards_to(log))
        build: Callable[[Run], None]
        if home is None:
            build = functools.partial(build_run, context, _reporting(report))
        else:
            _require_known(context, where.snapshot, own)
            build = stack.enter_context(_by_dagster(where, execution, home, own, report))
        made = rebuild_all(plan, build, stop_at_once=stop_at_once)
    return _conclude(made, time.monotonic() - started)


def _require_known(context: BuildContext, named: list[str] | None, own: Path | None) -> None:
    """Require that Dagster has the partitions that are to be built.

    Raises:
        BadInput: when it lacks one.
    """
    known = known_snapshots(own, context.recipe.sources)
    if unknown := [name for name in chosen_snapshots(context, named) if name not in known]:
        raise BadInput(
            f"{', '.join(unknown)}: no snapshot of RedPajama-V2 or of the recipe's sources; names "
            "of your own are read from a file, --own"
        )


@contextlib.contextmanager
def _by_dagster(
    where: LakeOptions,
    execution: ExecutionOptions,
    home: Path,
    own: Path | None,
    report: Callable[[str], None],
) -> Iterator[Callable[[Run], None]]:
    """Build by runs of Dagster in this process, recorded in the history below ``home``."""
    from lc_assets.definitions import build_defs
    from lc_assets.orchestration.automation import instance_at, recorder
    from lc_assets.orchestration.resources import claim_history

    settings = asdict(where) | asdict(execution)
    settings |= {"recipe": str(where.recipe or ""), "workers": execution.n_workers}
    del settings["snapshot"], settings["until"]
    defs = build_defs(snapshots=str(own or ""), on_terminal=True, **settings)
    with instance_at(home) as instance:
        claim_history(instance, where.lake)
        yield recorder(defs, instance, report)


def _reporting(report: Callable[[str], None]) -> Callable[[Plan, Built], None]:
    return lambda made, built: report(f"{made.name:<28} {_counted(built)}")


def _counted(built: Built) -> str:
    if built.reused:
        return "found finished, nothing was computed"
    measured = built.published.receipt.measured
    taken = int(measured.get("shards_reused", 0))
    shards = (
        f", {int(measured.get('shards_computed', 0)):,} shards computed and {taken:,} reused"
        if taken
        else ""
    )
    if left_out := n_skipped(built.counts):
        shards += f", {left_out:,} shards skipped: files missing or broken"
    return f"{built.counts.kept:,} of {built.counts.seen:,} kept{shards}"


def _conclude(made: Rebuilt, seconds: float) -> int:
    """Print the outcome of a build; return the command's exit status."""
    for words in made.failed.values():
        print_error(words)
    outcome = f"{len(made.done):,} partitions built in {lasted(seconds)}"
    if made.failed:
        outcome += f", {len(made.failed):,} failed"
    if made.left:
        why = "wait for them" if made.failed else f"cannot be built: {made.left[0].reasons[0]}"
        outcome += f", {len(made.left):,} {why}"
    say(outcome)
    return FAILED if made.failed or made.left else 0
