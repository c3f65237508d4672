r"""Kinds of words, and reading a text's words of a kind in one pass over its UTF-8.

==========  ================================================================================
normalized  `lc_assets.text.words.fold`, then ``str.split``: RedPajama-V2's words
raw         ``\w+|[^\w\s]+``: RedPajama-V2's raw words, and the nearest to datatrove's words
whitespace  ``str.split``: the words of Dolma and NeMo Curator
==========  ================================================================================

datatrove splits English with spaCy's tokenizer, which cuts ``don't`` into ``do`` and ``n't`` and
knows abbreviations. Nothing here does that; on the same words these measures equal datatrove's own.

Words are joined without what lies between them: word ``i`` is ``joined[ends[i]:ends[i + 1]]``.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.errors import BadInput
from lc_assets.text.hashing import whole
from lc_assets.text.words import normalized_utf8

WORD_KINDS: Final = ("normalized", "raw", "whitespace")
"""The kinds of words that a measure can count."""

STOP_WORDS: Final = ("the", "be", "to", "of", "and", "that", "have", "with")
"""The eight of Rae et al. 2021, A.1.1."""

TERMINAL_MARKS: Final = re.compile(
    r"[\x21\x2e\x3f\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    r"\u166e\u1735\u1736\u17d4-\u17d6\u17d9\u17da\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d\u1b7e\u1c3b"
    r"\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce"
    r"\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    r"\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1\U00011141-\U00011143\U000111c5\U000111c6"
    r"\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2\U000115c3"
    r"\U000115c9-\U000115d7\U00011641\U00011642\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c"
    r"\U00011c41\U00011c42\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44"
    r"\U00016e98\U0001bc9f\U0001da88]"
)
"""One character that ends a sentence in some script: ``TERMINAL_PUNCTUATION`` of datatrove 0.10,
159 characters.
"""

PUNCTUATION: Final = re.compile(
    f"[{TERMINAL_MARKS.pattern[1:-1]}"
    r"\x00-\x08\x0b-\x1f\x22-\x2d\x2f\x3a-\x3e\x40\x5b-\x60\x7b-\x9f\xab\xb4\xbb\u2013\u2014\u2019\u201c-\u201e\u2026\u2236\u2501\u25ba"
    r"\u3001\u3008-\u300d\u3010\u3011\uff05\uff08\uff09\uff0c\uff11\uff1a\uff1b\uff5e]"
)
"""One character of ``PUNCTUATION_SET`` of datatrove 0.10: 440 characters, control characters and a
full-width 1 among them.
"""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Counts of words; lengths in characters.

    Attributes:
        n_words: words.
        n_chars: characters of all words.
        n_non_symbol: words with a character that is not `PUNCTUATION`.
        n_chars_non_symbol: characters of these.
        n_with_letter: words with an alphabetic character (``str.isalpha``).
        n_with_symbol: words that hold ``#`` or ``…``.
        n_stop_distinct: how many of `STOP_WORDS` occur.
        n_stop_occurring: words that are one of them.
    """

    n_words: int
    n_chars: int
    n_non_symbol: int
    n_chars_non_symbol: int
    n_with_letter: int
    n_with_symbol: int
    n_stop_distinct: int
    n_stop_occurring: int


WORD: Final = 1
r"""A word character, ``\w``."""
DENSE: Final = 2
"""No white space (``str.isspace``)."""
LETTER: Final = 4
"""``str.isalpha``."""
NOT_PUNCTUATION: Final = 8
"""Not one of `PUNCTUATION`."""
SYMBOL: Final = 16
"""``#`` or ``…``."""
BREAK: Final = 32
"""Ends a line, as ``str.splitlines`` has it."""
TERMINAL: Final = 64
"""One of `TERMINAL_MARKS`."""
ORDINARY: Final = 128
"""ASCII, no full stop, no white space but the space."""

N_CODE_POINTS: Final = 0x40000
"""Entries of the table of characters. From here on no character is a letter, a digit, white space
or punctuation; a test checks each.
"""

BEYOND: Final = DENSE | NOT_PUNCTUATION
"""Bits of every character after the table's end."""


