"""Whose text a batch is: from positions of a data set to documents and addresses, by the grids' row tables.

Here: looking rows up in ``rows.parquet``, which lies beside a grid's arrays; read when first asked for, and of it only
the row groups and columns that are needed. Not here: which rows a step has (`loaders.grid`), the way from a
document to its rows (`lc_assets.stages.whereabouts`).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.loaders.arrays import RiffledRows, RowSource, ZarrRows

ROWS_FILE: Final = "rows.parquet"
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
        stretch: which stretch of the document the row holds, from 0: of tokens ``stretch`` × row length on.
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
    found = {position: document for name, array in arrays.items() for position, document in _documents(array, wanted[name])}
    return [found[position] for position in positions]


def _documents(array: ZarrRows, asked: Sequence[tuple[int, int]]) -> list[tuple[int, RowDocument]]:
    """Documents of rows of one grid, given as (position, row), with their positions."""
    folder = array.path.absolute().parent
    lines = _lines(folder / ROWS_FILE, array.path.stem, [row for _, row in asked], array.n_rows)
    snapshot, version = folder.parent.name, folder.name
    return [(position, RowDocument(position=position, snapshot=snapshot, version=version, **lines[row])) for position, row in asked]


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
    import pyarrow as pa  # noqa: PLC0415 - a training node that never asks need not load it
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.dataset  # noqa: PLC0415

    if not path.is_file():
        raise NotPublished(f"{path}: no row table here, so nobody knows whose rows these are: open the lake they are published in")
    try:
        table = pyarrow.dataset.dataset(path, format="parquet")
        n_lines = table.count_rows(filter=pc.field("split") == split)
        near = (pc.field("row") >= min(wanted)) & (pc.field("row") <= max(wanted))  # by this, row groups are left out
        these = near & (pc.field("split") == split) & pc.field("row").isin(sorted(set(wanted)))
        lines = {line["row"]: line for line in table.to_table(columns=list(_COLUMNS), filter=these).to_pylist()}
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(f"{path}: not a readable row table: {error}") from error
    if n_lines != n_rows or len(lines) != len(set(wanted)):
        missing = sorted(set(wanted) - lines.keys())
        raise Mismatch(
            f"{path}: {n_lines:,} {split} rows, the array beside it has {n_rows:,}; wanted rows without a line: {missing[:5]}:"
            " table and array are of different versions: build the grid again"
        )
    return lines
