"""``lc megatron merge``, ``export`` and ``decompose``: data sets into fewer ones, into other
formats, and into one for each length of pieces.
"""

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lc_assets.cli.printing import say, sized, table
from lc_assets.errors import BadInput

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def merge(
    sources: Annotated[
        list[Path],
        Argument(metavar="PREFIX...", help="Data sets, folders of them, or OUT of lc tokenize."),
    ],
    output: Annotated[
        Path,
        Option(
            "--output",
            help="Prefix of the result; with --max-size results are PREFIX-00000 and so on.",
        ),
    ],
    max_size: Annotated[
        str | None,
        Option("--max-size", help="Most bytes of a .bin, such as 30GB; no document is cut."),
    ] = None,
) -> None:
    """Merge Megatron data sets, in the order given; each is checked before a byte is copied.

    Example: lc megatron merge tokens --output data/mine --max-size 30GB
    """
    from lc_assets.formats.megatron.idx import bin_path
    from lc_assets.stages.megatron.megatron_merging import data_sets_of
    from lc_assets.stages.megatron.megatron_merging import merge as merge_data_sets

    found = data_sets_of(sources)
    receipts = merge_data_sets(
        found, output, max_bytes=None if max_size is None else bytes_of(max_size)
    )
    lines = [
        (str(prefix), r.documents, r.tokens, sized(bin_path(prefix).stat().st_size))
        for prefix, r in receipts.items()
    ]
    say(f"{len(found):,} data sets into {len(lines):,}")
    table(("data set", "documents", "tokens", "size of the .bin"), lines)


def export(
    prefix: Annotated[Path, Argument(metavar="PREFIX", help="A Megatron data set.")],
    output: Annotated[
        Path, Option("--output", help="The file (nanogpt) or the new folder (datasets, mds).")
    ],
    kind: Annotated[
        str,
        Option("--to", help="nanogpt, datasets (Parquet of Hugging Face) or mds (MosaicML)."),
    ],
    over_last: Annotated[
        int | None,
        Option(
            "--over-last",
            help="nanogpt: replace the last id of each document by this one; LongCrawl64's script: "
            "50256.",
        ),
    ] = None,
    split: Annotated[
        str, Option("--split", help="datasets: the split in the files' names.")
    ] = "train",
) -> None:
    """Write a data set in another loader's format.

    Example: lc megatron export data/mine --to nanogpt --output train.bin --over-last 50256
    """
    from lc_assets.stages.megatron import megatron_files
    from lc_assets.stages.megatron.megatron_merging import prefix_of

    if over_last is not None and kind != "nanogpt":
        raise BadInput("--over-last belongs to --to nanogpt")
    source = prefix_of(prefix)
    if kind == "nanogpt":
        n, what = megatron_files.export_nanogpt(source, output, over_last=over_last), "tokens"
    elif kind == "datasets":
        n, what = megatron_files.export_datasets(source, output, split=split), "files"
    elif kind == "mds":
        n, what = megatron_files.export_mds(source, output), "documents"
    else:
        raise BadInput(f"no format {kind!r}; there are {', '.join(megatron_files.KINDS)}")
    say(f"{n:,} {what} in {output}")


def decompose(
    prefix: Annotated[Path, Argument(metavar="PREFIX", help="A Megatron data set.")],
    output: Annotated[
        Path,
        Option("--output", help="Folder for a data set per length: tokens-00256 and so on."),
    ],
    shortest: Annotated[
        int, Option("--shortest", help="Tokens of the shortest pieces, a power of two.")
    ] = 256,
    longest: Annotated[int, Option("--longest", help="Tokens of the longest.")] = 8192,
    seed: Annotated[
        int | None,
        Option(
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
    from lc_assets.stages.megatron import megatron_merging

    counts = megatron_merging.decompose(
        megatron_merging.prefix_of(prefix), output, shortest=shortest, longest=longest, seed=seed
    )
    say(
        f"{counts.seen:,} tokens = {counts.kept:,} in pieces + {counts.seen - counts.kept:,} left "
        "over"
    )
    pieces = sorted((int(name.removeprefix("pieces of ")), n) for name, n in counts.extra.items())
    table(
        ("tokens of a piece", "pieces", "tokens", "share"),
        [
            (length, n, length * n, f"{100 * length * n / max(counts.kept, 1):.1f} %")
            for length, n in pieces
        ],
    )
    say(f"written to {output}")


def bytes_of(size: str) -> int:
    """A number of bytes with a unit, in powers of 1,000.

    >>> bytes_of("30GB"), bytes_of("1.5 kB"), bytes_of("512")
    (30000000000, 1500, 512)

    Raises:
        BadInput: if it is not a number of bytes.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", size, re.IGNORECASE)
    if found is None:
        raise BadInput(f"{size!r} is no size; write it as 30GB or 500 MB")
    return int(float(found[1]) * UNITS[found[2].upper()])
