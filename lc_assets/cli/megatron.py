"""``lc megatron``: indices and blends for Megatron, and its data sets merged, exported and
decomposed.
"""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lc_assets.cli.options import bytes_of
from lc_assets.cli.printing import facts, say, sized, table
from lc_assets.errors import BadInput, known_names
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.plugins import plugins
from lc_assets.stages.megatron import megatron_files, megatron_merging
from lc_assets.stages.megatron.megatron_merging import prefix_of

SHOWN = 20
"""Sources of a blend that are listed one by one."""

Out = Annotated[
    Path, Option("--out", help="Folder for the .npy files; existing ones are replaced.")
]
Prefix = Annotated[
    Path, Argument(metavar="PREFIX", help="A data set: its path without .bin and .idx.")
]


def index(
    prefix: Prefix,
    sequence_length: Annotated[int, Option("--seq-length")],
    out: Out,
    seed: int = 1234,
    samples: int | None = None,
    split: str | None = None,
    part: str = "train",
) -> None:
    """Write the GPT index that Megatron would build: document_index.npy, sample_index.npy,
    shuffle_index.npy.

    Prints tokens and samples of an epoch, and the numbers of samples that are whole epochs.

    Args:
        sequence_length: Megatron's --seq-length: tokens of a sample.
        seed: Megatron's --seed.
        samples: samples that are needed; by default those of one epoch.
        split: Megatron's --split, such as 98,2,0; by default all documents.
        part: which part of the split: train, valid or test.

    Example: lc megatron index data/web --seq-length 4096 --out web-index
    """
    facts(
        megatron_files.index_prefix(
            prefix,
            out,
            sequence_length=sequence_length,
            seed=seed,
            n_samples=samples,
            split=split,
            part=part,
        )
    )


def blend(
    out: Out,
    more: Annotated[list[str] | None, Argument(metavar="...")] = None,
    weights: list[str] | None = None,
    sizes: list[str] | None = None,
    size: int | None = None,
    uint8: bool = False,
) -> None:
    """Write a blend as Megatron draws it up: dataset_index.npy and dataset_sample_index.npy.

    With --weights it has --size samples; with --sizes every sample of every source once.

    Args:
        more: the rest of the weights or sizes.
        weights: weight of each source: --weights 0.7 0.2 0.1
        sizes: samples of each source, all to be taken: --sizes 700 200
        size: samples of the blend; only with --weights.
        uint8: number the sources in one byte, as Megatron's older forks do.

    Example: lc megatron blend --weights 0.7 0.2 0.1 --size 100000 --out blend
    """
    # Typer gives an option one value: the others are arguments.
    taken = megatron_files.write_blend(
        out,
        weights=weights and [*weights, *(more or ())],
        sizes=sizes and [*sizes, *(more or ())],
        size=size,
        uint8=uint8,
    )
    n_samples = sum(n for _, n in taken)
    shown = [f"{n:,}" for _, n in taken[:SHOWN]] + ["…"] * (len(taken) > SHOWN)
    say(f"{n_samples:,} samples = {' + '.join(shown)}")
    facts([("written to", str(out))])


def merge(
    sources: Annotated[list[Path], Argument(metavar="PREFIX...")],
    output: Path,
    max_size: str | None = None,
) -> None:
    """Merge Megatron data sets, in the order given; each is checked before a byte is copied.

    Args:
        sources: data sets, folders of them, or OUT of lc tokenize.
        output: prefix of the result; with --max-size results are PREFIX-00000 and so on.
        max_size: most bytes of a .bin, such as 30GB; no document is cut.

    Example: lc megatron merge tokens --output data/mine --max-size 30GB
    """
    found = megatron_merging.data_sets_of(sources)
    receipts = megatron_merging.merge(
        found, output, max_bytes=None if max_size is None else bytes_of(max_size)
    )
    lines = [
        (str(prefix), r.documents, r.tokens, sized(bin_path(prefix).stat().st_size))
        for prefix, r in receipts.items()
    ]
    say(f"{len(found):,} data sets into {len(lines):,}")
    table(("data set", "documents", "tokens", "size of the .bin"), lines)


def export(
    prefix: Prefix,
    output: Path,
    kind: Annotated[str, Option("--to")],
    over_last: int | None = None,
    split: str = "train",
) -> None:
    """Write a data set in another loader's format.

    Args:
        output: the file (nanogpt) or the new folder (datasets, mds).
        kind: ``nanogpt``, datasets (Parquet of Hugging Face), mds (MosaicML), or a package's.
        over_last: ``nanogpt``: replace the last id of each document by this one; LongCrawl64's
            script: 50256.
        split: ``datasets``: the split in the files' names.

    Example: lc megatron export data/mine --to nanogpt --output train.bin --over-last 50256
    """
    if over_last is not None and kind != "nanogpt":
        raise BadInput("--over-last belongs to --to nanogpt")
    source = prefix_of(prefix)
    if kind == "nanogpt":
        n, what = megatron_files.export_nanogpt(source, output, over_last=over_last), "tokens"
    elif kind == "datasets":
        n, what = megatron_files.export_datasets(source, output, split=split), "files"
    elif kind == "mds":
        n, what = megatron_files.export_mds(source, output), "documents"
    elif kind in plugins("exporters"):
        n, what = megatron_files.export_by(kind, source, output), "documents"
    else:
        known = known_names((*megatron_files.KINDS, *sorted(plugins("exporters"))), kind)
        raise BadInput(f"no format {kind!r}; there are {known}")
    say(f"{n:,} {what} in {output}")


def decompose(
    prefix: Prefix,
    output: Path,
    shortest: int = 256,
    longest: int = 8192,
    seed: int | None = None,
) -> None:
    """Cut every document into pieces of 256, 512, ... tokens, as its length is in binary; no piece
    crosses a document.

    For training with batches of one length at a time, a curriculum from short to long, and no
    padding. What is left of a document, shorter than the shortest piece, is counted and left out.

    Args:
        output: folder for a data set per length: tokens-00256 and so on.
        shortest: tokens of the shortest pieces, a power of two.
        longest: tokens of the longest.
        seed: draw the order of a document's pieces; by default the longest come first.

    Example: lc megatron decompose data/mine --output by-length --shortest 256 --longest 8192
    """
    counts = megatron_merging.decompose(
        prefix_of(prefix), output, shortest=shortest, longest=longest, seed=seed
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
