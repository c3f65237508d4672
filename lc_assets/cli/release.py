"""``lc release``: a name for what stands published now, that means the same bytes for ever."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, facts, say, table

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake

DAMAGED = 1
MOST_COMPLAINTS = 50


def release(
    lake: options.LakePath,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Of the release; without it, those there are."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Publish nothing: read every byte of the release again."),
    ] = False,
) -> None:
    """Pin the published global order, grids, Megatron files and mixes under a name, that is never
    written over.

    The same name with the same versions is found again; with other versions it is refused.

    Example: lc release lake v1
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.stages.releases import releasing

    folder = open_lake(lake)
    if name is None:
        show_releases(folder)
        return
    if verify:
        damage = releasing.release_damage(folder, name)
        for sentence in damage[:MOST_COMPLAINTS]:
            complain(sentence)
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


def show_releases(lake: "Lake") -> None:
    """Print the releases, and what is gone of them."""
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
