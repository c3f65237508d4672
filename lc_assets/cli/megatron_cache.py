"""``lc megatron cache``: what Megatron looks for at its start, for a launch or a mix."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from lc_assets.cli import options
from lc_assets.cli.printing import say, table
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import executor_of
from lc_assets.formats.megatron.launch_arguments import read_identities, read_launch
from lc_assets.formats.megatron.launch_files import write_data_arguments
from lc_assets.lake.located import located
from lc_assets.mixing.cache_names import Identity, hugging_face_identities
from lc_assets.stages.megatron import caching
from lc_assets.stages.megatron.caching import Entry
from lc_assets.stages.mixes import launching

SHOWN = 20
"""Entries of a cache that are listed one by one."""


LaunchFile = Annotated[
    Path | None, Option(help="File of Megatron's launch arguments, as on its command line.")
]
MixPath = Annotated[
    str | None,
    Option(help="Instead: a mix of a lake, LAKE/blended_mix/NAME, whose launch is written."),
]
Pieces = Annotated[
    bool, Option("--pieces", help="With --mix: packed rows as their pieces, each with a mask.")
]
Folder = Annotated[
    Path | None, Option("--cache", help="Megatron's --data-cache-path; by default the launch's.")
]
IdentityFile = Annotated[
    Path | None,
    Option(
        "--tokenizer-identity",
        help="JSON: tokenizer.unique_identifiers, or several of them by name.",
    ),
]
Tokenizer = Annotated[
    str | None,
    Option(
        "--hf-tokenizer",
        help="Instead: Megatron's --tokenizer-model, for every version since 0.15.",
    ),
]
Check = Annotated[
    bool,
    Option(
        "--check", help="Only report what a launch would find; exit with 1 if something is missing."
    ),
]
Versioned = Annotated[
    Path | None, Option(help="Folder for links that name their content; launch over those instead.")
]


def cache(
    launch: LaunchFile = None,
    mix: MixPath = None,
    pieces: Pieces = False,
    folder: Folder = None,
    identity: IdentityFile = None,
    tokenizer: Tokenizer = None,
    check: Check = False,
    versioned: Versioned = None,
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
    if (pieces and launch) or (mix and (check or versioned)):
        raise BadInput("--pieces belongs to --mix; --check and --versioned to --launch")
    if launch is None:
        identities, executor = _identities(identity, tokenizer), executor_of(workers)
        _cache_of_mix(mix or "", folder, identities, executor, pieces)
        return
    parsed, stated = read_launch(launch)
    place = folder or (Path(stated) if stated else None)
    if place is None:
        raise BadInput("name the cache's folder: pass --cache, or --data-cache-path in the launch")
    if versioned is not None:
        parsed = caching.with_versions(parsed, versioned)
        say(f"launch with {write_data_arguments(parsed, versioned)}")
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
    mix: str,
    folder: Path | None,
    identities: "Mapping[str, Identity]",
    executor: Executor,
    pieces: bool,
) -> None:
    found = located(mix)
    if found is None or found.stage != "blended_mix" or not found.key:
        raise BadInput(f"{mix} is not a published mix: name LAKE/blended_mix/NAME")
    if folder is None:
        raise BadInput("name the cache's folder: pass --cache")
    published = found.published if found.version else found.partition.require()
    entries, words = launching.build_mix_cache(
        found.lake, published, identities, folder, executor=executor, pieces=pieces
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
