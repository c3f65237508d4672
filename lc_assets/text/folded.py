"""Normalized text as UTF-8 bytes, fast: what word n-grams are taken from.

`normalized_utf8` gives the bytes of `lc_assets.text.words.normalize`, bit for bit. Where numba is installed one pass
over the text's UTF-8 does it, with a table for the characters up to U+FFFF; a text with a character whose folding
depends on its neighbours (capital sigma, marks out of canonical order) or that is rare (most of what lies beyond
U+FFFF) is folded the plain way. Not here: what words and n-grams are hashed to (`lc_assets.text.shingles`,
`lc_assets.text.minhash`).
"""

import string
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.kernels.compiling import COMPILED
from lc_assets.text.words import normalize

Bytes = NDArray[np.uint8]

GROWTH = 3
"""Most bytes of folded text per byte of text: U+0390 is two bytes, its decomposition six."""
PADDING = 64
"""Bytes of room that follow a folded text, so that loops over blocks may read beyond its end."""

_POINTS = range(0x80, 0x10000)
_CAPITAL_SIGMA = "\u03a3"


@dataclass(frozen=True, slots=True)
class FoldingTables:
    """What the characters up to U+FFFF become; the arguments of `lc_assets.text.kernels.folding.fold_utf8`, in its order."""

    ascii_table: Bytes
    entries: NDArray[np.uint32]
    kinds: Bytes
    first_classes: Bytes
    last_classes: Bytes
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
    """As `normalized_utf8`, with at least `PADDING` bytes of room after the text: the array, and the text's length."""
    from lc_assets.text.kernels.folding import fold_utf8  # noqa: PLC0415 - numba takes half a second to import

    source = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    out = np.empty((1 if text.isascii() else GROWTH) * len(source) + PADDING, dtype=np.uint8)
    tables = folding_tables()
    n_bytes = fold_utf8(
        source, out, tables.ascii_table, tables.entries, tables.kinds, tables.first_classes, tables.last_classes, tables.pool
    )
    if n_bytes >= 0:
        return out, n_bytes
    plain = normalize(text).encode("utf-8", "surrogatepass")
    return np.frombuffer(plain + bytes(PADDING), dtype=np.uint8), len(plain)


@cache
def folding_tables() -> FoldingTables:
    """Make the tables, once per process: some 40 ms, 600 kB."""
    folded = [_folded(point) for point in _POINTS]
    kept = [b"" if text == chr(point) else text.encode("utf-8", "surrogatepass") for point, text in zip(_POINTS, folded, strict=True)]
    entries = [begin << 8 | len(piece) if piece else 0 for begin, piece in zip(accumulate(map(len, kept), initial=0), kept, strict=False)]
    return FoldingTables(
        ascii_table=_ascii_table(),
        entries=_by_point(entries, np.uint32),
        kinds=_by_point([_kind(chr(point)) for point in _POINTS], np.uint8),
        first_classes=_by_point([unicodedata.combining(text[0]) for text in folded], np.uint8),
        last_classes=_by_point([unicodedata.combining(text[-1]) for text in folded], np.uint8),
        pool=np.frombuffer(b"".join(kept), dtype=np.uint8),
    )


def _folded(point: int) -> str:
    return unicodedata.normalize("NFD", chr(point).lower())


def _kind(character: str) -> int:
    if character == _CAPITAL_SIGMA:
        return 1  # lower case is another letter at the end of a word
    return 2 if character.isspace() else 0


def _by_point(values: list[int], dtype: type) -> NDArray[np.generic]:  # ASCII has its own table
    return np.array([0] * 0x80 + values, dtype=dtype)


def _ascii_table() -> Bytes:
    characters = [chr(point) for point in range(0x80)]
    table = [255 if char in string.punctuation else 32 if char.isspace() else ord(char.lower()) for char in characters]
    return np.array(table, dtype=np.uint8)
