"""Rolling: every row starts at a random point of its document and runs on from the document's
beginning.

A training window then shows each part of a document at every depth of the context equally often.
Row ``r`` of ``T`` tokens rolled by ``s`` is ``np.roll(r, s)``: to the right, the token of column
``c`` goes to column ``(c + s) mod T``. So the document's first token stands at column ``s``.

Here: the arithmetic. Not here: drawing the shifts (`lc_assets.tokens.orders`), storing rows
    (`lc_assets.formats.grid`).
Source: LongCrawl64 (Manifest AI, 2024), "rolled by a random amount".
"""

from typing import TypeAlias

import numpy as np
from jaxtyping import Int64, UInt16, UInt32

from lc_assets.errors import BadInput

Rows: TypeAlias = UInt16[np.ndarray, "doc token"] | UInt32[np.ndarray, "doc token"]
Row: TypeAlias = UInt16[np.ndarray, " token"] | UInt32[np.ndarray, " token"]


def roll_rows(rows: Rows, shifts: Int64[np.ndarray, " doc"]) -> Rows:
    """Roll each row right by its own shift, as `np.roll` would; shifts of any size and sign.

    >>> roll_rows(np.array([[12, 5, 7, 4, 21]], np.uint16), np.array([3]))
    array([[ 7,  4, 21, 12,  5]], dtype=uint16)

    Raises:
        BadInput: when there is not exactly one shift per row.
    """
    if rows.ndim != 2 or shifts.shape != rows.shape[:1]:
        raise BadInput(
            f"wanted rows × tokens and one shift per row, got rows {rows.shape} and shifts "
            f"{shifts.shape}"
        )
    rolled = np.empty_like(rows)
    for source, target, shift in zip(rows, rolled, shifts.tolist(), strict=True):
        roll_into(target, source, shift)
    return rolled


def roll_into(target: Row, row: Row, shift: int) -> None:
    """Write ``row``, rolled right by ``shift``, over ``target``: rows that come one by one need no
    second copy.

    Raises:
        BadInput: when the two differ in length.
    """
    if target.shape != row.shape:
        raise BadInput(f"wanted a target of the row's shape, got {target.shape} for {row.shape}")
    first, last = rolled_parts(target, shift)
    first[:] = row[: len(first)]
    last[:] = row[len(first) :]


def rolled_parts(target: Row, shift: int) -> tuple[Row, Row]:
    """Where the tokens of a row that is rolled right by ``shift`` go: the first of them into one
    part, the others into the other.

    >>> rolled_parts(np.array([7, 4, 21, 12, 5], np.uint16), 3)
    (array([12,  5], dtype=uint16), array([ 7,  4, 21], dtype=uint16))
    """
    right = shift % (len(target) or 1)
    return target[right:], target[:right]


def unroll_rows(rows: Rows, shifts: Int64[np.ndarray, " doc"]) -> Rows:
    """Undo `roll_rows`: each row begins with its document's first token again.

    >>> unroll_rows(np.array([[7, 4, 21, 12, 5]], np.uint16), np.array([3]))
    array([[12,  5,  7,  4, 21]], dtype=uint16)

    Raises:
        BadInput: when there is not exactly one shift per row.
    """
    return roll_rows(rows, -shifts)


def source_position(column: int, shift: int, row_tokens: int) -> int:
    """Say which token of the document stands at ``column`` of its row rolled by ``shift``.

    >>> source_position(0, 3, 5), source_position(3, 3, 5)
    (2, 0)

    Raises:
        BadInput: when the column is not one of the row's.
    """
    if not 0 <= column < row_tokens:
        raise BadInput(f"column {column:,} is not in a row of {row_tokens:,} tokens")
    return (column - shift) % row_tokens
