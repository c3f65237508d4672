"""Repeated n-grams of a word list: the counting behind RedPajama-V2's repetition signals.

Here: which n-grams occur more than once, and where. Not here: the fractions
    (`lc_assets.text.repetition`).

An n-gram can repeat only where both (n-1)-grams inside it repeat. So each length is counted only at
the starts that the length before left over: in prose nine lengths cost little more than two.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Repeats:
    """The n-grams of one length that occur more than once.

    Attributes:
        length: words of an n-gram.
        counts: how often each occurs, overlaps counted; in the order of first occurrence.
        starts: position of the first word of every occurrence, the first one included; ascending.
    """

    length: int
    counts: dict[tuple[str, ...], int]
    starts: list[int]


def repeats_by_length(words: Sequence[str], lengths: range) -> Iterator[Repeats]:
    """Yield the repeated n-grams of each length, shortest first; ``lengths`` goes up in steps of
    one.

    >>> [(found.length, found.starts) for found in repeats_by_length("a b c x a b c".split(), range(2, 5))]
    [(2, [0, 1, 4, 5]), (3, [0, 4]), (4, [])]
    """
    starts = list(range(len(words) - lengths.start + 1))
    for length in lengths:
        found = _repeats(words, length, starts)
        yield found
        starts = [
            start
            for start, after in zip(found.starts, found.starts[1:], strict=False)
            if after == start + 1
        ]


def _repeats(words: Sequence[str], length: int, starts: Sequence[int]) -> Repeats:
    grams = [tuple(words[start : start + length]) for start in starts]
    counts = {gram: count for gram, count in Counter(grams).items() if count > 1}
    return Repeats(
        length, counts, [start for start, gram in zip(starts, grams, strict=True) if gram in counts]
    )
