"""``lc diff``: what changed between two data sets."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import heading, say, table

if TYPE_CHECKING:
    from lc_assets.stages.releases.comparing import Difference

MOST_PARTITIONS = 3


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
        show(found)


def show(found: "Difference") -> None:
    """Print a difference: counts, then rows by snapshot, then settings, code and libraries."""
    old, new = found.counts
    names = [
        name
        for name in ("snapshots", "documents", "train rows", "heldout rows", "tokens")
        if name in old or name in new
    ]
    table(
        ("", found.before, found.after, "change"),
        [
            (name, old.get(name), new.get(name), new.get(name, 0) - old.get(name, 0))
            for name in names
        ],
    )
    if found.changes:
        heading("Rows, by snapshot")
        columns = (
            "snapshot",
            "documents +",
            "documents −",
            "rows +",
            "rows −",
            "rows moved",
            "tokens +",
            "tokens −",
        )
        table(
            columns,
            [
                (
                    change.snapshot,
                    change.documents_added,
                    change.documents_removed,
                    change.rows_added,
                    change.rows_removed,
                    change.rows_moved,
                    change.tokens_added,
                    change.tokens_removed,
                )
                for change in found.changes
            ],
        )
    for title, what, lines in (
        ("Settings", "setting", found.settings),
        ("Code", "", found.code),
        ("Libraries", "library", found.libraries),
    ):
        if lines:
            heading(title)
            table(
                ("stage", *((what,) if what else ()), "partitions", found.before, found.after),
                [
                    (
                        line["stage"],
                        *((line[what],) if what else ()),
                        _shortened(line["partitions"]),
                        line["before"],
                        line["after"],
                    )
                    for line in lines
                ],
            )
    if any(said != "is the same" for said in found.mixes.values()):
        heading("Mixes")
        table(("mix", ""), list(found.mixes.items()))
    say(_summary(found))


def _shortened(keys: list[str]) -> str:
    rest = len(keys) - MOST_PARTITIONS
    return ", ".join(keys[:MOST_PARTITIONS]) + (f" and {rest:,} more" if rest > 0 else "")


def _summary(found: "Difference") -> str:
    come, gone, moved = (
        sum(getattr(change, f"rows_{what}") for change in found.changes)
        for what in ("added", "removed", "moved")
    )
    if not found.changes and not found.settings and not found.code:
        return f"the same rows: {found.same_snapshots:,} snapshots, byte by byte"
    return (
        f"{come:,} rows came, {gone:,} went, {moved:,} moved; {found.same_snapshots:,} "
        "snapshots are the same byte by byte"
    )
