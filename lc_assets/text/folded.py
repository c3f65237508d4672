"""Normalized text as UTF-8 bytes, fast: what word n-grams are taken from.

`normalized_utf8` gives the bytes of `lc_assets.text.words.normalize`, bit for bit. Where numba is
installed one pass over the text's UTF-8 does it, with a table for the characters up to U+FFFF; a
stretch with a character whose folding depends on its neighbours (capital sigma, marks out of
canonical order) or that is rare (most of what lies beyond U+FFFF) is folded the plain way. Not
here: what words and n-grams are hashed to (`lc_assets.text.shingles`, `lc_assets.text.minhash`).
"""

import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.text.words import normalize

Bytes = NDArray[np.uint8]

GROWTH = 3
"""Most bytes of folded text per byte of text: U+0390 is two bytes, its decomposition six."""
PADDING = 64
"""Bytes of room that follow a folded text, so that loops over blocks may read beyond its end."""

PIECE_BYTES = 1 << 16
"""What is folded at a time, or a little more: one rare character sends so much the plain way."""

_POINTS = range(0x80, 0x10000)
IRREGULAR, WHITE, DROPPED = 1, 2, 255
"""As in `lc_assets.text.kernels.folding`, which is not imported before it is needed."""
_CAPITAL_SIGMA = "\u03a3"


@dataclass(frozen=True, slots=True)
class FoldingTables:
    """What characters become; `lc_assets.text.kernels.folding` says how the entries are packed.

    Attributes:
        ascii_table: ``(128,)``.
        entries: ``(65536,)`` by code point.
        pool: bytes of all replacements.
    """

    ascii_table: Bytes
    entries: NDArray[np.int64]
    pool: Bytes


def normalized_utf8(text: str) -> Bytes:
    """The normalized text in UTF-8, lone surrogates in three bytes each: words apart by one space.

    >>> bytes(normalized_utf8("  The U.S.A. – Today ")).decode()
    'the usa – today'

    Returns:
        ``(n,)`` uint8.
    """
    if not COMPILED:
        return np.frombuffer(normalize(text).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    room, n_bytes = folded_into_room(text)
    return room[:n_bytes]


def folded_into_room(text: str) -> tuple[Bytes, int]:
    """As `normalized_utf8`, with at least `PADDING` bytes of room after the text: the array, and
    the text's length.
    """
    content = text.encode("utf-8", "surrogatepass")
    out = np.empty((1 if text.isascii() else GROWTH) * len(content) + PADDING, dtype=np.uint8)
    n_out = 0
    for piece in _pieces(content):
        joint = min(n_out, 1)
        n_more = _fold_into(piece, out[n_out + joint :])
        if n_more:
            out[n_out : n_out + joint] = ord(" ")
            n_out += joint + n_more
    return out, n_out


def _pieces(content: bytes) -> Iterator[bytes]:
    """Cut at spaces, over which nothing in a text's folding looks."""
    begin, end = 0, 0
    while end >= 0 and begin < len(content):
        end = content.find(b" ", begin + PIECE_BYTES)
        yield content[begin : None if end < 0 else end]
        begin = end + 1


def _fold_into(piece: bytes, room: Bytes) -> int:
    # Numba takes half a second to import.
    from lc_assets.text.kernels.folding import fold_utf8  # noqa: PLC0415

    tables = folding_tables()
    n_bytes = fold_utf8(
        np.frombuffer(piece, dtype=np.uint8), room, tables.ascii_table, tables.entries, tables.pool
    )
    if n_bytes >= 0:
        return n_bytes
    plain = normalize(piece.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
    room[: len(plain)] = np.frombuffer(plain, dtype=np.uint8)
    return len(plain)


@cache
def folding_tables() -> FoldingTables:
    """Make the tables, once per process: some 40 ms, 600 kB."""
    characters = [chr(point) for point in _POINTS]
    folded = [unicodedata.normalize("NFD", character.lower()) for character in characters]
    pieces = [
        b"" if new == old else new.encode("utf-8", "surrogatepass")
        for old, new in zip(characters, folded, strict=True)
    ]
    begins = accumulate(map(len, pieces), initial=0)
    entries = [
        begin << 32
        | len(piece) << 24
        | _kind(old) << 16
        | unicodedata.combining(new[0]) << 8
        | unicodedata.combining(new[-1])
        for begin, piece, old, new in zip(begins, pieces, characters, folded, strict=False)
    ]
    return FoldingTables(
        ascii_table=np.array([_ascii(chr(point)) for point in range(0x80)], dtype=np.uint8),
        entries=np.array([0] * 0x80 + entries, dtype=np.int64),  # ASCII has its own table
        pool=np.frombuffer(b"".join(pieces), dtype=np.uint8),
    )


def _kind(character: str) -> int:
    if character == _CAPITAL_SIGMA:
        return IRREGULAR  # its lower case is another letter at the end of a word
    return WHITE if character.isspace() else 0


def _ascii(character: str) -> int:
    if character in string.punctuation:
        return DROPPED
    return ord(" ") if character.isspace() else ord(character.lower())
