"""How much of a document repeats itself: top n-grams and duplicate n-grams.

Two fractions of the characters of all normalized words (spaces do not count):

=================================  =========================================================================
rps_doc_frac_chars_top_{2..4}gram  of the most frequent n-gram, the first seen among equals, times
its count;
                                   overlaps count, so "ha ha ha ha" scores above one; 0 when none
                                   repeats
rps_doc_frac_chars_dupe_{5..10}grams  of the words that lie in any repeated n-gram, first occurrence
included,
                                   each word once
=================================  =========================================================================

Source: ``quality_signals/repetitions.py`` of togethercomputer/RedPajama-Data, after Rae et al.
    2021, table A1.
Its own definition differs from that of the paper and of other tools, chiefly in what overlaps
count.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from lc_assets.text.ngrams import Repeats, repeats_by_length

_TOP = range(2, 5)
_LENGTHS = range(2, 11)


def repetition_scores(words: Sequence[str]) -> dict[str, float]:
    """Compute both families of fractions, unrounded, by signal name.

    >>> scores = repetition_scores("the end is near the end is far".split())
    >>> round(scores["rps_doc_frac_chars_top_2gram"], 3), scores["rps_doc_frac_chars_dupe_5grams"]
    (0.522, 0.0)
    """
    chars_before = list(accumulate(map(len, words), initial=0))
    return dict(_score(found, chars_before) for found in repeats_by_length(words, _LENGTHS))


def _score(found: Repeats, chars_before: Sequence[int]) -> tuple[str, float]:
    n_chars = chars_before[-1] or 1
    if found.length in _TOP:
        return f"rps_doc_frac_chars_top_{found.length}gram", _top_chars(found) / n_chars
    return f"rps_doc_frac_chars_dupe_{found.length}grams", sum(
        _marked_chars(found, chars_before)
    ) / n_chars


def _top_chars(found: Repeats) -> int:
    # max() keeps the first of equals, and the counts are in the order of first occurrence.
    gram, count = max(found.counts.items(), key=lambda item: item[1], default=((), 0))
    return sum(map(len, gram)) * count


def _marked_chars(found: Repeats, chars_before: Sequence[int]) -> Iterator[int]:
    stop = 0
    for start in found.starts:
        fresh, stop = max(start, stop), start + found.length
        yield chars_before[stop] - chars_before[fresh]
