"""``lc release``, ``lc diff`` and ``lc prune``: name what is published now, compare what was named,
and delete what no name needs.
"""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, print_error, say, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake
    from lc_assets.stages.releases.comparing import Difference
    from lc_assets.stages.releases.pruning import Pruning

DAMAGED = 1
STILL_HELD = 3
MOST_COMPLAINTS = 50
MOST_PARTITIONS = 3
CHANGES = {
    "documents +": "documents_added",
    "documents −": "documents_removed",
    "rows +": "rows_added",
    "rows −": "rows_removed",
    "rows moved": "rows_moved",
    "tokens +": "tokens_added",
    "tokens −": "tokens_removed",
}
"""Columns, and the fields of a `Change`."""


def release(
    lake: options.LakePath,
    name: Annotated[
        str | None,
        Argument(metavar="[NAME]", help="Name of the release; without it, releases are listed."),
    ] = None,
    verify: Annotated[
        bool,
        Option("--verify", help="Read every byte of the release; publish nothing."),
    ] = False,
) -> None:
    """Pin the published global order, grids, Megatron files and mixes under a name that is never
    reused.

    Repeating it with the same versions changes nothing; other versions under the same name are
    refused.

    Example: lc release lake v1
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.stages.releases import releasing

    folder = open_lake(lake)
    if name is None:
        _show_releases(folder)
        return
    if verify:
        damage = releasing.release_damage(folder, name)
        for sentence in damage[:MOST_COMPLAINTS]:
            print_error(sentence)
        say(
            f"release {name}: damaged in {len(damage):,} places"
            if damage
            else f"release {name}: whole, every byte read again"
        )
        raise typer.Exit(DAMAGED if damage else 0)
    made = releasing.release(folder, name)
    say(f"release {name} pins {len(made.pins):,} versions")
    facts(list(made.counts.items()))
    say(f'open_rows("{lake}", release="{name}") reads its rows, whatever is published later')


def _show_releases(lake: "Lake") -> None:
    """Print the releases and their missing versions."""
    from lc_assets.lake.releases import gone_of, read_release, release_names

    lines = []
    for name in release_names(lake):
        found, gone = read_release(lake, name), gone_of(lake, name)
        counts = found.counts
        state = "; ".join(
            f"{len(note.versions):,} versions are gone: {note.reason}" for note in gone
        )
        lines.append(
            (name, len(found.pins), counts.get("documents"), counts.get("tokens"), state or "whole")
        )
    table(("release", "versions", "documents", "tokens", "state"), lines)
    say(f"{len(lines):,} releases")


def diff(
    before: Annotated[
        str,
        Argument(
            metavar="A", help="A release of the lake, 'now', or the folder of a version, gs:// too."
        ),
    ],
    after: Annotated[str, Argument(metavar="B", help="The same.")],
    lake: options.Lake = "lake",
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which documents, rows and tokens were added, removed and moved from A to B, and which
    settings, rules, code and libraries differ.

    Example: lc diff v1 now --lake lake
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.receipts import encode_json
    from lc_assets.stages.releases import comparing

    folder = open_lake(lake)
    found = comparing.compare(comparing.data_set(folder, before), comparing.data_set(folder, after))
    if json:
        typer.echo(encode_json(found).decode(), nl=False)
    else:
        _show_difference(found)


def _show_difference(found: "Difference") -> None:
    """Print a difference: counts, then rows by snapshot, then settings, code and libraries."""
    old, new = found.counts
    names = ("snapshots", "documents", "train rows", "heldout rows", "tokens")
    table(
        ("", found.before, found.after, "change"),
        [
            (name, old.get(name), new.get(name), new.get(name, 0) - old.get(name, 0))
            for name in names
            if name in old or name in new
        ],
    )
    if found.changes:
        heading("Rows, by snapshot")
        lines = [
            (change.snapshot, *(getattr(change, name) for name in CHANGES.values()))
            for change in found.changes
        ]
        table(("snapshot", *CHANGES), lines)
    for title, what_differs, differences in (
        ("Settings", ("setting",), found.settings),
        ("Code", (), found.code),
        ("Libraries", ("library",), found.libraries),
    ):
        if differences:
            heading(title)
            table(
                ("stage", *what_differs, "partitions", found.before, found.after),
                [
                    [_shortened(of) if isinstance(of, list) else of for of in line.values()]
                    for line in differences
                ],
            )
    if any(change != "is the same" for change in found.mixes.values()):
        heading("Mixes")
        table(("mix", ""), list(found.mixes.items()))
    _summarize(found)


def _shortened(keys: list[str]) -> str:
    rest = len(keys) - MOST_PARTITIONS
    return ", ".join(keys[:MOST_PARTITIONS]) + (f" and {rest:,} more" if rest > 0 else "")


def _summarize(found: "Difference") -> None:
    added, removed, moved = (
        sum(getattr(change, f"rows_{what}") for change in found.changes)
        for what in ("added", "removed", "moved")
    )
    if found.changes or found.settings or found.code:
        say(
            f"{added:,} rows added, {removed:,} removed, {moved:,} moved; "
            f"{found.same_snapshots:,} snapshots are the same byte by byte"
        )
    else:
        say(f"the same rows: {found.same_snapshots:,} snapshots, byte by byte")


def prune(
    lake: options.LakePath,
    keep: Annotated[
        int,
        Option(
            "--keep",
            min=0,
            help="Keep this many of the newest unneeded versions of each partition.",
        ),
    ] = 0,
    purge: Annotated[
        bool,
        Option("--purge", help="Delete only versions that contain withdrawn documents."),
    ] = False,
    give_up: Annotated[
        list[str] | None,
        Option("--give-up", help="With --purge: a release whose versions may be deleted."),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would be deleted; delete nothing.")
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
    from lc_assets.stages.withdrawal.withdrawn_documents import STAGE, withdrawn_lines

    folder = open_lake(lake)
    if give_up and not purge:
        raise BadInput(
            "--give-up needs --purge: releases are given up only for withdrawn documents"
        )
    ids = []
    if purge:
        withdrawn = folder.partition(STAGE.name).require()
        ids = [line["id"] for line in withdrawn_lines(withdrawn)]
        planned = pruning.plan_purge(folder, ids, give_up=give_up or ())
    else:
        planned = pruning.plan_pruning(folder, keep=keep)
    _show_pruning(planned, dry_run=dry_run)
    if not dry_run:
        pruning.carry_out(folder, planned, reason=f"held some of {len(ids):,} withdrawn documents")
    if purge:
        say(f"{len(ids):,} documents are withdrawn")
        served = any("working material" not in why for _, why in planned.kept)
        raise typer.Exit(STILL_HELD if served else 0)


def _show_pruning(planned: "Pruning", *, dry_run: bool) -> None:
    """Print what is deleted, what stays although it contains withdrawn documents, and which
    releases are given up.
    """
    if planned.deletions:
        table(
            ("version", "size", "why"),
            [(one.name, sized(one.n_bytes), one.why) for one in planned.deletions],
        )
    for name, versions in planned.broken:
        print_error(f"release {name} is given up: {', '.join(versions)}")
    if planned.kept:
        table(("holds withdrawn documents and stays", "why"), planned.kept)
    size = sized(sum(one.n_bytes for one in planned.deletions))
    done = "would be removed" if dry_run else "removed"
    say(f"{len(planned.deletions):,} folders, {size}: {done}")
