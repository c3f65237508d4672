r"""Kinds of words, and reading a text's words of a kind in one pass over its UTF-8.

==========  ================================================================================
normalized  `lc_assets.text.words.fold`, then ``str.split``: RedPajama-V2's words
raw         ``\w+|[^\w\s]+``: RedPajama-V2's raw words
spacy       `lc_assets.text.measures.spacy_words.spaced`: spaCy's English words, which are
            datatrove's
whitespace  ``str.split``: the words of Dolma and NeMo Curator
==========  ================================================================================

Words are concatenated without the characters between them: word ``i`` is ``joined[ends[i]:ends[i +
1]]``.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from lc_assets.arrays import Bytes, Int32s, Int64s, UInt16s
from lc_assets.compiling import borrowing, compiled
from lc_assets.errors import BadInput
from lc_assets.text.characters import (
    DENSE,
    LETTER,
    NOT_PUNCTUATION,
    SYMBOL,
    WORD,
    character_at,
    character_bits,
)
from lc_assets.text.folding import normalized_each
from lc_assets.text.hashing import whole
from lc_assets.text.numbering import eight_bytes, visible
from lc_assets.text.texts import Texts

WORD_KINDS = ("normalized", "raw", "spacy", "whitespace")
"""The kinds of words that a measure can count."""

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""The eight of Rae et al. 2021, A.1.1."""


Counted: TypeAlias = int | Int64s
"""A count of one text, or of each of several."""


class WordCounts(NamedTuple):
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

    n_words: Counted
    n_chars: Counted
    n_non_symbol: Counted
    n_chars_non_symbol: Counted
    n_with_letter: Counted
    n_with_symbol: Counted
    n_stop_distinct: Counted
    n_stop_occurring: Counted


MAX_BYTES = (1 << 31) - 64
"""Bytes of UTF-8 of the longest text that can be measured: positions are 32 bits wide."""

PADDING = 8
"""Bytes after the last word, so that eight can be read at once from the start of any word."""

_SHORT, _BYTE = 7, np.uint64(0xFF)
_STOP_KEYS = tuple(int.from_bytes(word.encode(), "little") | len(word) << 56 for word in STOP_WORDS)
_THE, _BE, _TO, _OF, _AND, _THAT, _HAVE, _WITH = map(np.uint64, _STOP_KEYS)


@borrowing
def _short_key(joined: Bytes, start: int, length: int) -> np.uint64:
    """A word of up to seven bytes as a number, its length in the highest byte; 0 for a longer
    one.
    """
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


@borrowing
def _read_words(
    data: Bytes,
    table: UInt16s,
    runs: bool,
    joined: Bytes,
    ends: Int32s,
    chars: Int32s,
    counts: Int64s,
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
        _, size, bits = character_at(data, table, i)
        group = bits & border
        if not bits & DENSE:
            i += size
            continue
        # Phase 1: copy the word, and collect the bits of its characters.
        start, start_chars, held = n_joined, n_chars, 0
        n_read = 0 if runs else 8
        while n_read == 8 and i + 8 <= n_bytes:
            word, n_read = visible(eight_bytes(data, i))
            for offset in range(8):
                joined[np.uint64(n_joined + offset)] = word >> np.uint64(8 * offset)
            for offset in range(8):  # 0, behind the word, has none of the bits that are counted
                held |= whole(table[(word >> np.uint64(8 * offset)) & _BYTE])
            i += n_read
            n_joined += n_read
            n_chars += n_read
        while i < n_bytes:
            _, size, bits = character_at(data, table, i)
            if bits & border != group:
                break
            held |= bits
            for offset in range(size):
                joined[n_joined + offset] = data[i + offset]
            n_joined += size
            n_chars += 1
            i += size
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


@compiled
def _read_each(
    data: Bytes,
    text_ends: Int64s,
    table: UInt16s,
    runs: bool,
    joined: Bytes,
    ends: Int32s,
    chars: Int32s,
    counts: Int64s,
    word_ends: Int64s,
) -> None:
    """Read the words of some texts; arguments as of `_read_words`, one text behind the other.

    Args:
        text_ends: after the last byte of each text.
        counts: int64[texts, 8].
        word_ends: int64[texts + 1]; gets where each text's part of ``ends`` and ``chars`` ends.
    """
    begin = 0
    word_ends[0] = 0
    for text in range(len(text_ends)):
        first = word_ends[text]
        n_words = _read_words(
            data[begin : text_ends[text]],
            table,
            runs,
            joined[begin:],
            ends[first:],
            chars[first:],
            counts[text],
        )
        word_ends[text + 1] = first + n_words + 1
        begin = text_ends[text]


class Words(NamedTuple):
    """A text's words of one kind.

    Attributes:
        joined: their UTF-8, uint8, followed by padding.
        ends: int32[n + 1], word ``i`` is ``joined[ends[i]:ends[i + 1]]``.
        chars: the same in characters.
    """

    joined: Bytes
    ends: Int32s
    chars: Int32s


class WordsOfTexts(NamedTuple):
    """The words of some texts, of one kind.

    Attributes:
        joined: as `Words.joined`, one text behind the other.
        ends: as `Words.ends`.
        chars: as `Words.chars`.
        begins: int64[texts], first byte of each text in ``joined``.
        bounds: int64[texts + 1], first of each text in ``ends`` and ``chars``.
        counts: of the words; int64[texts] each.
    """

    joined: Bytes
    ends: Int32s
    chars: Int32s
    begins: Int64s
    bounds: Int64s
    counts: WordCounts

    def each(self) -> Iterator[Words]:
        """The words of each text."""
        bounds = pairwise(self.bounds.tolist())
        for begin, (first, last) in zip(self.begins.tolist(), bounds, strict=True):
            yield Words(self.joined[begin:], self.ends[first:last], self.chars[first:last])


def read_words(texts: Texts, kind: str) -> WordsOfTexts:
    """Read the words of some texts.

    >>> read_words(Texts(["To be, or not to be."]), "normalized").counts.n_stop_occurring.tolist()
    [4]

    Raises:
        BadInput: when a text is longer than `MAX_BYTES`.
    """
    if kind == "normalized":
        data, text_ends = normalized_each(*texts.utf8)
    else:
        data, text_ends = (Texts(map(_spaced, texts.texts)) if kind == "spacy" else texts).utf8
    require_measurable(text_ends)
    n_texts, n_words = len(text_ends), len(data) + len(text_ends)
    joined, counts = np.empty(len(data) + PADDING, np.uint8), np.empty((n_texts, 8), np.int64)
    ends, chars = np.empty(n_words, np.int32), np.empty(n_words, np.int32)
    bounds = np.empty(n_texts + 1, np.int64)
    table, runs = character_bits(), kind == "raw"
    _read_each(data, text_ends, table, runs, joined, ends, chars, counts, bounds)
    begins = np.append(0, text_ends[:-1])
    return WordsOfTexts(joined, ends, chars, begins, bounds, WordCounts(*counts.T))


def _spaced(text: str) -> str:
    # Its patterns take longer to compile than all others.
    from lc_assets.text.measures.spacy_words import spaced

    return spaced(text)


def require_measurable(ends: Int64s) -> None:
    """Refuse a text that is too long, by the ends of texts one behind the other.

    Raises:
        BadInput: when it has more than `MAX_BYTES`.
    """
    if (most := int(np.diff(ends, prepend=0).max(initial=0))) > MAX_BYTES:
        raise BadInput(
            f"a text of {most:,} bytes of UTF-8: measures take at most {MAX_BYTES:,}; split it"
        )
