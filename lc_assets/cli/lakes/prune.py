"""``lc prune``: delete unneeded versions, or versions that contain withdrawn documents."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, say, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.stages.releases.pruning import Pruning

STILL_HELD = 3


def prune(
    lake: options.LakePath,
    keep: Annotated[
        int,
        typer.Option(
            "--keep",
            min=0,
            help="Keep this many of the newest unneeded versions of each partition.",
        ),
    ] = 0,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Delete only versions that contain withdrawn documents."),
    ] = False,
    give_up: Annotated[
        list[str] | None,
        typer.Option("--give-up", help="With --purge: a release whose versions may be deleted."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")
    ] = False,
) -> None:
    """Delete versions that are neither published nor pinned by a release nor needed by such
    versions.

    With --purge: every version that contains a withdrawn document, except published ones and
    releases; exits with 3 if one that is served still contains one.

    Example: lc prune lake --dry-run
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.stages.releases import pruning
    from lc_assets.stages.withdrawal.withdrawn_documents import withdrawn_lines

    folder = open_lake(lake)
    if give_up and not purge:
        raise BadInput(
            "--give-up needs --purge: releases are given up only for withdrawn documents"
        )
    ids = []
    if purge:
        withdrawn = folder.partition("withdrawn_documents").require()
        ids = [line["id"] for line in withdrawn_lines(withdrawn)]
        planned = pruning.plan_purge(folder, ids, give_up=give_up or ())
    else:
        planned = pruning.plan_pruning(folder, keep=keep)
    _show(planned, dry_run=dry_run)
    if not dry_run:
        pruning.carry_out(folder, planned, reason=f"held some of {len(ids):,} withdrawn documents")
    if purge:
        say(f"{len(ids):,} documents are withdrawn")
        served = any("working material" not in why for _, why in planned.kept)
        raise typer.Exit(STILL_HELD if served else 0)


def _show(planned: "Pruning", *, dry_run: bool) -> None:
    """Print what is deleted, what stays although it contains withdrawn documents, and which
    releases are given up.
    """
    if planned.doomed:
        table(
            ("version", "size", "why"),
            [(one.name, sized(one.n_bytes), one.why) for one in planned.doomed],
        )
    for name, versions in planned.broken:
        complain(f"release {name} is given up: {', '.join(versions)}")
    if planned.kept:
        table(("holds withdrawn documents and stays", "why"), planned.kept)
    size = sized(sum(one.n_bytes for one in planned.doomed))
    say(f"{len(planned.doomed):,} folders, {size}: {'would be removed' if dry_run else 'removed'}")
