"""``lc diff``: what changed between two data sets."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import heading, say, table

if TYPE_CHECKING:
    from lc_assets.stages.releases.comparing import Difference

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


def diff(
    before: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A release of the lake, 'now', or the folder of a version, gs:// too."
        ),
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    lake: options.Lake = "lake",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
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
        _show(found)


def _show(found: "Difference") -> None:
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
