r"""Lines and paragraphs of a document: bulleted, trailing off, short, repeated.

Here: the counts, as integers, the plain way; the compiled one gives the same
    (`lc_assets.text.fast_counts`). Not here:
the fractions (`lc_assets.text.measures`), RedPajama-V2's line signals
(`lc_assets.text.line_signals`).

What a line is differs by program and by measure:

==================  ======================================================================================
broken lines        ``str.splitlines``: also at ``\r``, U+2028 …  (datatrove: bullets, ellipses)
stretches           ``re.split("\n+")``: an empty one before a leading and after a trailing newline (datatrove:
                    repeated lines)
newline lines       ``str.split("\n")``: empty ones too (Dolma)
filled lines        newline lines that hold more than whitespace (FineWeb)
paragraphs          ``re.split("\n{2,}")`` of the stripped text (datatrove)
==================  ======================================================================================

Sources: ``gopher_quality_filter.py``, ``gopher_repetition_filter.py``,
    ``fineweb_quality_filter.py`` of datatrove 0.10.1;
``taggers/gopher.py`` of Dolma.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lc_assets.text.word_counts import TERMINAL_MARKS

SHORT_LINE: Final = 30
"""Characters of the longest line that FineWeb calls short."""

_STRETCH = re.compile("\n+")
_PARAGRAPH = re.compile(r"\n{2,}")


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What is counted of lines and paragraphs; see the module for the kinds of lines.

    Attributes:
        n_broken: broken lines; n_broken_bulleted: those that start with ``•`` or ``-``;
            n_broken_ellipsis: those that end with ``...`` or ``…``; whitespace aside.
        n_stretches: stretches; n_stretches_seen: those seen before; n_stretch_chars_seen: their
            characters.
        n_newline: newline lines; n_newline_bulleted: those that start with ``*`` or ``-``;
            n_newline_ellipsis: those that end with ``…``; n_newline_repeated: those that occur
                twice or more; n_newline_chars_repeated: their
            characters.
        n_filled: filled lines; n_filled_terminal: those that end with a `TERMINAL_MARKS`;
            n_filled_short: those of at most `SHORT_LINE` characters; n_filled_chars_seen:
                characters of those seen before.
        n_paragraphs: paragraphs; n_paragraphs_seen: those seen before; n_paragraph_chars_seen:
            their characters.
        n_chars_dense: characters that are no whitespace.
    """

    n_broken: int
    n_broken_bulleted: int
    n_broken_ellipsis: int
    n_stretches: int
    n_stretches_seen: int
    n_stretch_chars_seen: int
    n_newline: int
    n_newline_bulleted: int
    n_newline_ellipsis: int
    n_newline_repeated: int
    n_newline_chars_repeated: int
    n_filled: int
    n_filled_terminal: int
    n_filled_short: int
    n_filled_chars_seen: int
    n_paragraphs: int
    n_paragraphs_seen: int
    n_paragraph_chars_seen: int
    n_chars_dense: int


def count_lines(text: str) -> LineCounts:
    r"""Count what measures of lines need.

    >>> counts = count_lines("- one\n- one\n\n  - two …\n")
    >>> counts.n_broken, counts.n_broken_bulleted, counts.n_stretches_seen, counts.n_newline_repeated, counts.n_paragraphs
    (4, 3, 1, 4, 2)
    """
    broken, newline = text.splitlines(), text.split("\n")
    filled = [line for line in newline if line.strip()]
    repeated = {line: count for line, count in Counter(newline).items() if count > 1}
    stretches, paragraphs = _STRETCH.split(text), _PARAGRAPH.split(text.strip())
    n_stretches_seen, n_stretch_chars_seen = _seen_before(stretches)
    n_paragraphs_seen, n_paragraph_chars_seen = _seen_before(paragraphs)
    return LineCounts(
        n_broken=len(broken),
        n_broken_bulleted=sum(line.lstrip().startswith(("\u2022", "-")) for line in broken),
        n_broken_ellipsis=sum(line.rstrip().endswith(("...", "\u2026")) for line in broken),
        n_stretches=len(stretches),
        n_stretches_seen=n_stretches_seen,
        n_stretch_chars_seen=n_stretch_chars_seen,
        n_newline=len(newline),
        n_newline_bulleted=sum(line.startswith(("*", "-")) for line in newline),
        n_newline_ellipsis=sum(line.endswith("\u2026") for line in newline),
        n_newline_repeated=sum(repeated.values()),
        n_newline_chars_repeated=sum(len(line) * count for line, count in repeated.items()),
        n_filled=len(filled),
        n_filled_terminal=sum(bool(TERMINAL_MARKS.match(line[-1])) for line in filled),
        n_filled_short=sum(len(line) <= SHORT_LINE for line in filled),
        n_filled_chars_seen=_seen_before(filled)[1],
        n_paragraphs=len(paragraphs),
        n_paragraphs_seen=n_paragraphs_seen,
        n_paragraph_chars_seen=n_paragraph_chars_seen,
        n_chars_dense=sum(map(len, text.split())),
    )


def _seen_before(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces are copies of an earlier one, and the characters of these."""
    distinct = set(pieces)
    return len(pieces) - len(distinct), sum(map(len, pieces)) - sum(map(len, distinct))
