"""Where sentences and lines end, in ids, by what the vocabulary says of each.

An id is flagged by its text alone: whether a sentence may end with it, whether a line ends with it,
whether it begins with a blank. A sentence ends behind a flagged id that a blank follows, so not
within 3.14. Of every so many ids at most one end is kept, a line's rather than a sentence's, the
last rather than the first: a segment needs some sixteen to choose from.

Here: ids and flags. Not here: texts of ids, which are files' (`lc_assets.formats.token_flags`),
    cutting (`lc_assets.packing.cutting`).
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from jaxtyping import Int64, Integer, UInt8

from lc_assets.packing.cutting import Ends

ENDS_SENTENCE: Final = 1
ENDS_LINE: Final = 2
BEGINS_BLANK: Final = 4

KEPT_OF: Final = 64
"""Ids of which one end is kept, at most: an eighth of a byte an id."""
CHOICES: Final = 16
"""Ends that a segment has to choose from, if there are so many."""

_CLOSING = " \t\"'”’»)]*_"
_STOPS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")


def flags_of(text: str) -> int:
    r"""Flags of an id, by its text.

    >>> [flags_of(text) for text in (".", '."', " the", ".\n", "3")]
    [1, 1, 4, 3, 0]
    """
    sentence = ENDS_SENTENCE if text.rstrip(_CLOSING + "\r\n").endswith(_STOPS) else 0
    line = ENDS_LINE if text.endswith("\n") else 0
    return sentence | line | (BEGINS_BLANK if text[:1].isspace() else 0)


def spacing(segment_tokens: int) -> int:
    """Of how many ids one end is kept, for segments of at most so many.

    >>> spacing(4096), spacing(100)
    (64, 6)
    """
    return min(KEPT_OF, max(segment_tokens // CHOICES, 1))


def ends_in(
    ids: Integer[np.ndarray, " token"], flags: UInt8[np.ndarray, " id"], every: int = KEPT_OF
) -> Int64[np.ndarray, " end"]:
    """Where sentences and lines of one document end: the token behind each, at most one of
    ``every`` ids; never the last of all.

    >>> flags = np.array([0, ENDS_SENTENCE, BEGINS_BLANK, ENDS_LINE], np.uint8)
    >>> ends_in(np.array([0, 1, 2, 0, 1, 0] + [0] * 60 + [3, 2, 1, 2]), flags).tolist()
    [2, 67]
    """
    if len(ids) < 2:
        return np.empty(0, np.int64)
    own, after = flags[ids[:-1]], flags[ids[1:]]
    strength = np.where(
        own & ENDS_LINE, 2, ((own & ENDS_SENTENCE) > 0) & ((after & BEGINS_BLANK) > 0)
    ).astype(np.int64)
    n_blocks = -(-len(strength) // every)
    padded = np.zeros(n_blocks * every, np.int64)
    padded[: len(strength)] = np.where(
        strength > 0, strength * every + np.arange(len(strength)) % every, 0
    )
    blocks = padded.reshape(n_blocks, every)
    best = blocks.argmax(axis=1)
    found = np.take_along_axis(blocks, best[:, None], axis=1)[:, 0] > 0
    return np.asarray(np.flatnonzero(found) * every + best[found] + 1)


def ends_of_all(found: Iterable[Integer[np.ndarray, " end"]]) -> Ends:
    """Ends of documents, in their order, as columns."""
    parts: list[Any] = list(found)
    first = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=first[1:])
    return Ends(first=first, token=np.concatenate([np.empty(0, np.int64), *parts]))
