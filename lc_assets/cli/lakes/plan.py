"""``lc plan``: what is out of date, and why, as `lc_assets.stages.planning` says, and what it would
cost (`lc_assets.stages.costing`).
"""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import lasted, say, sized, table
from lc_assets.errors import NotPublished

if TYPE_CHECKING:
    from pathlib import Path

    from lc_assets.build.stage import BuildContext
    from lc_assets.lake.lake import Lake
    from lc_assets.lake.upstream import Upstream
    from lc_assets.sources.settings import SourcesSettings
    from lc_assets.stages.costing import Cost
    from lc_assets.stages.planning import Plan

OUT_OF_DATE = 3


def plan(
    lake: options.Lake,
    upstream: options.Upstream = options.REDPAJAMA_V2,
    crawl: options.Crawl = "",
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
    snapshot: options.Snapshots = None,
    look_upstream: Annotated[
        bool,
        typer.Option(
            "--look-upstream", help="Compare with the upstream, and the crawl, as they are now."
        ),
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show what is current too.")] = False,
) -> None:
    """Say what is out of date, why, and what building it would read and take; exit with 3 when
    something is.

    Compares receipts with inputs, settings and code; builds nothing. Without --recipe: the recipe
    that the lake was last built by. Seconds are those of past
    builds, by the byte. Without --snapshot: the snapshots that the lake holds or the upstream
    folder lists.

    Example: lc plan --lake lake --look-upstream
    """
    from pathlib import Path

    from lc_assets.build.recipe import read_recipe
    from lc_assets.build.stage import BuildContext
    from lc_assets.execution.local import LocalExecutor
    from lc_assets.execution.progress import on_terminal
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.upstream import Upstream
    from lc_assets.stages import costing, planning

    recipe = recipe_of_lake(lake, recipe)

    settings, folder, source = (
        read_recipe(Path(recipe) if recipe else None, withdrawn=withdrawn),
        open_lake(lake),
        Upstream(upstream),
    )
    names = chosen_snapshots(folder, source, snapshot, settings.sources)
    archives, executor = Upstream(crawl) if crawl else None, LocalExecutor(watch=on_terminal)
    context = BuildContext(
        lake=folder, upstream=source, recipe=settings, executor=executor, crawl=archives
    )
    looked = look_at_all(context, names) if look_upstream else {}
    plans = planning.plan(folder, settings, names, **looked)
    show_plans(plans, costing.costs_of(folder, settings, plans), every=every)
    raise typer.Exit(OUT_OF_DATE if any(made.status != "current" for made in plans) else 0)


def recipe_of_lake(lake: str, named: "Path | None") -> "Path | None":
    """The recipe that was named, or else the one that the lake was last built by; says which."""
    from lc_assets.build.recipe import recorded_recipe

    recorded = recorded_recipe(lake) if named is None else None
    if recorded is not None:
        say(f"recipe: {recorded}, by which the lake was last built")
    return named or recorded


def chosen_snapshots(
    lake: "Lake",
    upstream: "Upstream",
    named: list[str] | None,
    sources: "SourcesSettings",
) -> list[str]:
    """The partitions that are named, or those that the lake or the sources know; sorted.

    Raises:
        BadInput: when a name is none.
        NotPublished: when neither knows one.
    """
    from pathlib import Path

    from lc_assets.cli.inspect.upstreams import listed_snapshots
    from lc_assets.sources.opening import file_partitions, has_redpajama
    from lc_assets.vocabulary import parse_snapshot

    if named:
        return sorted({parse_snapshot(name) for name in named})
    published = listed_snapshots(Path(upstream.root)) if has_redpajama(sources) else ()
    known = sorted({*_in_lake(lake), *published, *file_partitions(sources)})
    if not known:
        raise NotPublished(
            f"no snapshot is known: nothing is published in {lake.url}, no listing lies in "
            f"{upstream.root}, and no source of files on disk is set; name --snapshot"
        )
    return known


def _in_lake(lake: "Lake") -> set[str]:
    from lc_assets.stages.catalogue import STAGES

    stages = [step.name for step in STAGES if step.partitioned_by == "snapshot"]
    return {key for stage in stages for key in lake.keys(stage)}


def look_at_all(context: "BuildContext", snapshots: list[str]) -> dict[str, dict[str, str]]:
    """Digests of each snapshot's files as they are upstream now, and in the crawl where pages were
    looked up in it before.

    Returns:
        Arguments of `lc_assets.stages.planning.plan`.
    """
    from lc_assets.lake.digests import digest_of
    from lc_assets.stages.documents import raw_snapshot as raw
    from lc_assets.stages.links import html_index
    from lc_assets.stages.links.crawl_files import own_archives
    from lc_assets.vocabulary import parse_snapshot

    found = {name: raw.look_at_snapshot(context, parse_snapshot(name)) for name in snapshots}
    wanted = html_index.STAGE.wanted(context.recipe)
    indexed = context.lake.keys(html_index.STAGE.name) if wanted else ()
    return {
        "upstream_digests": {
            name: digest_of(raw.manifest_of(files).to_pylist()) for name, files in found.items()
        },
        "crawl_digests": {
            name: html_index.look_at_crawl(context, parse_snapshot(name))
            for name in snapshots
            if name in indexed
            and (context.crawl is not None or own_archives(context.recipe, parse_snapshot(name)))
        },
    }


def show_plans(plans: "list[Plan]", costs: "list[Cost]", *, every: bool) -> None:
    """Print the plans, or those that are not current, what they would cost, and a sentence with the
    counts.
    """
    shown = [made for made in plans if every or made.status != "current"]
    by_name = {cost.name: cost for cost in costs}
    if shown:
        table(
            ("partition", "status", "why", "shards", "reads", "about"),
            [_line(made, by_name.get(made.name)) for made in shown],
        )
    behind = sum(made.status != "current" for made in plans)
    say(
        f"{len(plans):,} partitions: {len(plans) - behind:,} current, {behind:,} out of "
        f"date{_together(costs)}"
    )


def _line(
    made: "Plan", cost: "Cost | None"
) -> tuple[str, str, str, str | None, str | None, str | None]:
    if cost is None:
        return (
            made.name,
            made.status,
            "; ".join(made.reasons),
            None,
            None,
            None if made.seconds is None else lasted(made.seconds),
        )
    shards = (
        None if cost.shards is None else f"{cost.shards:,} of {cost.shards + (cost.reused or 0):,}"
    )
    reads = None if cost.bytes_read is None else f"{cost.files:,} files, {sized(cost.bytes_read)}"
    about = "?" if cost.seconds is None else f"{'≤ ' if cost.at_most else ''}{lasted(cost.seconds)}"
    return made.name, made.status, "; ".join(made.reasons), shards, reads, about


def _together(costs: "list[Cost]") -> str:
    """What is known of all of them, and of how many nothing is."""
    if not costs:
        return ""
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    n_shards, n_taken = (
        sum(getattr(cost, name) or 0 for cost in costs) for name in ("shards", "reused")
    )
    n_bytes = sum(cost.bytes_read or 0 for cost in costs)
    words = [f"{n_shards:,} shards to do, {n_taken:,} to take over"] if n_shards or n_taken else []
    words += [f"{sized(n_bytes)} to read"] if n_bytes else []
    words += (
        [f"{'at most ' if any(cost.at_most for cost in costs) else ''}about {lasted(sum(known))}"]
        if known
        else []
    )
    unknown = len(costs) - len(known)
    words += [f"unknown for {unknown:,}"] if unknown else []
    return f"; {', '.join(words)}" if words else ""
