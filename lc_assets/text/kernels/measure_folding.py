r"""Compiled folding: `lc_assets.text.words.fold` from UTF-8 to UTF-8.

Here: the tables of what each character folds to, and the loop. Two things depend on a character's
    surroundings and are left to
the plain way, which the loop asks for by giving up: a capital sigma, and combining marks that are
not in canonical order.
"""

import string
import unicodedata
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.measure_characters import N_CODE_POINTS
from lc_assets.text.kernels.measure_words import code_point, whole

WIDEST: Final = 3
"""Bytes that a byte can become at most: a test looks at every character."""

_REMOVED: Final = 255
_CAPITAL_SIGMA: Final = 0x3A3


@lru_cache(maxsize=1)
def folding_tables() -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]:
    """What characters fold to; made once per process, in some 0.3 s.

    Returns:
        Of each ASCII byte what it becomes, 255 for nothing, uint8, shape ``(128,)``. Of each code
        point where its entry lies, 0 where it stays as it is and joins nothing, int32. The entries:
        how many bytes it becomes, the canonical combining classes of the first and the last
        character among them, and the bytes.
    """
    ascii_bytes = np.array(
        [
            _REMOVED if chr(code) in string.punctuation else ord(chr(code).lower())
            for code in range(128)
        ],
        np.uint8,
    )
    places, entries = np.zeros(N_CODE_POINTS, np.int32), bytearray(1)
    for code in range(128, N_CODE_POINTS):
        character = chr(code)
        folded = unicodedata.normalize("NFD", character.lower())
        if folded != character or unicodedata.combining(character):
            data = folded.encode("utf-8", "surrogatepass")
            places[code] = len(entries)
            entries += (
                bytes(
                    [len(data), unicodedata.combining(folded[0]), unicodedata.combining(folded[-1])]
                )
                + data
            )
    return ascii_bytes, places, np.frombuffer(bytes(entries), np.uint8)


@compiled
def fold_bytes(
    data: NDArray[np.uint8],
    ascii_bytes: NDArray[np.uint8],
    places: NDArray[np.int32],
    entries: NDArray[np.uint8],
    folded: NDArray[np.uint8],
) -> int:
    """Fold; ``folded`` has room for `WIDEST` times the bytes.

    Returns:
        How many bytes came of it; -1 where the plain way must be asked.
    """
    at = made = 0
    previous = 0
    while at < len(data):
        first = data[at]
        if first < 0x80:
            becomes = ascii_bytes[first]
            at += 1
            if becomes != _REMOVED:
                folded[made] = becomes
                made += 1
                previous = 0
            continue
        point, size = code_point(data, at)
        place = whole(places[point]) if point < N_CODE_POINTS else 0
        if place == 0:
            for offset in range(size):
                folded[made + offset] = data[at + offset]
            made += size
            previous = 0
        else:
            starts_with = whole(entries[place + 1])
            if point == _CAPITAL_SIGMA or (starts_with and starts_with < previous):
                return -1
            n_bytes = whole(entries[place])
            for offset in range(n_bytes):
                folded[made + offset] = entries[place + 3 + offset]
            made += n_bytes
            previous = whole(entries[place + 2])
        at += size
    return made
