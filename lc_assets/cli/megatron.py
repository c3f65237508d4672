"""``lc megatron``: indices, blends and caches for Megatron, and its data sets merged, exported and
decomposed.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, sized, table
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import executor_of
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.launch_arguments import read_identities, read_launch
from lc_assets.lake.located import located
from lc_assets.mixing.cache_names import Identity, hugging_face_identities
from lc_assets.stages.megatron import caching, megatron_files, megatron_merging
from lc_assets.stages.megatron.caching import Entry
from lc_assets.stages.megatron.megatron_merging import prefix_of
from lc_assets.stages.mixes import launching

SHOWN = 20
"""Entries of a cache that are listed one by one."""

Out = Annotated[
    Path,
    Option("--out", help="Folder for the .npy files; existing ones are replaced."),
]
Prefix = Annotated[
    Path, Argument(metavar="PREFIX", help="A data set: its path without .bin and .idx.")
]


def index(
    prefix: Prefix,
    sequence_length: Annotated[
        int, Option("--seq-length", help="Megatron's --seq-length: tokens of a sample.")
    ],
    out: Out,
    seed: Annotated[int, Option(help="Megatron's --seed.")] = 1234,
    samples: Annotated[
        int | None,
        Option(help="Samples that are needed; by default those of one epoch."),
    ] = None,
    split: Annotated[
        str | None,
        Option(help="Megatron's --split, such as 98,2,0; by default all documents."),
    ] = None,
    part: Annotated[str, Option(help="Which part of the split: train, valid or test.")] = "train",
) -> None:
    """Write the GPT index that Megatron would build: document_index.npy, sample_index.npy,
    shuffle_index.npy.

    Prints tokens and samples of an epoch, and the numbers of samples that are whole epochs.

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
    more: Annotated[
        list[str] | None, Argument(metavar="...", help="The rest of the weights or sizes.")
    ] = None,
    weights: Annotated[
        list[str] | None,
        Option(help="Weight of each source: --weights 0.7 0.2 0.1"),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        Option(help="Samples of each source, all to be taken: --sizes 700 200"),
    ] = None,
    size: Annotated[int | None, Option(help="Samples of the blend; only with --weights.")] = None,
    uint8: Annotated[
        bool,
        Option("--uint8", help="Number the sources in one byte, as Megatron's older forks do."),
    ] = False,
) -> None:
    """Write a blend as Megatron draws it up: dataset_index.npy and dataset_sample_index.npy.

    With --weights it has --size samples; with --sizes every sample of every source once.

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


def cache(
    launch: Annotated[
        Path | None, Option(help="File of Megatron's launch arguments, as on its command line.")
    ] = None,
    mix: Annotated[
        str | None,
        Option(help="Instead: a mix of a lake, LAKE/blended_mix/NAME, whose launch is written."),
    ] = None,
    folder: Annotated[
        Path | None,
        Option("--cache", help="Megatron's --data-cache-path; by default the launch's."),
    ] = None,
    identity: Annotated[
        Path | None,
        Option(
            "--tokenizer-identity",
            help="JSON: tokenizer.unique_identifiers, or several of them by name.",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        Option(
            "--hf-tokenizer",
            help="Instead: Megatron's --tokenizer-model, for every version since 0.15.",
        ),
    ] = None,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Only report what a launch would find; exit with 1 if something is missing.",
        ),
    ] = False,
    versioned: Annotated[
        Path | None,
        Option(help="Folder for links that name their content; launch over those instead."),
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Build the cache that a launch of Megatron looks for, so that it starts at once.

    Writes indices and blends under Megatron's names, and per_dataset_sequences.json for
    --per-dataset-sequences-path. Paths must be exactly those of the launch. A tokenizer's identity
    is printed by json.dumps(tokenizer.unique_identifiers) in Megatron's own environment.

    With --mix, the cache is linked to the mix's arrays, and CACHE/launch.args has the arguments.

    Example: lc megatron cache --mix lake/blended_mix/equal --cache cache --hf-tokenizer gpt2
    """
    if (launch is None) == (mix is None):
        raise BadInput("expected either --launch or --mix")
    if launch is None:
        _cache_of_mix(mix or "", folder, _identities(identity, tokenizer), executor_of(workers))
        return
    parsed, stated = read_launch(launch)
    place = folder or (Path(stated) if stated else None)
    if place is None:
        raise BadInput("name the cache's folder: pass --cache, or --data-cache-path in the launch")
    if versioned is not None:
        parsed = caching.with_versions(parsed, versioned)
        say(f"launch with {caching.write_data_arguments(parsed, versioned)}")
    identities = _identities(identity, tokenizer)
    entries = (
        caching.look_at_cache(parsed, identities, place)
        if check
        else caching.build_cache(parsed, identities, place, executor=executor_of(workers))
    )
    _show(entries, others="not found" if check else "built")
    if check and any(entry.status != "found" for entry in entries):
        raise typer.Exit(1)


