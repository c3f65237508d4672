"""The documents of a batch: from rows of a data set to documents and addresses.

Rows are looked up in ``rows.parquet`` beside a grid's arrays, pieces in ``spans.parquet`` beside
packed rows. Only the row groups and columns that are needed are read. From a document to its rows:
`lc_assets.stages.lineage.whereabouts`.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.loaders.arrays import InterleavedRows, RowSource, ZarrRows
from lc_assets.records import record

ROWS_FILE = "rows.parquet"
SPANS_FILE = "spans.parquet"
_COLUMNS = ("row", "id", "url", "stretch", "shift", "n_tokens")


@record
class RowDocument:
    """The document that a row of a batch is cut from.

    Attributes:
        position: of the row in the data set.
        snapshot: snapshot of the row's grid.
        version: version of that grid.
        row: number of the row in that grid's split.
        id: of the document: snapshot, shard, file and line upstream.
        url: address of its page.
        stretch: the part of the document in the row, from 0: tokens ``stretch`` × row length on.
        shift: column c of the row is the stretch's token (c − shift) mod row length.
        n_tokens: tokens of the whole document.
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


@record
class PackedPiece:
    """A piece of a document in a packed row.

    Attributes:
        row: number of the row in its split.
        piece: number of the piece in its row.
        id: of the document.
        url: address of its page.
        document_start: first token of the piece in its document.
        document_stop: one after its last token.
        row_start: first token of the piece in its row.
        row_stop: one after its last token.
        n_tokens: tokens of the whole document.
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
        rows: rows of a lake or of one of its grids, in a local folder.
        positions: of the rows; the result is in their order.

    Raises:
        BadInput: if there is no such position, or the rows are neither a lake's nor a grid's.
        NotPublished: if a grid has no row table.
        Mismatch: if the row table does not match the array.
        CorruptFile: if it is not readable.
    """
    places = [_array_of(rows, position) for position in positions]
    lines: dict[tuple[int, int], dict[str, Any]] = {}
    for array in {id(array): array for array, _ in places}.values():
        grid, own = array.path.absolute().parent, {row for other, row in places if other is array}
        found, n_lines = _lines(array, ROWS_FILE, own, _COLUMNS)
        missing = sorted(own - {line["row"] for line in found})
        if n_lines != array.n_rows or missing:
            raise Mismatch(
                f"{grid / ROWS_FILE}: {n_lines:,} {array.path.stem} rows, the array beside it has "
                f"{array.n_rows:,}; rows without a line: {missing[:5]}: table and array are of "
                "different versions: build the grid again"
            )
        for line in found:
            lines[id(array), line["row"]] = {
                "snapshot": grid.parent.name,
                "version": grid.name,
                **line,
            }
    return [
        RowDocument(position=position, **lines[id(array), row])
        for position, (array, row) in zip(positions, places, strict=True)
    ]


def pieces_of(array: RowSource, rows: Sequence[int]) -> list[PackedPiece]:
    """Look up the pieces of some packed rows of one version, in the rows' order.

    Raises:
        BadInput: if they are not those of one version in a local folder.
        NotPublished: if there is no table of spans beside the array.
        Mismatch: if a row has no piece in it, so it is of other rows.
        CorruptFile: if it is not readable.
    """
    if not isinstance(array, ZarrRows):
        raise BadInput(f"{type(array).__name__} has no table of spans: open packed rows")
    lines, _ = _lines(array, SPANS_FILE, rows, [field.name for field in fields(PackedPiece)])
    found: dict[int, list[PackedPiece]] = defaultdict(list)
    for line in lines:
        found[line["row"]].append(PackedPiece(**line))
    if missing := sorted(set(rows) - found.keys()):
        raise Mismatch(
            f"{array.path.with_name(SPANS_FILE)}: no piece of rows {missing[:5]}: table and array "
            "are of different versions: pack the rows again"
        )
    return [piece for row in rows for piece in sorted(found[row], key=lambda piece: piece.piece)]


def _array_of(rows: RowSource, position: int) -> tuple[ZarrRows, int]:
    if isinstance(rows, InterleavedRows):
        return rows.place(position)
    if not isinstance(rows, ZarrRows):
        raise BadInput(f"{type(rows).__name__} has no row table: open a lake or one of its grids")
    if not 0 <= position < rows.n_rows:
        raise BadInput(f"no row {position:,}: {rows.path} has {rows.n_rows:,}")
    return rows, position


def _lines(
    array: ZarrRows, name: str, rows: Collection[int], columns: Sequence[str]
) -> tuple[list[dict[str, Any]], int]:
    """Lines of some rows in a table beside an array, and the number of lines of the array's split;
    row groups without any of the rows are not read.
    """
    try:
        import pyarrow.compute as pc
        import pyarrow.dataset
    except ModuleNotFoundError as error:
        raise BadInput(
            "the documents of rows are in Parquet tables, and pyarrow, which reads them, is not "
            "installed: pip install pyarrow"
        ) from error
    path = array.path.absolute().with_name(name)
    if not path.is_file():
        raise NotPublished(
            f"{path}: no row table here, so the documents of these rows are unknown: open the lake "
            "that published them"
        )
    number, in_split = pc.field("row"), pc.field("split") == array.path.stem
    near = (number >= min(rows)) & (number <= max(rows))  # by this, row groups are left out
    these = near & in_split & number.isin(sorted(set(rows)))
    with library_errors_as_corrupt_file(path, "not a readable row table", system_errors_too=True):
        table = pyarrow.dataset.dataset(path, format="parquet")
        found = table.to_table(columns=list(columns), filter=these).to_pylist()
        return found, int(table.count_rows(filter=in_split))