@lru_cache(maxsize=1)
def character_bits() -> NDArray[np.uint8]:
    """What each character is, as bits: uint8[N_CODE_POINTS]. Takes 0.15 s, once per process."""
    characters = list(map(chr, range(N_CODE_POINTS)))
    table = np.zeros(N_CODE_POINTS, np.uint8)
    for bit, predicate in (
        (WORD, lambda c: c.isalnum() or c == "_"),
        (DENSE, lambda c: not c.isspace()),
        (LETTER, str.isalpha),
        (NOT_PUNCTUATION, lambda c: PUNCTUATION.match(c) is None),
        (SYMBOL, lambda c: c in "#\u2026"),
        (BREAK, lambda c: len(f"{c}a".splitlines()) == 2),
        (TERMINAL, lambda c: TERMINAL_MARKS.match(c) is not None),
        (ORDINARY, lambda c: c == " " or (c.isascii() and not c.isspace() and c != ".")),
    ):
        table |= np.fromiter(map(predicate, characters), np.bool_, N_CODE_POINTS).astype(
            np.uint8
        ) * np.uint8(bit)
    table.flags.writeable = False
    return table


MAX_BYTES: Final = (1 << 31) - 64
"""UTF-8 of the longest text that can be measured: positions are 32 bits wide."""

PADDING: Final = 8
"""Bytes after the last word, so that eight can be read at once from the start of any word."""

_SHORT: Final = 7
_STOP_KEYS: Final = tuple(
    int.from_bytes(word.encode(), "little") | len(word) << 56 for word in STOP_WORDS
)
_THE, _BE, _TO, _OF, _AND, _THAT, _HAVE, _WITH = map(np.uint64, _STOP_KEYS)


@compiled
def code_point(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The character at a position of sound UTF-8 (surrogates may be there), and its bytes."""
    first = whole(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (whole(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (whole(data[at + 1]) & 0x3F) << 6 | (
            whole(data[at + 2]) & 0x3F
        ), 3
    high = (first & 0x07) << 18 | (whole(data[at + 1]) & 0x3F) << 12
    return high | (whole(data[at + 2]) & 0x3F) << 6 | (whole(data[at + 3]) & 0x3F), 4


@compiled
def eight_bytes(data: NDArray[np.uint8], at: int) -> np.uint64:
    """Eight bytes as a number; LLVM makes it one load."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << np.uint64(8)
        | np.uint64(data[at + 2]) << np.uint64(16)
        | np.uint64(data[at + 3]) << np.uint64(24)
        | np.uint64(data[at + 4]) << np.uint64(32)
        | np.uint64(data[at + 5]) << np.uint64(40)
        | np.uint64(data[at + 6]) << np.uint64(48)
        | np.uint64(data[at + 7]) << np.uint64(56)
    )


