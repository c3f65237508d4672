r"""Tables of characters for kernels: a character's class, and what it folds to.

The tables are made once per process from Python's own predicates, so they agree with `str.split`,
`str.isupper`, ``\w`` and `unicodedata.normalize` of the running Python.

Characters from `LIMIT` on (tags, variation selectors, private use, unassigned) are neither words
nor white space nor of any case, and fold to themselves; a test checks this for the running Python.
"""

import re
import string
import unicodedata
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

LIMIT: Final = 0x40000
WORD: Final = 1
SPACE: Final = 2
UPPER: Final = 4
NOT_UPPER: Final = 8
LETTER: Final = 16
PLAIN: Final = 32
NUMERIC: Final = 64
REMOVED: Final = 128

NUMERIC_BIT: Final = 1 << 31
CAPITAL_SIGMA: Final = "\u03a3"


class CharacterTables(NamedTuple):
    r"""Tables by code point.

    Attributes:
        flags: uint16[LIMIT]. ``WORD``: matches ``\w``. ``SPACE``: whitespace. ``UPPER``: upper
            case. ``NOT_UPPER``: its word is not upper case. ``LETTER``: of ``a-zA-Z``. ``REMOVED``:
            ASCII punctuation. ``PLAIN``: folds to one character, which does not combine with what
            comes before. ``NUMERIC``: that one character is numeric.
        folds: uint32[LIMIT]. What a plain character folds to; for others an index into
            ``expansions``.
        expansions: uint32. The number of characters, then these, with `NUMERIC_BIT` on each
            numeric one. The number is 0 where folding depends on the neighbours.
        combining: uint8[LIMIT], canonical combining class.
    """

    flags: NDArray[np.uint16]
    folds: NDArray[np.uint32]
    expansions: NDArray[np.uint32]
    combining: NDArray[np.uint8]


@cache
def character_tables() -> CharacterTables:
    """Make the tables, which takes about an eighth of a second."""
    characters = "".join(map(chr, range(LIMIT)))
    flags = _classes(characters)
    combining = np.fromiter(map(unicodedata.combining, characters), np.uint8, LIMIT)
    changed = _folded(characters)
    plain = ((flags & (SPACE | REMOVED)) == 0) & (combining == 0)
    folds, expansions = np.arange(LIMIT, dtype=np.uint32), [0]
    # Some white space folds to other white space, which changes nothing.
    for code in sorted(
        {
            code
            for code in (*changed, *np.flatnonzero(combining).tolist())
            if not flags[code] & SPACE
        }
    ):
        folded = changed.get(code, characters[code])
        plain[code] = len(folded) == 1 and not combining[ord(folded)]
        folds[code] = ord(folded) if plain[code] else len(expansions)
        if not plain[code]:
            expansions += [
                len(folded),
                *(ord(character) | NUMERIC_BIT * character.isnumeric() for character in folded),
            ]
    numeric = np.fromiter(map(str.isnumeric, characters), bool, LIMIT)
    flags[plain] |= PLAIN
    flags[plain & numeric[np.where(plain, folds, 0)]] |= NUMERIC
    return CharacterTables(flags, folds, np.array(expansions, np.uint32), combining)


@cache
def folded_tables() -> CharacterTables:
    """The tables for text that is already folded: all but white space is plain."""
    tables = character_tables()
    numeric = np.fromiter(map(str.isnumeric, map(chr, range(LIMIT))), bool, LIMIT)
    flags = np.where(tables.flags & SPACE, SPACE, PLAIN | NUMERIC * numeric).astype(np.uint16)
    return CharacterTables(
        flags, np.arange(LIMIT, dtype=np.uint32), tables.expansions, tables.combining
    )


def _classes(characters: str) -> NDArray[np.uint16]:
    flags = np.zeros(LIMIT, np.uint16)
    for flag, pattern in (
        (WORD, r"\w+"),
        (SPACE, r"\s+"),
        (LETTER, "[a-zA-Z]+"),
        (REMOVED, f"[{re.escape(string.punctuation)}]+"),
    ):
        for run in re.finditer(pattern, characters):
            flags[run.start() : run.end()] |= flag
    flags[np.fromiter(map(str.isupper, characters), bool, LIMIT)] |= UPPER
    # "A" before a character stays upper case unless that is lower or title case.
    flags[
        np.fromiter((not f"A{character}".isupper() for character in characters), bool, LIMIT)
    ] |= NOT_UPPER
    return flags


def _folded(characters: str) -> dict[int, str]:
    """What characters fold to that do not fold to themselves; a capital sigma, whose folding
    depends on its neighbours, to nothing.
    """
    folded = (unicodedata.normalize("NFD", character.lower()) for character in characters)
    changed = {
        code: fold
        for code, (character, fold) in enumerate(zip(characters, folded, strict=True))
        if fold != character
    }
    return changed | {ord(CAPITAL_SIGMA): ""}
