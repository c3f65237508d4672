"""Cut pieces into segments, where sentences or lines end.

A segment ends at the last end of a sentence that leaves it at least half of its maximum length; if
there is none, it has the maximum length.

Ends are found in ids, by flags of each id's text: whether a sentence may end with it, whether a
line ends with it, whether it begins with whitespace. A sentence ends after a flagged id that
whitespace follows, so not within 3.14. Of every few ids at most one end is kept: a line's rather
than a sentence's, the last rather than the first. A segment then has about sixteen to choose from.

The texts of ids come from files: `lc_assets.formats.tokenizers.named`.
Source: LongPack, section 3.2: segments of 4,096 tokens, "not too small", so that cuts do not
    matter for training.

Dataset decomposition: cut every document into pieces of 2^k tokens, as its length is in binary.

A piece is part of one document, so there is no padding and no piece crosses a boundary. A document
of 11 tokens gives pieces of 8, 2 and 1; with 4 as the longest, 4, 4, 2 and 1; what is shorter than
the shortest piece is left over. Training then takes batches of one length at a time.

By default the pieces of a document are ordered longest first, so short pieces are always ends of
documents. With keys, a hash draws their order; what is left over is still at the end.

Source: Pouransari et al. 2024, "Dataset decomposition: faster LLM training with variable sequence
    length curriculum". Their pieces have one token more, for the last target; one of 2^k tokens has
    2^k - 1 targets.
"""

from collections.abc import Sequence

import numpy as np

from lc_assets.arrays import Bytes, Int64s, Integers
from lc_assets.compiling import compiled
from lc_assets.errors import BadInput
from lc_assets.packing.pieces import Pieces, cut_evenly, numbered, require_lengths, require_tokens
from lc_assets.randomness import keyed_u64
from lc_assets.records import distinct

ENDS_SENTENCE = 1
ENDS_LINE = 2
BEGINS_BLANK = 4

KEPT_OF = 64
"""At most one end is kept of so many ids: an eighth of a byte per id."""
CHOICES = 16
"""Ends for a segment to choose from, if there are as many."""

_CLOSING = " \t\"'”’»)]*_"
_STOPS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")


@distinct
class Ends:
    """Where sentences or lines of documents end, in tokens of the document.

    Attributes:
        first: index of each document's first end; then the number of ends.
        token: the token after each end, ascending within a document.
    """

    first: Int64s
    token: Int64s

    def of_documents(self, order: Integers) -> "Ends":
        """Ends of the documents that ``order`` names, in that order."""
        counts = np.diff(self.first)[order]
        place, nth = numbered(counts)
        return Ends(
            first=np.concatenate([[0], np.cumsum(counts)]),
            token=self.token[self.first[order][place] + nth],
        )


def flags_of(text: str) -> int:
    r"""Flags of an id, by its text.

    >>> [flags_of(text) for text in (".", '."', " the", ".\n", "3")]
    [1, 1, 4, 3, 0]
    """
    sentence = ENDS_SENTENCE if text.rstrip(_CLOSING + "\r\n").endswith(_STOPS) else 0
    line = ENDS_LINE if text.endswith("\n") else 0
    return sentence | line | (BEGINS_BLANK if text[:1].isspace() else 0)


