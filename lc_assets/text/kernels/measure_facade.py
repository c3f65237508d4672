"""Between text and compiled counting: arrays made, kernels called in turn, counts handed back.

Here: `compiled_words` and `compiled_lines`, each equal to its plain twin in every count. Not here:
    choosing between the two
(`lc_assets.text.measured_words`).
"""

import string
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.text.gram_counts import GramCounts
from lc_assets.text.gram_counts import count_grams as plain_grams
from lc_assets.text.gram_counts import seen_before_chars as plain_seen_before
from lc_assets.text.kernels import (
    measure_folding,
    measure_grams,
    measure_lines,
    measure_seen,
    measure_words,
)
from lc_assets.text.kernels.measure_characters import character_bits
from lc_assets.text.line_counts import LineCounts
from lc_assets.text.line_counts import count_lines as plain_lines
from lc_assets.text.word_counts import WORD_KINDS, WordCounts
from lc_assets.text.words import fold

_FOLDED = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
_PUNCTUATION = string.punctuation.encode()


@dataclass(frozen=True, slots=True, eq=False)
class CompiledWords:
    """Words as one stretch of bytes.

    Attributes:
        glued: their UTF-8, shape ``(byte,)``, and some bytes that mean nothing.
        ends: int32, shape ``(word + 1,)``: word ``i`` is ``glued[ends[i]:ends[i + 1]]``.
        chars: the same in characters.
        keys: uint64, shape ``(word,)``: `measure_words.short_key` of each.
        counted: int64, the first eight of `WordCounts`.
    """

    glued: NDArray[np.uint8]
    ends: NDArray[np.int32]
    chars: NDArray[np.int32]
    keys: NDArray[np.uint64]
    counted: NDArray[np.int64]

    def counts(self) -> WordCounts:
        """Counts of words; `lc_assets.text.word_counts.count_words`."""
        (
            n_words,
            n_chars,
            n_non_symbol,
            n_chars_non_symbol,
            n_letter,
            n_symbol,
            n_distinct,
            n_stops,
        ) = self.counted.tolist()
        return WordCounts(
            n_words,
            n_chars,
            n_non_symbol,
            n_chars_non_symbol,
            n_letter,
            n_symbol,
            n_distinct,
            n_stops,
        )

    def grams(self, lengths: Collection[int]) -> dict[int, GramCounts]:
        """Counts of n-grams; `lc_assets.text.gram_counts.count_grams`."""
        if not lengths:
            return {}
        found = np.zeros((max(lengths) + 1, 4), np.int64)
        numbers = np.empty(len(self.ends) - 1, np.int32)
        known = measure_grams.number_words(self.glued, self.ends, self.keys, numbers)
        if known < 0 or not measure_grams.count_grams(numbers, self.chars, max(lengths), found):
            return plain_grams(self.words(), lengths)
        return {length: GramCounts(*found[length].tolist()) for length in lengths}

    def seen_before_chars(self, lengths: Collection[int]) -> dict[int, int]:
        """Characters of n-grams seen before; `lc_assets.text.gram_counts.seen_before_chars`."""
        n_words = len(self.ends) - 1
        if not lengths:
            return {}
        alone = np.empty(n_words, np.uint8)
        measure_seen.sieve_starts(self.glued, self.ends, n_words, alone)
        arrays = self.glued, self.ends, self.chars, n_words, alone
        found = {length: measure_seen.seen_before(*arrays, length) for length in lengths}
        return found if min(found.values()) >= 0 else plain_seen_before(self.words(), lengths)

    def median_chars(self) -> float | None:
        """Median of the words' lengths in characters; None when there are none."""
        lengths = np.diff(self.chars)
        return float(np.median(lengths)) if len(lengths) else None

    def words(self) -> list[str]:
        """The words as a list."""
        data, ends = self.glued.tobytes(), self.ends.tolist()
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]


