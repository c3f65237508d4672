"""Rolling: every row starts at a random token of its document and wraps around to the beginning.

A training window then shows each part of a document equally often at every depth of the context.
Row ``r`` of ``T`` tokens rolled by ``s`` is ``np.roll(r, s)``: the token of column ``c`` moves to
column ``(c + s) mod T``, and the document's first token to column ``s``.

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
        BadInput: if there is not one shift per row.
    """
    if rows.ndim != 2 or shifts.shape != rows.shape[:1]:
        raise BadInput(
            f"expected rows × tokens and one shift per row, got rows {rows.shape} and shifts "
            f"{shifts.shape}"
        )
    rolled = np.empty_like(rows)
    for source, target, shift in zip(rows, rolled, shifts.tolist(), strict=True):
        roll_into(target, source, shift)
    return rolled


def roll_into(target: Row, row: Row, shift: int) -> None:
    """Write ``row``, rolled right by ``shift``, into ``target``.

    Raises:
        BadInput: if the two differ in length.
    """
    if target.shape != row.shape:
        raise BadInput(f"expected a target of the row's shape, got {target.shape} for {row.shape}")
    first, last = rolled_parts(target, shift)
    first[:] = row[: len(first)]
    last[:] = row[len(first) :]


def rolled_parts(target: Row, shift: int) -> tuple[Row, Row]:
    """The two parts of ``target`` that get the first and the last tokens of a row rolled right.

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
        BadInput: if there is not one shift per row.
    """
    return roll_rows(rows, -shifts)
