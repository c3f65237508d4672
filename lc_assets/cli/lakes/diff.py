"""``lc diff``: what differs between two data sets."""

from typing import Annotated

import msgspec
from typer import Argument

from lc_assets.cli import options
from lc_assets.cli.printing import heading, say, table
from lc_assets.cli.reports import add_results
from lc_assets.lake.located import existing_lake
from lc_assets.stages.planning import first_of
from lc_assets.stages.releases import comparing
from lc_assets.stages.releases.comparing import Difference


def diff(
    before: Annotated[str, Argument(metavar="A")],
    after: Annotated[str, Argument(metavar="B")],
    lake: options.Lake = "lake",
) -> None:
    """Show which documents, rows and tokens were added, removed and moved from A to B, and which
    settings, rules, code and libraries differ.

    Args:
        before: a release of the lake, 'now', or the folder of a version, gs:// too.
        after: As A.

    Example: lc diff v1 now --lake lake
    """
    folder = existing_lake(lake)
    found = comparing.compare(comparing.data_set(folder, before), comparing.data_set(folder, after))
    add_results(**msgspec.structs.asdict(found))
    _show_difference(found)


def _show_difference(found: Difference) -> None:
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
    mixes = found.mixes.items()
    sections = {
        "Rows, by snapshot": [msgspec.structs.asdict(change) for change in found.changes],
        "Settings": found.settings,
        "Code": found.code,
        "Libraries": found.libraries,
        "Mixes": [{"mix": name, "change": of} for name, of in mixes if of != "is the same"],
    }
    for title, lines in sections.items():
        if lines:
            heading(title)
            cells = [
                [first_of(of) if isinstance(of, list) else of for of in line.values()]
                for line in lines
            ]
            table([name.replace("_", " ") for name in lines[0]], cells)
    added, removed, moved = (
        sum(getattr(change, f"rows_{what}") for change in found.changes)
        for what in ("added", "removed", "moved")
    )
    say(
        f"{added:,} rows added, {removed:,} removed, {moved:,} moved; "
        f"{found.same_snapshots:,} snapshots are the same byte by byte"
    )
