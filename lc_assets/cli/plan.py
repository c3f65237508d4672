"""``lc plan``: what is out of date, and why, as `lc_assets.stages.planning` says."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import lasted, say, table
from lc_assets.errors import NotPublished

if TYPE_CHECKING:
    from lc_assets.stages.planning import Plan
    from lc_assets.stages.recipe import Recipe
    from lc_assets.storage.lake import LakeFolder
    from lc_assets.storage.upstream import Upstream

OUT_OF_DATE = 3


def plan(
    lake: options.Lake,
    upstream: options.Upstream = options.REDPAJAMA_V2,
    recipe: options.Recipe = None,
    snapshot: options.Snapshots = None,
    look_upstream: Annotated[bool, typer.Option("--look-upstream", help="Compare the manifests with the upstream as it is now.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Show what is current too.")] = False,
) -> None:
    """Say what is out of date, and why; exit with 3 when something is.

    Compares receipts with inputs, settings and code; builds nothing. Without --snapshot: the snapshots that the
    lake holds or the upstream folder lists.

    Example: lc plan --lake lake --look-upstream
    """
    from pathlib import Path

    from lc_assets.stages import planning
    from lc_assets.stages.recipe import read_recipe
    from lc_assets.storage.bucket_lake import open_lake
    from lc_assets.storage.upstream import Upstream

    settings, folder, source = read_recipe(Path(recipe) if recipe else None), open_lake(lake), Upstream(upstream)
    names = chosen_snapshots(folder, source, snapshot)
    digests = look_at_all(folder, source, settings, names) if look_upstream else None
    plans = planning.plan(folder, settings, names, upstream_digests=digests)
    show_plans(plans, every=every)
    raise typer.Exit(OUT_OF_DATE if any(made.status != "current" for made in plans) else 0)


def chosen_snapshots(lake: "LakeFolder", upstream: "Upstream", named: list[str] | None) -> list[str]:
    """The snapshots a person named, or those that the lake or the upstream's listings know; sorted.

    Raises:
        BadInput: when a name is none.
        NotPublished: when neither knows one.
    """
    from pathlib import Path

    from lc_assets.cli.upstreams import listed_snapshots
    from lc_assets.vocabulary import parse_snapshot

    if named:
        return sorted({parse_snapshot(name) for name in named})
    known = sorted({*_in_lake(lake), *listed_snapshots(Path(upstream.root))})
    if not known:
        raise NotPublished(
            f"no snapshot is known: nothing is published in {lake.url}, and no listing lies in {upstream.root}; name --snapshot"
        )
    return known


def _in_lake(lake: "LakeFolder") -> set[str]:
    from lc_assets.stages.catalogue import CHAIN

    stages = [step.name for step in CHAIN if step.stage.partitioned_by == "snapshot"]
    return {key for stage in stages for key in lake.keys(stage)}


def look_at_all(lake: "LakeFolder", upstream: "Upstream", recipe: "Recipe", snapshots: list[str]) -> dict[str, str]:
    """Digest of each snapshot's files as they are upstream now."""
    from lc_assets.engines.local import LocalEngine
    from lc_assets.engines.progress import on_terminal
    from lc_assets.stages.building import Workshop
    from lc_assets.stages.raw import look_at_snapshot, manifest_of
    from lc_assets.storage.digests import digest_of
    from lc_assets.vocabulary import parse_snapshot

    workshop = Workshop(lake=lake, upstream=upstream, recipe=recipe, engine=LocalEngine(watch=on_terminal))
    return {name: digest_of(manifest_of(look_at_snapshot(workshop, parse_snapshot(name))).to_pylist()) for name in snapshots}


def show_plans(plans: "list[Plan]", *, every: bool) -> None:
    """Print the plans, or those that are not current, and a sentence with the counts."""
    shown = [made for made in plans if every or made.status != "current"]
    if shown:
        table(("partition", "status", "why", "last time"), [_line(made) for made in shown])
    behind = [made for made in plans if made.status != "current"]
    seconds = sum(made.seconds or 0 for made in behind)
    say(f"{len(plans):,} partitions: {len(plans) - len(behind):,} current, {len(behind):,} out of date" + _cost(seconds))


def _line(made: "Plan") -> tuple[str, str, str, str | None]:
    return made.name, made.status, "; ".join(made.reasons), None if made.seconds is None else lasted(made.seconds)


def _cost(seconds: float) -> str:
    return f"; these took {lasted(seconds)} last time" if seconds else ""