def compiled_words(text: str, kind: str) -> CompiledWords:
    """Read the words of a text.

    Raises:
        BadInput: when there is no such kind.
    """
    if kind not in WORD_KINDS:
        raise BadInput(f"no words are called {kind!r}; there are {', '.join(WORD_KINDS)}")
    data = (
        folded_bytes(text)
        if kind == "normalized"
        else np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    )
    glued, keys = (
        np.empty(len(data) + measure_words.PADDING, np.uint8),
        np.empty(len(data), np.uint64),
    )
    ends, chars = np.empty(len(data) + 1, np.int32), np.empty(len(data) + 1, np.int32)
    counts = np.empty(measure_words.N_COUNTS, np.int64)
    n_words = measure_words.read_words(
        data, character_bits(), kind == "raw", glued, ends, chars, keys, counts
    )
    return CompiledWords(glued, ends[: n_words + 1], chars[: n_words + 1], keys[:n_words], counts)


def compiled_lines(text: str) -> LineCounts:
    """Count lines and paragraphs; `lc_assets.text.line_counts.count_lines`."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    room = text.count("\n") + 1
    lines, paragraphs = np.empty((4, room), np.int32), np.zeros((4, room), np.int32)
    single = np.empty(measure_lines.N_SINGLE, np.int64)
    measure_lines.read_lines(data, character_bits(), lines, single)
    n_paragraphs = measure_lines.find_paragraphs(lines, room, single, paragraphs)
    of_lines, of_paragraphs = _repeated(data, lines), _repeated(data, paragraphs[:, :n_paragraphs])
    if of_lines is None or of_paragraphs is None:
        return plain_lines(text)
    (
        n_broken,
        n_bulleted,
        n_trailing,
        n_starred,
        n_trailing_off,
        n_filled,
        n_terminal,
        n_short,
        n_dense,
        *_,
    ) = single.tolist()
    edges = text.startswith("\n") + text.endswith("\n") if text else 1
    return LineCounts(
        n_broken=n_broken,
        n_broken_bulleted=n_bulleted,
        n_broken_ellipsis=n_trailing,
        n_stretches=of_lines[5] + edges,
        n_stretches_seen=of_lines[2] + max(edges - 1, 0),
        n_stretch_chars_seen=of_lines[3],
        n_newline=room,
        n_newline_bulleted=n_starred,
        n_newline_ellipsis=n_trailing_off,
        n_newline_repeated=of_lines[0],
        n_newline_chars_repeated=of_lines[1],
        n_filled=n_filled,
        n_filled_terminal=n_terminal,
        n_filled_short=n_short,
        n_filled_chars_seen=of_lines[4],
        n_paragraphs=n_paragraphs,
        n_paragraphs_seen=of_paragraphs[2],
        n_paragraph_chars_seen=of_paragraphs[3],
        n_chars_dense=n_dense,
    )


def _repeated(data: NDArray[np.uint8], pieces: NDArray[np.int32]) -> list[int] | None:
    """What `measure_lines.count_repeated` counts; None when patience ran out."""
    numbers = np.empty(pieces.shape[1], np.int32)
    known = measure_grams.number_pieces(data, pieces[0], pieces[1], numbers)
    if known < 0:
        return None
    counts = np.empty(measure_lines.N_REPEATED, np.int64)
    measure_lines.count_repeated(numbers, known, pieces, counts)
    return [int(count) for count in counts]


def folded_bytes(text: str) -> NDArray[np.uint8]:
    """`lc_assets.text.words.fold` in UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    if text.isascii():
        return np.frombuffer(data.translate(_FOLDED, _PUNCTUATION), np.uint8)
    folded = np.empty(measure_folding.WIDEST * len(data), np.uint8)
    made = measure_folding.fold_bytes(
        np.frombuffer(data, np.uint8), *measure_folding.folding_tables(), folded
    )
    return (
        folded[:made]
        if made >= 0
        else np.frombuffer(fold(text).encode("utf-8", "surrogatepass"), np.uint8)
    )
