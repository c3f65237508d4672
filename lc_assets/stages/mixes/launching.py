"""A mix as a launch of Megatron finds it: the launch's arguments, and its cache of the mix's own
arrays, so that nothing is built at the start.

Nothing of this can be published with a mix: Megatron's names depend on the folder of the lake and
on the tokenizer (`lc_assets.mixing.cache_names`).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.errors import BadInput, NotPublished
from lc_assets.execution.executor import Executor
from lc_assets.formats.megatron.gpt_index import index_path, read_gpt_index
from lc_assets.formats.megatron.idx import bin_path, idx_blocks, idx_path, read_index
from lc_assets.formats.megatron.launch_files import words_of, write_data_arguments
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.mixing.cache_names import BLEND_FILES, GPT_FILES, Identity, Launch, Request, Sources
from lc_assets.mixing.pieces import index_of_pieces, piece_edges
from lc_assets.packing.pieces import aligned
from lc_assets.publishing import publish, publish_bytes, writing_in
from lc_assets.stages.lineage.spans import packed_spans_of, row_tokens_of
from lc_assets.stages.megatron.caching import Entry, build_cache, link_file
from lc_assets.stages.mixes.blended_mix import MIX_FILE, Mix, read_mix

PACKED = "packed_rows"
SPLIT = "100,0,0"
"""All rows of the mix are for training."""
LAUNCH = "launch.args"
MASKED = "--dataloader-inter-document-masking --eod-mask-loss"
"""With these megatron-core 0.19 attends within pieces, and makes no mask of sequence × sequence."""


def launch_of(mix: Mix, lake: Lake) -> Launch:
    """The launch whose training samples are those of a mix of a lake; prefixes are absolute, since
    they are part of the cache's names.

    Raises:
        BadInput: if Megatron has no such launch.
        NotPublished: if a source is gone.
    """
    if not mix.samples:
        raise BadInput(
            "no launch of Megatron gives this mix: it is empty, was built by an earlier version, "
            "or continues a mix and takes nothing of one of its sources"
        )
    homes = (lake.version_of(source.prefix).home.absolute() for source in mix.sources)
    sources = Sources(prefixes=tuple(f"{home}/train" for home in homes), weights=mix.weights)
    return Launch(
        sequence_length=mix.sequence_length,
        seed=mix.seed,
        n_samples=(mix.samples, 0, 0),
        sources=(sources, sources, sources),
        split=SPLIT,
    )


def arguments_of(launch: Launch) -> str:
    """What Megatron's command line states of a mix, without data, cache and tokenizer."""
    return (
        f"--split {launch.split} --seq-length {launch.sequence_length} --seed {launch.seed} "
        f"--train-samples {launch.n_samples[0]} --eval-iters 0"
    )


def shown_launch(lake: Lake, published: Published) -> list[str]:
    """How to train on a mix: the command that writes the cache and the arguments; and the
    arguments with which Megatron builds the same data itself, if it can. Empty for what is no such
    mix.
    """
    if published.stage != "blended_mix":
        return []
    try:
        mix = read_mix(published.only(MIX_FILE))
        launch = launch_of(mix, lake)
        data = " ".join(words_of(launch.sources[0]) or [])
    except (BadInput, NotPublished):
        return []
    home = f"{published.home.absolute()}"
    command = f"lc megatron cache --mix {shlex.quote(home)} --cache cache --hf-tokenizer gpt2"
    if mix.after or mix.schedule:
        return [command]
    return [command, f"--data-path {data} {arguments_of(launch)}"]


def build_mix_cache(
    lake: Lake,
    published: Published,
    identities: Mapping[str, Identity],
    cache: Path,
    *,
    executor: Executor,
    pieces: bool = False,
) -> tuple[list[Entry], str]:
    """Write Megatron's cache of a mix, by links to its files, with ``data_args.txt`` and
    ``launch.args``, which has all arguments of the data.

    Args:
        lake: the lake.
        published: the mix.
        identities: of the tokenizer, by the version that uses it.
        cache: the folder.
        executor: where indices are written.
        pieces: present packed rows as their pieces (`lc_assets.mixing.pieces`), in data sets of the
            same tokens in ``cache``.

    Returns:
        Every index, with its status before; and the arguments.

    Raises:
        BadInput: if Megatron has no such launch, or a path has a space.
        NotPublished: if a source is gone.
        CorruptFile: if a file of the mix or of its sources is missing or damaged.
    """
    cache = cache.absolute()
    folder = published.folder
    mix = read_mix(folder)
    launch = launch_of(mix, lake)
    indices, packed = {}, {}
    for source in mix.sources:
        rows = lake.version_of(source.prefix)
        prefix = f"{rows.only('train.bin', 'train.idx').absolute()}/train"
        if pieces and rows.stage == PACKED:
            prefix = str(cache / f"{source.snapshot}-{rows.version}")
            packed[prefix] = rows
        indices[prefix] = folder / source.name
    sources = Sources(prefixes=tuple(indices), weights=mix.weights)
    launch = replace(launch, sources=(sources, sources, sources))
    with writing_in(cache):
        edges = {prefix: _write_pieces(Path(prefix), rows) for prefix, rows in packed.items()}
    made = partial(_arrays_of, folder, indices, edges)
    entries = build_cache(launch, identities, cache, executor=executor, made=made)
    data = write_data_arguments(launch, cache)
    words = f"{data} --data-cache-path {shlex.quote(str(cache))} {arguments_of(launch)}"
    if packed:
        words = f"{words} {MASKED}"
    publish_bytes(cache / LAUNCH, f"{words}\n".encode())
    return entries, words


def _write_pieces(prefix: Path, rows: Published) -> tuple[Int64s, int]:
    """Write a data set of the pieces of packed rows, with the rows' own ``.bin``; return where the
    pieces begin, and the length of a row. Padding that aligns a piece belongs to the one before.
    """
    row_tokens = row_tokens_of(rows)
    spans = packed_spans_of(rows, "train")
    edges = piece_edges(spans.first, aligned(spans.stop, spans.align_tokens), row_tokens)
    own = rows.home / "train"
    link_file(bin_path(own), bin_path(prefix))
    lengths = np.diff(edges)
    blocks = idx_blocks(lengths, range(len(lengths) + 1), read_index(own).dtype)
    with publish(idx_path(prefix)) as draft, draft.open("wb") as stream:
        stream.writelines(blocks)
    publish_bytes(_note(prefix), f"{rows.home.absolute()}\n".encode())
    return edges, row_tokens


def rows_of_pieces(prefix: Path) -> Path | None:
    """The version of packed rows that a data set has the pieces of; None if it is another one."""
    note = _note(prefix)
    return Path(note.read_text("utf-8").removesuffix("\n")) if note.is_file() else None


def _note(prefix: Path) -> Path:
    """Names the rows of a data set of pieces, whose own folder is in no lake."""
    return prefix.with_name(f"{prefix.name}.rows")


def _arrays_of(
    folder: Path,
    indices: Mapping[str, Path],
    edges: Mapping[str, tuple[Int64s, int]],
    request: Request,
) -> Sequence[np.ndarray | Path]:
    """The arrays of a blend, or of one of its sources."""
    if request.weights is not None:
        return [folder / f"{name}.npy" for name in BLEND_FILES]
    (part,) = request.parts
    if part.prefix not in edges:
        return [index_path(indices[part.prefix], name) for name in GPT_FILES]
    found = index_of_pieces(read_gpt_index(indices[part.prefix]), *edges[part.prefix])
    return found.document_index, found.sample_index, found.shuffle_index
