"""What ``lc show`` prints about files: arrays, Megatron data sets, tables, and a RedPajama-V2
upstream, recognized by metadata or name.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.builds.columns import known_columns
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.cli.printing import sized
from lc_assets.errors import CorruptFile, LcError
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.parquet.opening import guarded
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.records import record
from lc_assets.sources.redpajama_v2 import LISTING, parse_listing, part_path
from lc_assets.vocabulary import Shard, parse_snapshot

_ROWS_AT_ONCE = 1 << 14
_MANY = 1000
"""Missing chunks; an array with more probably has wrong metadata, which may state any number
of chunks.
"""
_EXPECTED = ("documents", "signals", "duplicates")
"""Parts of a shard that an upstream should have."""

Lines = list[tuple[Any, ...]]


@record
class Artefact:
    """An artefact at a path.

    Attributes:
        kind: in a few words.
        facts: names with values, most informative first.
        tables: further facts: title, names of the columns, lines.
        damage: one sentence for each deviation; empty if intact.
        checked: what was compared, in a few words; empty if there was nothing to compare with.
    """

    kind: str
    facts: Sequence[tuple[str, Any]] = ()
    tables: Sequence[tuple[str, Sequence[str], Lines]] = ()
    damage: Sequence[str] = ()
    checked: str = ""


def recognized(path: Path, verify: bool) -> Artefact | None:
    """The artefact at a path outside of lakes; None when its kind is unknown."""
    return next((describe(path, verify) for is_one, describe in _KINDS if is_one(path)), None)


def is_megatron(path: Path) -> bool:
    """Whether ``path`` is a Megatron data set: its ``.bin``, its ``.idx`` or what both begin
    with.
    """
    return idx_path(_prefix(path)).is_file()


def _prefix(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in (".bin", ".idx") else path


def _show_array(path: Path, verify: bool) -> Artefact:
    """A token grid, or an array of LongCrawl64's layout: shape, chunks, attributes."""
    grid = GridReader(path) if (path / GridReader.METADATA).is_file() else None
    reader = grid or FlatReader(path)
    n_tokens = reader.n_rows * reader.row_tokens
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    share = size / (n_tokens * reader.dtype.itemsize) if n_tokens else 0.0
    chunks = _product(reader.chunk_shape)
    damage = reader.missing()
    if verify and len(damage) <= _MANY:
        damage += _unreadable_chunks(reader)
    facts = [
        ("shape", f"{reader.n_rows:,} rows × {reader.row_tokens:,} tokens, {reader.dtype}"),
        ("tokens", n_tokens),
        ("size", sized(size) + (f", {share:.2f} of the plain ids" if share else "")),
        *([] if grid else [("chunks", chunks)]),
        *([("shards", f"{_product(grid.file_shape)}, of chunks {chunks}")] if grid else []),
        *(grid.attributes.items() if grid else ()),
    ]
    return Artefact(
        kind="token grid (Zarr v3)" if grid else "flat array (Zarr v2, LongCrawl64's layout)",
        facts=facts,
        damage=damage,
        checked="every chunk decoded" if verify else "names of chunks and indexes of shards read",
    )


def _product(shape: Sequence[int]) -> str:
    return " × ".join(f"{length:,}" for length in shape)