@compiled
def _short_key(joined: NDArray[np.uint8], start: int, length: int) -> np.uint64:
    """A word of up to seven bytes as a number, its length on top; 0 for a longer one."""
    if length > _SHORT:
        return np.uint64(0)
    mask = (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
    return eight_bytes(joined, start) & mask | np.uint64(length) << np.uint64(56)


@compiled
def _stop_bit(key: np.uint64) -> int:
    """The bit of a stop word, by its `_short_key`; 0 for any other word. Without branches, which
    could not be predicted.
    """
    low = (key == _THE) * 1 + (key == _BE) * 2 + (key == _TO) * 4 + (key == _OF) * 8
    bit: int = (
        low + (key == _AND) * 16 + (key == _THAT) * 32 + (key == _HAVE) * 64 + (key == _WITH) * 128
    )
    return bit


@compiled
def _bits_at(data: NDArray[np.uint8], table: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Bits of the character at a position, and its bytes."""
    first = data[at]
    if first < 0x80:
        return whole(table[first]), 1
    point, size = code_point(data, at)
    return (whole(table[point]) if point < N_CODE_POINTS else BEYOND), size


@compiled
def _read_words(
    data: NDArray[np.uint8],
    table: NDArray[np.uint8],
    runs: bool,
    joined: NDArray[np.uint8],
    ends: NDArray[np.int32],
    chars: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Read words: runs without white space, or (``runs``) of word characters or of other ones.

    Args:
        data: UTF-8.
        table: `character_bits`.
        runs: whether a word ends where word characters do.
        joined: gets the words' bytes; `PADDING` longer than ``data``.
        ends: gets, for word ``i`` at ``i + 1``, the end of its bytes in ``joined``; at 0 a 0.
        chars: the same in characters.
        counts: gets the fields of `WordCounts`.

    Returns:
        How many words there are.
    """
    n_words = n_joined = n_chars = stops = 0
    n_non_symbol = n_chars_non_symbol = n_with_letter = n_with_symbol = n_stops = 0
    border = DENSE | WORD if runs else DENSE
    ends[0] = chars[0] = 0
    i, n_bytes = 0, len(data)
    while i < n_bytes:
        bits, size = _bits_at(data, table, i)
        group = bits & border
        if not bits & DENSE:
            i += size
            continue
        # Phase 1: copy the word, and collect the bits of its characters.
        start, start_chars, held = n_joined, n_chars, 0
        while bits & border == group:
            held |= bits
            joined[n_joined] = data[i]
            for offset in range(1, size):
                joined[n_joined + offset] = data[i + offset]
            n_joined += size
            n_chars += 1
            i += size
            if i == n_bytes:
                break
            bits, size = _bits_at(data, table, i)
        # Phase 2: count it.
        stop = _stop_bit(_short_key(joined, start, n_joined - start))
        stops |= stop
        n_stops += stop != 0
        counted = (held & NOT_PUNCTUATION) // NOT_PUNCTUATION
        n_non_symbol += counted
        n_chars_non_symbol += counted * (n_chars - start_chars)
        n_with_letter += held & LETTER
        n_with_symbol += held & SYMBOL
        n_words += 1
        ends[n_words] = n_joined
        chars[n_words] = n_chars
    n_distinct = 0
    while stops:
        n_distinct += stops & 1
        stops >>= 1
    counts[0], counts[1], counts[2], counts[3] = n_words, n_chars, n_non_symbol, n_chars_non_symbol
    counts[4], counts[5] = n_with_letter // LETTER, n_with_symbol // SYMBOL
    counts[6], counts[7] = n_distinct, n_stops
    return n_words


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A text's words of one kind.

    Attributes:
        joined: their UTF-8, uint8, followed by bytes without meaning.
        ends: int32[n + 1], word ``i`` is ``joined[ends[i]:ends[i + 1]]``.
        chars: the same in characters.
        counts: of the words.
    """

    joined: NDArray[np.uint8]
    ends: NDArray[np.int32]
    chars: NDArray[np.int32]
    counts: WordCounts


def read_words(text: str, kind: str) -> Words:
    """Read the words of a text.

    >>> read_words("To be, or not to be.", "normalized").counts.n_stop_occurring
    4

    Raises:
        BadInput: when there is no such kind, or the text is longer than `MAX_BYTES`.
    """
    if kind not in WORD_KINDS:
        raise BadInput(f"no words are called {kind!r}; there are {', '.join(WORD_KINDS)}")
    data = normalized_utf8(text) if kind == "normalized" else utf8_of(text)
    require_measurable(data)
    joined, counts = np.empty(len(data) + PADDING, np.uint8), np.empty(8, np.int64)
    ends, chars = np.empty(len(data) + 1, np.int32), np.empty(len(data) + 1, np.int32)
    end = _read_words(data, character_bits(), kind == "raw", joined, ends, chars, counts) + 1
    return Words(joined, ends[:end], chars[:end], WordCounts(*counts.tolist()))


def utf8_of(text: str) -> NDArray[np.uint8]:
    """A text's UTF-8, lone surrogates in three bytes; read-only."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def require_measurable(data: NDArray[np.uint8]) -> None:
    """Refuse a text that is too long.

    Raises:
        BadInput: when it has more than `MAX_BYTES`.
    """
    if len(data) > MAX_BYTES:
        raise BadInput(
            f"a text of {len(data):,} bytes of UTF-8: measures take at most {MAX_BYTES:,}; split it"
        )
