"""The signals of a text by compiled loops: what `lc_assets.text.signals` computes plainly, an order
of magnitude faster.

Here: characters to numbers and back to names. The loops are in `lc_assets.text.kernels`, imported
    when first used.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.signal_lists import WordLists
from lc_assets.text.signal_names import TEXT_DOC_SIGNALS
from lc_assets.text.words import fold

if TYPE_CHECKING:
    from lc_assets.text.kernels.hashing import WordSet

FAST_SCORES = (*TEXT_DOC_SIGNALS, "rps_doc_stop_word_fraction", "rps_doc_ldnoobw_words")
"""What the scores of a document are, in order."""

_NOTHING: frozenset[str] = frozenset()


class Measured(NamedTuple):
    """What the loops return.

    Attributes:
        scores: float64 in the order of `FAST_SCORES`, rounded, NaN for None.
        line_counts: int64[5, lines]: end of the line, and four of `LINE_SIGNALS`: those that are
            whole numbers.
        line_shares: float64[2, lines]: numerical characters and upper case letters.
    """

    scores: NDArray[np.float64]
    line_counts: NDArray[np.int64]
    line_shares: NDArray[np.float64]


class _Phrases(NamedTuple):
    parts: "WordSet"
    roots: NDArray[np.int32]
    edges: NDArray[np.int32]
    states: NDArray[np.int32]


def measure_fast(text: str, lists: WordLists, language: str) -> Measured:
    """Measure a text with compiled loops; needs numba."""
    # Imports numba.
    from lc_assets.text.kernels.characters import character_tables, folded_tables  # noqa: PLC0415
    from lc_assets.text.kernels.hashing import hash_seed  # noqa: PLC0415
    from lc_assets.text.kernels.signals import measure  # noqa: PLC0415

    tables = character_tables()
    stop = _word_set(lists.stop_words.get(language, _NOTHING))
    bad = _phrases(lists.bad_words.get(language, _NOTHING))
    listed = (
        stop.slots, stop.hashes, stop.places, stop.codes,
        bad.parts.slots, bad.parts.hashes, bad.parts.places, bad.parts.codes, bad.roots, bad.edges, bad.states,
    )  # fmt: skip
    codes = _codes(text)
    rest = (tables.folds, tables.expansions, tables.combining, *listed)
    done, scores, counts, shares = measure(
        codes, codes, hash_seed(), tables.flags, tables.flags, *rest
    )
    if not done:
        # A capital sigma, or marks out of order: what a character folds to depends on those around
        # it.
        folded = folded_tables()
        word_codes = np.frombuffer(fold(text).encode("utf-32-le", "surrogatepass"), np.uint32)
        _, scores, counts, shares = measure(
            codes, word_codes, hash_seed(), tables.flags, folded.flags, folded.folds, *rest[1:]
        )
    return Measured(scores, counts, shares)


def _codes(text: str) -> NDArray[Any]:
    """Code points of a text: one byte each where that is enough, else four."""
    try:
        return np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@lru_cache(maxsize=64)
def _word_set(words: frozenset[str]) -> "WordSet":
    from lc_assets.text.kernels.hashing import word_set  # noqa: PLC0415 - imports numba

    return word_set(sorted(words))


@lru_cache(maxsize=64)
def _phrases(listed: frozenset[str]) -> _Phrases:
    """A tree of the phrases, its words numbered; states are numbered from 1, breadth first."""
    split = sorted(phrase.split(" ") for phrase in listed)
    words = sorted({word for phrase in split for word in phrase if word})
    number = {word: place for place, word in enumerate(words, start=1)}
    paths = {tuple(number.get(word, 0) for word in phrase) for phrase in split}
    prefixes = sorted(
        {path[:length] for path in paths for length in range(1, len(path) + 1)},
        key=lambda path: (len(path), path),
    )
    state = {prefix: place for place, prefix in enumerate(prefixes, start=1)}
    roots = np.zeros(len(words) + 1, np.int32)
    after: list[list[tuple[int, int]]] = [[] for _ in range(len(prefixes) + 1)]
    for prefix in prefixes:
        if len(prefix) == 1:
            roots[prefix[0]] = state[prefix] if prefix[0] else 0
        else:
            after[state[prefix[:-1]]].append((prefix[-1], state[prefix]))
    edges = np.array([edge for some in after for edge in some], np.int32).reshape(-1, 2).T.copy()
    begins = np.cumsum([0, *map(len, after)])
    ends = [0, *(prefix in paths for prefix in prefixes), 0]
    return _Phrases(_word_set(frozenset(words)), roots, edges, np.array([begins, ends], np.int32))
