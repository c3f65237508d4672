"""``lc megatron``: what Megatron needs beside its token files: indices, blends, and a cache that is
built before a launch.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lc_assets.mixing.cache_names import Launch
    from lc_assets.stages.megatron.caching import Entry

SHOWN = 20
"""Entries of a cache that are listed one by one."""

Out = Annotated[
    Path,
    Option("--out", help="Folder for the .npy files; existing ones are replaced."),
]
Seed = Annotated[int, Option("--seed", help="Megatron's --seed.")]
LaunchFile = Annotated[
    Path,
    Option("--launch", help="File of Megatron's launch arguments, as on its command line."),
]
CacheFolder = Annotated[
    Path | None,
    Option("--cache", help="Megatron's --data-cache-path; by default the launch's."),
]
IdentityFile = Annotated[
    Path | None,
    Option(
        "--tokenizer-identity",
        help="JSON: tokenizer.unique_identifiers, or several of them by name.",
    ),
]
HuggingFaceTokenizer = Annotated[
    str | None,
    Option(
        "--hf-tokenizer",
        help="Instead: Megatron's --tokenizer-model, for every version since 0.15.",
    ),
]


def index(
    prefix: Annotated[
        Path, Argument(metavar="PREFIX", help="A data set: its path without .bin and .idx.")
    ],
    sequence_length: Annotated[
        int, Option("--seq-length", help="Megatron's --seq-length: tokens of a sample.")
    ],
    out: Out,
    seed: Seed = 1234,
    samples: Annotated[
        int | None,
        Option("--samples", help="Samples that are needed; by default those of one epoch."),
    ] = None,
    split: Annotated[
        str | None,
        Option("--split", help="Megatron's --split, such as 98,2,0; by default all documents."),
    ] = None,
    part: Annotated[
        str, Option("--part", help="Which part of the split: train, valid or test.")
    ] = "train",
) -> None:
    """Write the GPT index that Megatron would build: document_index.npy, sample_index.npy,
    shuffle_index.npy.

    Prints tokens and samples of an epoch, and the numbers of samples that are whole epochs.

    Example: lc megatron index data/web --seq-length 4096 --out web-index
    """
    from lc_assets.stages.megatron.megatron_files import index_prefix

    facts(
        index_prefix(
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
        Option("--weights", help="Weight of each source: --weights 0.7 0.2 0.1"),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        Option("--sizes", help="Samples of each source, all to be taken: --sizes 700 200"),
    ] = None,
    size: Annotated[
        int | None, Option("--size", help="Samples of the blend; only with --weights.")
    ] = None,
    uint8: Annotated[
        bool,
        Option("--uint8", help="Number the sources in one byte, as Megatron's older forks do."),
    ] = False,
) -> None:
    """Write a blend as Megatron draws it up: dataset_index.npy and dataset_sample_index.npy.

    With --weights it has --size samples; with --sizes every sample of every source once.

    Example: lc megatron blend --weights 0.7 0.2 0.1 --size 100000 --out blend
    """
    from lc_assets.stages.megatron.megatron_files import write_blend

    # Typer gives an option one value: the others are arguments.
    taken = write_blend(
        out,
        weights=weights and [*weights, *(more or ())],
        sizes=sizes and [*sizes, *(more or ())],
        size=size,
        uint8=uint8,
    )
    n_samples = sum(n for _, n in taken)
    table(
        ["source", "requested", "samples", "share"],
        [[number, stated, n, n / max(n_samples, 1)] for number, (stated, n) in enumerate(taken)],
    )
    shown = [f"{n:,}" for _, n in taken[:SHOWN]] + ["…"] * (len(taken) > SHOWN)
    say(f"{n_samples:,} samples = {' + '.join(shown)}")
    facts([("written to", str(out))])


def cache(
    launch: LaunchFile,
    folder: CacheFolder = None,
    identity: IdentityFile = None,
    tokenizer: HuggingFaceTokenizer = None,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Only report what a launch would find; exit with 1 if something is missing.",
        ),
    ] = False,
    versioned: Annotated[
        Path | None,
        Option(
            "--versioned",
            help="Folder for links that name their content; launch over those instead.",
        ),
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Build the cache that a launch of Megatron looks for, so that it starts at once.

    Writes indices and blends under Megatron's names, and per_dataset_sequences.json for
    --per-dataset-sequences-path. Paths must be exactly those of the launch. A tokenizer's identity
    is printed by json.dumps(tokenizer.unique_identifiers) in Megatron's own environment.

    Example: lc megatron cache --launch launch.args --hf-tokenizer gpt2
    """
    from lc_assets.errors import BadInput
    from lc_assets.execution.local import executor_of
    from lc_assets.formats.megatron.launch_arguments import read_launch
    from lc_assets.stages.megatron import caching

    parsed, stated = read_launch(launch)
    place = folder or (Path(stated) if stated else None)
    if place is None:
        raise BadInput(
            "the cache's folder is missing: pass --cache, or --data-cache-path in the launch "
            "arguments"
        )
    if versioned is not None:
        parsed = caching.with_versions(parsed, versioned)
        say(f"launch with {caching.write_data_arguments(parsed, versioned)}")
    identities = _identities(identity, tokenizer)
    if check:
        entries = caching.look_at_cache(parsed, identities, place)
        _show(parsed, entries, place, wanting="not found")
        raise typer.Exit(1 if any(entry.status != "found" for entry in entries) else 0)
    _show(
        parsed,
        caching.build_cache(parsed, identities, place, executor=executor_of(workers)),
        place,
        wanting="built",
    )


def _identities(path: Path | None, tokenizer: str | None) -> "Mapping[str, Mapping[str, object]]":
    from lc_assets.errors import BadInput
    from lc_assets.formats.megatron.launch_arguments import read_identities
    from lc_assets.mixing.cache_names import hugging_face_identities

    if (path is None) == (tokenizer is None):
        raise BadInput(
            "expected either --tokenizer-identity or --hf-tokenizer: the tokenizer's identity is "
            "part of every name"
        )
    return read_identities(path) if path is not None else hugging_face_identities(tokenizer or "")


def _show(launch: "Launch", entries: "Sequence[Entry]", place: Path, *, wanting: str) -> None:
    wrong = [entry for entry in entries if entry.status != "found"]
    table(
        ["version", "split", "of", "samples", "name", "status"],
        [
            [
                entry.version,
                entry.request.split,
                entry.request.parts[0].prefix
                if entry.request.weights is None
                else f"blend of {len(entry.request.parts):,}",
                entry.request.parts[0].n_samples
                if entry.request.weights is None
                else entry.request.size,
                entry.stem,
                entry.status,
            ]
            for entry in entries[:SHOWN]
        ],
    )
    for entry in wrong[:SHOWN]:
        say(f"{entry.status}: {entry.problem}")
    say(
        f"{len(entries):,} indices = {len(entries) - len(wrong):,} found + {len(wrong):,} {wanting}"
    )
    facts(
        [("sequence length", launch.sequence_length), ("seed", launch.seed), ("cache", str(place))]
    )
