"""The words of a document, ready to be counted: compiled where there is a compiler, plain
otherwise.

Here: what can be asked of them, the plain way, and choosing. Not here: the compiled way
(`lc_assets.text.kernels.measure_facade`), what is counted (`lc_assets.text.word_counts`,
`lc_assets.text.gram_counts`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol

from lc_assets.compiling import COMPILED
from lc_assets.text.gram_counts import GramCounts, count_grams, seen_before_chars
from lc_assets.text.line_counts import LineCounts, count_lines
from lc_assets.text.word_counts import WordCounts, count_words, words_of

LONGEST: Final = 2**30
"""Characters of the longest text that is counted by compiled loops, whose positions are 32 bits
wide.
"""


class MeasuredWords(Protocol):
    """Words of a text, of one kind."""

    def counts(self) -> WordCounts:
        """See `lc_assets.text.word_counts.count_words`."""

    def median_chars(self) -> float | None:
        """Median of the lengths in characters, the mean of the middle two; None when there are no
        words.
        """

    def grams(self, lengths: Collection[int]) -> dict[int, GramCounts]:
        """See `lc_assets.text.gram_counts.count_grams`."""

    def seen_before_chars(self, lengths: Collection[int]) -> dict[int, int]:
        """See `lc_assets.text.gram_counts.seen_before_chars`."""


@dataclass(frozen=True, slots=True)
class PlainWords:
    """Words as a list; the oracle of the compiled way, and its stand-in.

    Attributes:
        words: in order.
    """

    words: Sequence[str]

    def counts(self) -> WordCounts:
        """Count words."""
        return count_words(self.words)

    def median_chars(self) -> float | None:
        """Median of the lengths."""
        return float(median(map(len, self.words))) if self.words else None

    def grams(self, lengths: Collection[int]) -> dict[int, GramCounts]:
        """Count n-grams."""
        return count_grams(self.words, lengths)

    def seen_before_chars(self, lengths: Collection[int]) -> dict[int, int]:
        """Count characters of n-grams seen before."""
        return seen_before_chars(self.words, lengths)


def measured_words(text: str, kind: str) -> MeasuredWords:
    """The words of a text.

    >>> measured_words("To be, or not to be.", "normalized").counts().n_stop_occurring
    4

    Raises:
        BadInput: when there is no such kind.
    """
    if COMPILED and len(text) <= LONGEST:
        # Numba takes half a second.
        from lc_assets.text.kernels.measure_facade import compiled_words  # noqa: PLC0415

        return compiled_words(text, kind)
    return PlainWords(words_of(text, kind))


def measured_lines(text: str) -> LineCounts:
    """The counts of a text's lines and paragraphs; see `lc_assets.text.line_counts.count_lines`."""
    if COMPILED and len(text) <= LONGEST:
        # Numba takes half a second.
        from lc_assets.text.kernels.measure_facade import compiled_lines  # noqa: PLC0415

        return compiled_lines(text)
    return count_lines(text)