def _unreadable_chunks(reader: GridReader | FlatReader) -> Iterator[str]:
    down, across = reader.chunk_shape
    for row in range(-(-reader.n_rows // down)):
        for column in range(-(-reader.row_tokens // across)):
            try:
                list(reader.chunks(row, range(column, column + 1)))
            except CorruptFile as error:
                yield str(error)


def _show_megatron(path: Path, verify: bool) -> Artefact:
    """A Megatron data set; its reader verifies the two files against each other."""
    reader = MegatronReader(_prefix(path))
    lengths = reader.lengths
    spread = f"{int(lengths.min()):,} to {int(lengths.max()):,} tokens" if len(reader) else "none"
    facts: list[tuple[str, Any]] = [
        ("documents", len(reader)),
        ("tokens", reader.n_tokens),
        ("ids", str(reader.dtype)),
        ("lengths", spread),
    ]
    if verify:
        highest = (int(document.max()) for document in reader if len(document))
        facts.append(("highest id", max(highest, default=-1)))
    return Artefact(
        kind="Megatron data set (.bin and .idx)",
        facts=facts,
        checked="the .idx read whole, the .bin's size compared with it",
    )


def _show_table(path: Path, verify: bool) -> Artefact:
    """A Parquet table, by its columns."""
    with (
        library_errors_as_corrupt_file(path, system_errors_too=True),
        guarded(path, where=str(path), rows_at_once=_ROWS_AT_ONCE) as file,
    ):
        columns, metadata = file.file.schema_arrow, file.file.metadata
        n_lines = metadata.num_rows
        n_read = sum(len(batch) for batch in file.batches(_ROWS_AT_ONCE)) if verify else n_lines
    return Artefact(
        kind="Parquet table",
        facts=[
            ("lines", n_lines),
            ("row groups", metadata.num_row_groups),
            ("size", sized(path.stat().st_size)),
        ],
        tables=[
            (
                "columns",
                ("column", "type", "meaning"),
                [(of.name, str(of.type), known_columns().meanings.get(of.name)) for of in columns],
            )
        ],
        damage=[f"{path}: {n_read:,} lines read, the footer says {n_lines:,}"]
        if n_read != n_lines
        else [],
        checked="every column read" if verify else "footer read",
    )


def _show_npy(path: Path, _: bool) -> Artefact:
    """A NumPy array: of an order, of a mix, or of a GPT index."""
    array = read_npy(path)
    return Artefact(
        kind="NumPy array",
        facts=[
            ("shape", _product(array.shape)),
            ("type", str(array.dtype)),
            ("values", f"{array.min():,} to {array.max():,}" if array.size else "none"),
            ("head", np.array2string(array.ravel()[:8], separator=", ")),
        ],
    )


def _show_upstream(path: Path, verify: bool) -> Artefact:
    """The listings, and which of the listed files are there."""
    lines: Lines = []
    damage: list[str] = []
    for listing in sorted((path / "listings").glob("*-head_middle.txt")):
        shards = _listed(listing)
        there = {
            part: [file for shard in shards if (file := path / part_path(part, shard)).is_file()]
            for part in _EXPECTED
        }
        size = sum(file.stat().st_size for files in there.values() for file in files)
        lines.append((listing.name, len(shards), *map(len, there.values()), sized(size)))
        damage += [
            f"{listing.name}: {len(shards) - len(files):,} {part} files are missing"
            for part, files in there.items()
            if len(files) < len(shards)
        ]
        for file in there["documents"] if verify else ():
            damage += _undecodable(file)
    return Artefact(
        kind="RedPajama-V2 upstream",
        tables=[("listings", ("listing", "shards", *_EXPECTED, "size"), lines)],
        damage=damage,
        checked="every listed documents file read to its end"
        if verify
        else "listed files looked for",
    )


def _listed(path: Path) -> list[Shard]:
    named = LISTING.fullmatch(path.name)
    snapshot = parse_snapshot(named["snapshot"] if named else path.name)
    return parse_listing(path.read_bytes(), snapshot=snapshot, where=str(path))


def _undecodable(path: Path) -> list[str]:
    """What is wrong with the first line that cannot be decoded."""
    longest = FilteringSettings().max_line_bytes
    try:
        with path.open("rb") as stream:
            lines = read_lines(stream, where=str(path), max_line_bytes=longest)
            for number, (_, line) in enumerate(lines):
                where = f"{path} line {number}"
                if line is None:
                    return [f"{where}: longer than any document should be"]
                decode_document(line, where=where)
    except LcError as error:
        return [str(error)]
    return []


_KINDS: tuple[tuple[Callable[[Path], bool], Callable[[Path, bool], Artefact]], ...] = (
    (
        lambda path: (
            (path / GridReader.METADATA).is_file() or (path / FlatReader.METADATA).is_file()
        ),
        _show_array,
    ),
    (lambda path: path.is_file() and path.suffix == ".parquet", _show_table),
    (lambda path: path.is_file() and path.suffix == ".npy", _show_npy),
    (lambda path: (path / "listings").is_dir(), _show_upstream),
    (is_megatron, _show_megatron),
)
"""How each kind is recognized and described; the first that matches is used."""
