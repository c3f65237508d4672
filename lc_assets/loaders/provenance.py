"""Whose text a batch is: from positions of a data set to documents and addresses, by the grids' row
tables.

Here: looking rows up in ``rows.parquet``, which lies beside a grid's arrays, and pieces in
    ``spans.parquet`` beside packed
rows; read when first asked for, and of it only the row groups and columns that are needed. Not
here: which rows a step has (`loaders.grid`), the way from a document to its rows
    (`lc_assets.stages.lineage.whereabouts`).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.loaders.arrays import RiffledRows, RowSource, ZarrRows

ROWS_FILE: Final = "rows.parquet"
SPANS_FILE: Final = "spans.parquet"
_COLUMNS: Final = ("row", "id", "url", "stretch", "shift", "n_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDocument:
    """The document that a row of a batch is cut from.

    Attributes:
        position: of the row in the data set.
        snapshot: whose grid it is in.
        version: of that grid.
        row: its number in that grid's split.
        id: of the document: snapshot, shard, file and line upstream.
        url: where it was crawled.
        stretch: which stretch of the document the row holds, from 0: of tokens ``stretch`` × row
            length on.
        shift: column c of the row holds the stretch's token (c − shift) mod row length.
        n_tokens: of the whole document.
    """

    position: int
    snapshot: str
    version: str
    row: int
    id: str
    url: str
    stretch: int
    shift: int
    n_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPiece:
    """A piece of a document in a packed row.

    Attributes:
        row: number of the row in its split.
        piece: number of the piece in its row.
        id: of the document.
        url: where it was crawled.
        document_start: first token of the piece, counted in its document.
        document_stop: the token behind its last.
        row_start: where it begins in its row.
        row_stop: where it ends.
        n_tokens: of the whole document.
    """

    row: int
    piece: int
    id: str
    url: str
    document_start: int
    document_stop: int
    row_start: int
    row_stop: int
    n_tokens: int


def documents_of(rows: RowSource, positions: Sequence[int]) -> list[RowDocument]:
    """Look up the documents of some rows.

    Args:
        rows: a lake's rows, or one of its grids', from a folder of this machine.
        positions: of the rows; the answer is in their order.

    Raises:
        BadInput: when there is no such position, or the rows are neither a lake's nor a grid's.
        NotPublished: when a grid has no row table.
        Mismatch: when the row table does not match the array.
        CorruptFile: when it is not readable.
    """
    wanted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    arrays: dict[int, ZarrRows] = {}
    for position in positions:
        array, row = _array_of(rows, position)
        arrays[id(array)] = array
        wanted[id(array)].append((position, row))
    found = {
        position: document
        for name, array in arrays.items()
        for position, document in _documents(array, wanted[name])
    }
    return [found[position] for position in positions]


def pieces_of(array: ZarrRows, rows: Sequence[int]) -> list[PackedPiece]:
    """Look up the pieces of some packed rows of one version, in the rows' order.

    Raises:
        NotPublished: when there is no table of spans beside the array.
        Mismatch: when a row has no piece in it: the table is of other rows.
        CorruptFile: when it is not readable.
    """
    path = array.path.absolute().parent / SPANS_FILE
    found: dict[int, list[PackedPiece]] = defaultdict(list)
    for line in _table(
        path, array.path.stem, rows, [field.name for field in fields(PackedPiece)]
    ).to_pylist():
        found[line["row"]].append(PackedPiece(**line))
    if missing := sorted(set(rows) - found.keys()):
        raise Mismatch(
            f"{path}: no piece of rows {missing[:5]}: table and array are of different versions: "
            "pack the rows again"
        )
    return [piece for row in rows for piece in sorted(found[row], key=lambda piece: piece.piece)]


def _documents(array: ZarrRows, asked: Sequence[tuple[int, int]]) -> list[tuple[int, RowDocument]]:
    """Documents of rows of one grid, given as (position, row), with their positions."""
    folder = array.path.absolute().parent
    lines = _lines(folder / ROWS_FILE, array.path.stem, [row for _, row in asked], array.n_rows)
    snapshot, version = folder.parent.name, folder.name
    return [
        (position, RowDocument(position=position, snapshot=snapshot, version=version, **lines[row]))
        for position, row in asked
    ]


def _array_of(rows: RowSource, position: int) -> tuple[ZarrRows, int]:
    if isinstance(rows, RiffledRows):
        return rows.place(position)
    if not isinstance(rows, ZarrRows):
        raise BadInput(f"{type(rows).__name__} has no row table: open a lake, or one of its grids")
    if not 0 <= position < rows.n_rows:
        raise BadInput(f"no row {position:,}: {rows.path} has {rows.n_rows:,}")
    return rows, position


def _lines(path: Path, split: str, wanted: Sequence[int], n_rows: int) -> dict[int, dict[str, Any]]:
    """Lines of the wanted rows of one split, by row."""
    lines = {line["row"]: line for line in _table(path, split, wanted, _COLUMNS).to_pylist()}
    n_lines = _count(path, split)
    if n_lines != n_rows or len(lines) != len(set(wanted)):
        missing = sorted(set(wanted) - lines.keys())
        raise Mismatch(
            f"{path}: {n_lines:,} {split} rows, the array beside it has {n_rows:,}; wanted rows "
            f"without a line: {missing[:5]}:"
            " table and array are of different versions: build the grid again"
        )
    return lines


def _table(path: Path, split: str, wanted: Sequence[int], columns: Sequence[str]) -> Any:
    """Lines of the wanted rows of one split; row groups without any of them are not read."""
    import pyarrow.compute as pc  # noqa: PLC0415 - a training node that never asks need not load it

    near = (pc.field("row") >= min(wanted)) & (
        pc.field("row") <= max(wanted)
    )  # by this, row groups are left out
    these = near & (pc.field("split") == split) & pc.field("row").isin(sorted(set(wanted)))
    return _asked(path, lambda table: table.to_table(columns=list(columns), filter=these))


def _count(path: Path, split: str) -> int:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    return int(_asked(path, lambda table: table.count_rows(filter=pc.field("split") == split)))


def _asked(path: Path, ask: Callable[[Any], Any]) -> Any:
    import pyarrow.dataset  # noqa: PLC0415

    if not path.is_file():
        raise NotPublished(
            f"{path}: no row table here, so nobody knows whose rows these are: open the lake they "
            "are published in"
        )
    with library_errors_as_corrupt_file(path, "not a readable row table", system_errors_too=True):
        return ask(pyarrow.dataset.dataset(path, format="parquet"))
