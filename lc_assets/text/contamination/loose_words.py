r"""Loose words: a text's words without case, accents and punctuation.

Two copies of a sentence seldom agree to the letter: quotes are curled, dashes lengthened, accents
lost, lines wrapped. Loose words hide these differences from the search for contamination. A
character is folded by itself, never by its neighbours:

===========================  =======================================================================
letter or number             case-folded, compatibility forms resolved: ``É`` is ``e``, ``ß`` is
                             ``ss``, ``ﬁ`` is ``fi``
mark without width, format   nothing: combining accents, soft hyphens, joiners; but a zero-width
                             space ends a word, as in Unicode's UAX 29
apostrophe, straight or not  nothing: ``don't`` is one word
of a script without spaces   a word of its own: Han, kana, Thai, Lao, Burmese, Khmer
anything else                the end of a word: white space, punctuation, symbols, controls, lone
                             surrogates
===========================  =======================================================================

These are not RedPajama-V2's normalized words (`lc_assets.text.words`), which keep accents and
curled quotes and join what a dash separates. A word's hash is `mix64` of FNV-1a over its folded
code points.
"""

import unicodedata
from functools import cache

import numpy as np

from lc_assets.arrays import Booleans, Int64s, UInt32s, UInt64s
from lc_assets.compiling import compiled
from lc_assets.text.hashing import FNV_PRIME, code_points, mix64_kernel

PRIME = np.uint64(FNV_PRIME)
ALONE, MANY, REST = np.uint32(1 << 30), np.uint32(1 << 31), np.uint32((1 << 30) - 1)
"""Marks in the table: a word of its own; several code points, located by the `REST` of the entry.
"""

SEPARATOR, DROPPED = 0, 1
"""Table entries of a character that ends a word, and of one that is dropped."""
_PAGE = 256
_N_CODES = 0x110000

_APOSTROPHES = frozenset("'\u2018\u2019\u02bc\u02bb\u2032\u00b4`")
_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFD),
)
_ZERO_WIDTH_SPACE = "\u200b"
_VANISHING = frozenset(("Mn", "Me", "Cf"))


@cache
def fold_character(char: str) -> str:
    """The folded form of a character: letters, nothing, or a space where it ends a word.

    >>> [fold_character(char) for char in "Éßﬁ½'-\u0301"]
    ['e', 'ss', 'fi', '12', '', ' ', '']
    """
    if char == _ZERO_WIDTH_SPACE:
        return " "
    if char in _APOSTROPHES or unicodedata.category(char) in _VANISHING:
        return ""
    resolved = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(part for part in resolved if _spells(part)) or " "


@cache
def is_alone(char: str) -> bool:
    """Whether a character is a word of its own.

    >>> [is_alone(char) for char in "a東ア한"]
    [False, True, True, False]
    """
    code = ord(char)
    return any(first <= code <= last for first, last in _WITHOUT_SPACES) and fold_character(
        char
    ) not in {"", " "}


