"""``lc show``: what an artefact is, whether it is intact, and its receipt."""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli.printing import complain, facts, say, table

if TYPE_CHECKING:
    from lc_assets.cli.inspect.artefact import Artefact

DAMAGED = 1
MOST_COMPLAINTS = 50


def show(
    path: Annotated[
        str,
        typer.Argument(
            help="A lake, a folder in it (gs:// too), an array, a table, a Megatron data set, an "
            "upstream."
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte instead of names and sizes.")
    ] = False,
) -> None:
    """Show what an artefact is, whether it is intact, and its receipt; exit with 1 if it is
    damaged.

    Example: lc show lake/token_grid/2023-06 --verify
    """
    from lc_assets.cli.inspect.recognising import recognise

    artefact = recognise(path, verify=verify)
    show_artefact(path, artefact)
    raise typer.Exit(DAMAGED if artefact.damage else 0)


def show_artefact(path: str, artefact: "Artefact") -> None:
    """Print an artefact; damage goes to standard error."""
    say(f"{path}: {artefact.kind}", style="bold")
    if artefact.facts:
        facts(artefact.facts)
    for shown in artefact.tables:
        table(shown.columns, shown.lines, title=shown.title)
    for sentence in artefact.damage[:MOST_COMPLAINTS]:
        complain(sentence)
    if artefact.checked:
        found = f"damaged in {len(artefact.damage):,} places" if artefact.damage else "whole"
        say(f"{found} ({artefact.checked})")