def spacing(segment_tokens: int) -> int:
    """Number of ids of which one end is kept, for segments of at most ``segment_tokens``.

    >>> spacing(4096), spacing(100)
    (64, 6)
    """
    return min(KEPT_OF, max(segment_tokens // CHOICES, 1))


def ends_in(ids: Integers, flags: Bytes, every: int = KEPT_OF) -> Int64s:
    """Where sentences and lines of one document end: the token after each.

    At most one end of ``every`` ids is kept, and never that of the last id.

    >>> flags = np.array([0, ENDS_SENTENCE, BEGINS_BLANK, ENDS_LINE], np.uint8)
    >>> ends_in(np.array([0, 1, 2, 0, 1, 0] + [0] * 60 + [3, 2, 1, 2]), flags).tolist()
    [2, 67]
    """
    if len(ids) < 2:
        return np.empty(0, np.int64)
    own, after = flags[ids[:-1]], flags[ids[1:]]
    strength = np.where(
        own & ENDS_LINE, 2, ((own & ENDS_SENTENCE) > 0) & ((after & BEGINS_BLANK) > 0)
    )
    place = np.flatnonzero(strength)
    order = np.lexsort((place, strength[place], place // every))
    last_of_block = np.flatnonzero(np.diff(place[order] // every, append=-1))
    return np.asarray(place[order[last_of_block]] + 1)


def cut_into_segments(pieces: Pieces, segment_tokens: int, ends: Ends | None = None) -> Pieces:
    """Cut pieces into segments of at most ``segment_tokens``, at ``ends`` if given.

    >>> ends = Ends(first=np.array([0, 3]), token=np.array([2, 3, 9]))
    >>> cut_into_segments(Pieces(*np.array([[0], [0], [10]])), 4, ends).stop.tolist()
    [3, 7, 10]

    Raises:
        BadInput: if ``segment_tokens`` is below 1.
    """
    if ends is None:
        return cut_evenly(pieces, segment_tokens)
    require_tokens(segment_tokens, "a segment")
    # A segment that is not the last of its piece is at least half as long as it may be.
    most = int((pieces.lengths // ((segment_tokens + 1) // 2) + 1).sum())
    counts, cut = np.empty(len(pieces), np.int64), np.empty((2, most), np.int64)
    columns = (pieces.document, pieces.start, pieces.stop)
    n_segments = _cut(*columns, segment_tokens, ends.first, ends.token, counts, cut)
    return Pieces(np.repeat(pieces.document, counts), cut[0, :n_segments], cut[1, :n_segments])


@compiled
def _cut(
    document: Int64s,
    start: Int64s,
    stop: Int64s,
    segment_tokens: int,
    first: Int64s,
    token: Int64s,
    counts: Int64s,
    cut: Int64s,
) -> int:
    """Write the number of segments of each piece into ``counts``, and where each segment begins and
    ends into ``cut``; return their number.
    """
    n_segments = 0
    for piece in range(len(document)):
        own = token[first[document[piece]] : first[document[piece] + 1]]
        at, before = start[piece], n_segments
        while at < stop[piece] or n_segments == before:
            until = stop[piece]
            if until - at > segment_tokens:
                until = _segment_stop(own, at, segment_tokens)
            cut[0, n_segments], cut[1, n_segments] = at, until
            at = until
            n_segments += 1
        counts[piece] = n_segments - before
    return n_segments


@compiled
def _segment_stop(own: Int64s, at: int, segment_tokens: int) -> int:
    """End of a segment that begins at ``at`` and is shorter than the rest of its piece."""
    below = np.searchsorted(own, at + segment_tokens, side="right")
    if below and own[below - 1] >= at + (segment_tokens + 1) // 2:
        return int(own[below - 1])
    return at + segment_tokens


MOST_EXPONENT = 30
"""Largest exponent: Megatron stores lengths as int32."""


def decomposed(
    lengths: Int64s,
    *,
    shortest: int,
    longest: int,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Pieces:
    """Cut documents into pieces of 2^k tokens, in the order of the documents, and of the tokens in
    them.

    Args:
        lengths: tokens of each document.
        shortest: exponent of the shortest pieces; a shorter rest is left over.
        longest: exponent of the longest pieces; a longer document has several.
        keys: a name of each document, to draw the order of its pieces; None: longest first.
        seed: seed of that draw.

    >>> pieces = decomposed(np.array([11, 3]), shortest=1, longest=2)
    >>> columns = pieces.document, pieces.start, pieces.lengths
    >>> list(zip(*(column.tolist() for column in columns)))
    [(0, 0, 4), (0, 4, 4), (0, 8, 2), (1, 0, 2)]

    Raises:
        BadInput: if the exponents are out of range, a length is negative or there is not one key
            per document.
    """
    if not 0 <= shortest <= longest <= MOST_EXPONENT:
        raise BadInput(
            f"expected exponents with 0 <= shortest <= longest <= {MOST_EXPONENT}, got "
            f"{shortest} and {longest}"
        )
    lengths = require_lengths(lengths)
    exponents = np.arange(longest, shortest - 1, -1)
    counts = np.stack([lengths >> k if k == longest else lengths >> k & 1 for k in exponents], 1)
    document, number = numbered(counts.sum(axis=1))
    tokens = np.repeat(np.tile(np.int64(1) << exponents, len(lengths)), counts.reshape(-1))
    if keys is not None:
        if len(keys) != len(lengths):
            raise BadInput(f"expected {len(lengths):,} keys, one per document, got {len(keys):,}")
        # Order the pieces of each document by a hash of its key and their number.
        pairs = zip(number.tolist(), document.tolist(), strict=True)
        names = (f"{n}/{keys[at]}" for n, at in pairs)
        tokens = tokens[np.lexsort((keyed_u64("pieces", seed=seed, keys=names), document))]
    before = np.cumsum(tokens) - tokens
    start = before - before[np.arange(len(document)) - number]
    return Pieces(document, start, start + tokens)