def _spells(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LN" or category == "Mc"


class FoldingTable:
    """The folded form of each code point, for kernels; filled page by page on demand.

    Attributes:
        codes: ``(1114112,)`` uint32: `SEPARATOR`, `DROPPED`, a folded code point (perhaps marked
            `ALONE`), or `MANY` and where in ``several`` its folded code points are. Untouched pages
            take no memory.
        several: uint32: how many code points, then these, for each character that becomes several.
        known: ``(4352,)`` bool: the pages that are filled.
    """

    def __init__(self) -> None:
        self.codes: UInt32s = np.zeros(_N_CODES, np.uint32)
        self.several: UInt32s = np.zeros(1, np.uint32)
        self.known: Booleans = np.zeros(_N_CODES // _PAGE, np.bool_)
        self.fill(0)

    def fill(self, page: int) -> None:
        """Fill one page of 256 code points."""
        several: list[int] = []
        entries = [
            self._entry(chr(code), several) for code in range(page * _PAGE, (page + 1) * _PAGE)
        ]
        if several:  # before the entries that point into it: another thread may be reading
            self.several = np.concatenate([self.several, np.array(several, np.uint32)])
        self.codes[page * _PAGE : (page + 1) * _PAGE] = entries
        self.known[page] = True

    def _entry(self, char: str, several: list[int]) -> int:
        folded = fold_character.__wrapped__(char)
        if folded in {"", " "}:
            return SEPARATOR if folded else DROPPED
        mark = int(ALONE) if is_alone(char) else 0
        if len(folded) == 1:
            return mark | ord(folded)
        place = len(self.several) + len(several)
        several += [len(folded), *map(ord, folded)]
        return int(MANY) | mark | place


@cache
def folding_table() -> FoldingTable:
    """This process's table."""
    return FoldingTable()


def word_letters(text: str, basis: int) -> tuple[UInt32s, Int64s, UInt64s]:
    """The loose words of a text: their code points, where each word ends in these, and its hash.

    Args:
        text: the text.
        basis: initial value of hashes.
    """
    codes, (table, several) = known_codes(text)
    entries = table[codes]
    many = several[np.where(entries & MANY, entries & REST, 0)]
    letters = np.empty(int(np.where(entries & MANY, many, entries > DROPPED).sum()), np.uint32)
    ends, hashes = np.empty(len(letters), np.int64), np.empty(len(letters), np.uint64)
    n_words = _fold_words(codes, table, several, np.uint64(basis), letters, ends, hashes)
    return letters, ends[:n_words].copy(), hashes[:n_words].copy()


def same_words(
    letters: UInt32s,
    ends: Int64s,
    chosen: Int64s,
    others: UInt32s,
    other_ends: Int64s,
    wanted: Int64s,
) -> Booleans:
    """Whether words ``chosen[i]`` and ``wanted[i]`` of two lists of words, given as by
    `word_letters`, are equal, for every i.
    """
    begins = np.where(chosen > 0, ends[chosen - 1], 0)
    other_begins = np.where(wanted > 0, other_ends[wanted - 1], 0)
    lengths = ends[chosen] - begins
    same: Booleans = lengths == other_ends[wanted] - other_begins
    pairs = np.flatnonzero(same)
    counts = lengths[pairs]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    owners = np.repeat(pairs, counts)
    unlike = letters[begins[owners] + within] != others[other_begins[owners] + within]
    same[owners[unlike]] = False
    return same


def known_codes(
    text: str,
) -> tuple[UInt32s, tuple[UInt32s, UInt32s]]:
    """Code points of a text, and the folding table's ``codes`` and ``several`` with all their pages
    filled.
    """
    codes, table = code_points(text), folding_table()
    if not text.isascii():
        pages = codes >> np.uint32(8)
        for page in np.unique(pages[~table.known[pages]]).tolist():
            table.fill(page)
    return codes, (table.codes, table.several)


@compiled
def _fold_words(
    codes: UInt32s,
    table: UInt32s,
    several: UInt32s,
    basis: np.uint64,
    letters: UInt32s,
    ends: Int64s,
    hashes: UInt64s,
) -> int:
    """Write a text's loose words: their code points one after another, where each ends in there,
    and its hash.

    Args:
        codes: ``(n,)`` code points of the text.
        table: of `lc_assets.text.contamination.loose_words.FoldingTable`, as is ``several``.
        basis: initial value of a hash.
        letters: room for the words' code points; ``ends`` and ``hashes``: for as many words.

    Returns:
        The number of words.
    """
    n_letters = 0
    n_words = 0
    begun = 0
    value = basis
    for i in range(len(codes)):
        entry = table[codes[i]]
        if entry == 1:
            continue
        alone = (entry & ALONE) != 0
        if (entry == 0 or alone) and n_letters > begun:
            ends[n_words], hashes[n_words] = n_letters, mix64_kernel(value)
            n_words, begun, value = n_words + 1, n_letters, basis
        if entry == 0:
            continue
        if entry & MANY:
            first = np.int64(entry & REST)
            for step in range(np.int64(several[first])):
                letters[n_letters] = several[first + 1 + step]
                value = (value ^ np.uint64(letters[n_letters])) * PRIME
                n_letters += 1
        else:
            letters[n_letters] = entry & REST
            value = (value ^ np.uint64(letters[n_letters])) * PRIME
            n_letters += 1
        if alone:
            ends[n_words], hashes[n_words] = n_letters, mix64_kernel(value)
            n_words, begun, value = n_words + 1, n_letters, basis
    if n_letters > begun:
        ends[n_words], hashes[n_words] = n_letters, mix64_kernel(value)
        n_words += 1
    return n_words
