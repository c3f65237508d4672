"""``lc megatron decompose``: a data set into several, of pieces of 2^k tokens."""

from pathlib import Path
from typing import Annotated

import typer

from lc_assets.cli.printing import say, table


def decompose(
    prefix: Annotated[Path, typer.Argument(metavar="PREFIX", help="A Megatron data set.")],
    output: Annotated[
        Path,
        typer.Option("--output", help="Folder for a data set per length: tokens-00256 and so on."),
    ],
    shortest: Annotated[
        int, typer.Option("--shortest", help="Tokens of the shortest pieces, a power of two.")
    ] = 256,
    longest: Annotated[int, typer.Option("--longest", help="Tokens of the longest.")] = 8192,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="Draw the order of a document's pieces; by default the longest come first.",
        ),
    ] = None,
) -> None:
    """Cut every document into pieces of 256, 512, ... tokens, as its length is in binary; no piece
    crosses a document.

    For training with batches of one length at a time, a curriculum from short to long, and no
    padding. What is left of a document, shorter than the shortest piece, is counted and left out.

    Example: lc megatron decompose data/mine --output by-length --shortest 256 --longest 8192
    """
    from lc_assets.stages.megatron.decomposing import decompose as run
    from lc_assets.stages.megatron.megatron_merging import prefix_of

    counts = run(prefix_of(prefix), output, shortest=shortest, longest=longest, seed=seed)
    say(
        f"{counts.seen:,} tokens = {counts.kept:,} in pieces + {counts.seen - counts.kept:,} left "
        "over"
    )
    lines = [
        (length, n, length * n, f"{100 * length * n / max(counts.kept, 1):.1f} %")
        for length, n in _pieces(counts.extra)
    ]
    table(("tokens of a piece", "pieces", "tokens", "share"), lines)
    say(f"written to {output}")


def _pieces(extra: dict[str, int]) -> list[tuple[int, int]]:
    return sorted((int(name.removeprefix("pieces of ")), n) for name, n in extra.items())
