"""``lc release``: name what is published now; the name always means the same bytes."""

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
        typer.Argument(
            metavar="[NAME]", help="Name of the release; without it, releases are listed."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read every byte of the release; publish nothing."),
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
