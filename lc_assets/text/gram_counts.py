"""Characters in repeated n-grams, as datatrove and as Dolma count them, which is not how
RedPajama-V2 does.

Here: the counts, as integers, the plain way; the compiled one gives the same
    (`lc_assets.text.fast_counts`). Not here:
the fractions (`lc_assets.text.measures`), RedPajama-V2's own (`lc_assets.text.repetition`).

* The most frequent n-gram: both count overlaps and take the first of equals, even where none occurs
  twice. datatrove then counts the spaces between its words, Dolma does not.
* n-grams seen before (datatrove): a walk from the left; an n-gram met again counts and its words
  are stepped over. Its words are glued together before they are compared, so ``1 11 1 …`` is met
  again in ``11 1 1 …``.
* repeated n-grams (Dolma): every copy of an n-gram that occurs twice or more counts, overlaps too,
  the first as well, of all n-grams' characters.

Sources: ``gopher_repetition_filter.py`` of datatrove 0.10.1; ``taggers/gopher.py`` of Dolma.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

TOP_LENGTHS: Final = (2, 3, 4)
"""Words in the n-grams of which the most frequent one counts: Rae et al. 2021, table A1."""

DUPLICATE_LENGTHS: Final = (5, 6, 7, 8, 9, 10)
"""Words in the n-grams of which the repeated ones count: the same table."""


@dataclass(frozen=True, slots=True)
class GramCounts:
    """What is counted of n-grams of one length; whole numbers, 0 where there are fewer words than
    that.

    Attributes:
        top_count: occurrences of the most frequent n-gram.
        top_chars: characters of its words, once.
        repeated_chars: characters of all occurrences of n-grams that occur twice or more.
        all_chars: characters of all n-grams.
    """

    top_count: int
    top_chars: int
    repeated_chars: int
    all_chars: int


def count_grams(words: Sequence[str], lengths: Collection[int]) -> dict[int, GramCounts]:
    """Count n-grams of each length, as tuples of words.

    >>> count_grams("a bb a bb c".split(), [2])[2]
    GramCounts(top_count=2, top_chars=3, repeated_chars=6, all_chars=12)
    """
    return {length: _count(words, length) for length in lengths}


def _count(words: Sequence[str], length: int) -> GramCounts:
    chars_before = list(accumulate(map(len, words), initial=0))
    counts = Counter(
        tuple(words[start : start + length]) for start in range(len(words) - length + 1)
    )
    # max() keeps the first of equals, and a Counter is in the order of first occurrence.
    gram, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
    repeated = sum(count * sum(map(len, gram)) for gram, count in counts.items() if count > 1)
    every = sum(
        chars_before[start + length] - chars_before[start]
        for start in range(len(words) - length + 1)
    )
    return GramCounts(count, sum(map(len, gram)), repeated, every)


def seen_before_chars(words: Sequence[str], lengths: Collection[int]) -> dict[int, int]:
    """Characters of n-grams seen before, by length, as datatrove walks.

    >>> seen_before_chars("a b c a b c a b".split(), [2, 3])
    {2: 4, 3: 3}
    """
    return {length: _walk(words, length) for length in lengths}


def _walk(words: Sequence[str], length: int) -> int:
    seen: set[str] = set()
    chars = start = 0
    while start <= len(words) - length:
        gram = "".join(words[start : start + length])
        if gram in seen:
            chars += len(gram)
            start += length
        else:
            seen.add(gram)
            start += 1
    return chars