def _cache_of_mix(
    mix: str, folder: Path | None, identities: "Mapping[str, Identity]", executor: Executor
) -> None:
    found = located(mix)
    if found is None or found.stage != "blended_mix" or not found.key:
        raise BadInput(f"{mix} is no published mix: name LAKE/blended_mix/NAME")
    if folder is None:
        raise BadInput("name the cache's folder: pass --cache")
    published = found.published if found.version else found.partition.require()
    entries, words = launching.build_mix_cache(
        found.lake, published, identities, folder, executor=executor
    )
    _show(entries, others="built")
    say(f"launch with {words}")


def _identities(path: Path | None, tokenizer: str | None) -> "Mapping[str, Identity]":
    if (path is None) == (tokenizer is None):
        raise BadInput(
            "expected either --tokenizer-identity or --hf-tokenizer: the tokenizer's identity is "
            "part of every name"
        )
    return read_identities(path) if path is not None else hugging_face_identities(tokenizer or "")


def _show(entries: Sequence[Entry], *, others: str) -> None:
    n_found = sum(entry.status == "found" for entry in entries)
    table(
        ("version", "index", "name", "status", "problem"),
        [
            (entry.version, str(entry.request), entry.stem, *_status_of(entry, others))
            for entry in entries[:SHOWN]
        ],
    )
    say(f"{len(entries):,} indices = {n_found:,} found + {len(entries) - n_found:,} {others}")


def _status_of(entry: Entry, others: str) -> tuple[str, str]:
    """As looked at, or what was done about it."""
    if others == "built" and entry.status == "missing":
        return others, ""
    return entry.status, entry.problem


UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def merge(
    sources: Annotated[
        list[Path],
        Argument(metavar="PREFIX...", help="Data sets, folders of them, or OUT of lc tokenize."),
    ],
    output: Annotated[
        Path,
        Option(
            help="Prefix of the result; with --max-size results are PREFIX-00000 and so on.",
        ),
    ],
    max_size: Annotated[
        str | None,
        Option(help="Most bytes of a .bin, such as 30GB; no document is cut."),
    ] = None,
) -> None:
    """Merge Megatron data sets, in the order given; each is checked before a byte is copied.

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
    output: Annotated[Path, Option(help="The file (nanogpt) or the new folder (datasets, mds).")],
    kind: Annotated[
        str,
        Option("--to", help="nanogpt, datasets (Parquet of Hugging Face) or mds (MosaicML)."),
    ],
    over_last: Annotated[
        int | None,
        Option(
            help="nanogpt: replace the last id of each document by this one; LongCrawl64's script: "
            "50256.",
        ),
    ] = None,
    split: Annotated[str, Option(help="datasets: the split in the files' names.")] = "train",
) -> None:
    """Write a data set in another loader's format.

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
    else:
        raise BadInput(f"no format {kind!r}; there are {', '.join(megatron_files.KINDS)}")
    say(f"{n:,} {what} in {output}")


def decompose(
    prefix: Prefix,
    output: Annotated[
        Path,
        Option(help="Folder for a data set per length: tokens-00256 and so on."),
    ],
    shortest: Annotated[int, Option(help="Tokens of the shortest pieces, a power of two.")] = 256,
    longest: Annotated[int, Option(help="Tokens of the longest.")] = 8192,
    seed: Annotated[
        int | None,
        Option(
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
