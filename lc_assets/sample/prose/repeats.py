"""Which lines say something new: repeats are left out, as CCNet leaves out lines that a crawl has
shown before.

CCNet drops a line when its letters are those of an earlier line. Documentation repeats itself less
exactly (one parameter is described in forty functions, each time with another name in it), so here
a line also goes when more than `MAX_SEEN_SHARE` of its six-word sequences have been read before.
"""

import re
from collections.abc import Iterable, Iterator

SEQUENCE_WORDS = 6

MAX_SEEN_SHARE = 1 / 3

_NOT_WORDS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d")


def is_new(lines: Iterable[str]) -> Iterator[bool]:
    """Say of each line whether it is new, given the lines before it.

    >>> list(is_new(["The width of the figure in inches.", "The Width of the figure, in inches!", "The colour of its edge."]))
    [True, False, True]
    """
    seen: set[str] = set()
    for line in lines:
        sequences = _sequences(line)
        new = sum(sequence in seen for sequence in sequences) <= MAX_SEEN_SHARE * len(sequences)
        if new:
            seen.update(sequences)
        yield new


def _sequences(line: str) -> list[str]:
    words = _NOT_WORDS.sub(" ", _DIGITS.sub("0", line.lower())).split()
    last = max(1, len(words) - SEQUENCE_WORDS + 1)
    return [" ".join(words[start : start + SEQUENCE_WORDS]) for start in range(last)]
