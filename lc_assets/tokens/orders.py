"""Orders and draws that belong to documents: each depends on the document's own key and the seed,
on nothing else.

A document's *priority* is its keyed hash, uniform on 64 bits; sorting by priority is a uniform
shuffle. Because each document brings its own priority, three things hold exactly, not in
expectation:

* the riffle of the sources' own orders is the shuffle of their union;
* the shuffle of the union, restricted to one source, is that source's own order;
* adding, removing or re-reading one source never reorders the documents of the others.

Equal priorities are settled by the smaller id within a source and by the smaller source number
between sources; among 10⁹ documents the chance that any two are equal is below 3 %.

Here: the arithmetic of orders. Not here: the hash (`lc_assets.randomness`), storing an order
    (`lc_assets.formats`).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64, UInt16, UInt32, UInt64

from lc_assets.errors import BadInput
from lc_assets.randomness import keyed_u64

MOST_SOURCES = 2**16
MOST_ROWS = 2**32
"""Rows of one source that a uint32 can number."""


def priorities(ids: Sequence[str], *, seed: int) -> UInt64[np.ndarray, " doc"]:
    """Draw every document's place in the shuffle, as a number uniform on 64 bits.

    >>> priorities(["a", "b"], seed=7)
    array([7580282201264629493,  911624666413390088], dtype=uint64)
    """
    return keyed_u64("shuffle", seed=seed, keys=ids)


def shuffled(priority: UInt64[np.ndarray, " doc"], ids: Sequence[str]) -> Int64[np.ndarray, " doc"]:
    """Return the permutation that sorts documents by (priority, id): position in the shuffle →
    document.

    >>> shuffled(np.array([5, 3, 5], np.uint64), ["b", "c", "a"])
    array([1, 2, 0])

    Raises:
        BadInput: when there is not one id per priority.
    """
    if len(priority) != len(ids):
        raise BadInput(
            f"wanted one id per priority, got {len(ids):,} ids and {len(priority):,} priorities"
        )
    order = np.argsort(priority, kind="stable")
    ordered = priority[order]
    if (ordered[1:] != ordered[:-1]).all():
        return order
    keys = priority.tolist()
    return np.array(
        sorted(range(len(ids)), key=lambda document: (keys[document], ids[document])), np.int64
    )


def shifts(ids: Sequence[str], *, seed: int, row_tokens: int) -> Int64[np.ndarray, " doc"]:
    """Draw how far each document's row is rolled: uniform on 0 to ``row_tokens`` - 1.

    Exactly uniform when ``row_tokens`` is a power of two; otherwise off by less than ``row_tokens``
    / 2⁶⁴.

    >>> shifts(["a", "b"], seed=7, row_tokens=65_536)
    array([31651, 14823])

    Raises:
        BadInput: when a row has no token.
    """
    if row_tokens < 1:
        raise BadInput(f"a row has at least one token, got {row_tokens:,}")
    return (keyed_u64("shift", seed=seed, keys=ids) % np.uint64(row_tokens)).astype(np.int64)


def heldout(keys: Sequence[str], *, seed: int, fraction: float) -> Bool[np.ndarray, " doc"]:
    """Say for each key whether it is held out: its keyed hash, read as a number below 1, is below
    ``fraction``.

    A larger fraction holds out a superset; 0 holds out nothing and 1 everything.

    >>> heldout(["a", "b", "c", "d"], seed=7, fraction=0.5)
    array([ True,  True, False,  True])

    Raises:
        BadInput: when the fraction is not between 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise BadInput(f"the held-out fraction lies between 0 and 1, got {fraction}")
    if fraction == 1:
        return np.ones(len(keys), np.bool_)
    return keyed_u64("heldout", seed=seed, keys=keys) < np.uint64(int(fraction * 2**64))


def riffle(
    priorities_by_source: Sequence[UInt64[np.ndarray, " _"]],
) -> tuple[UInt16[np.ndarray, " row"], UInt32[np.ndarray, " row"]]:
    """Merge the sources' own orders into the global one.

    Args:
        priorities_by_source: each source's priorities in that source's order, so never falling.

    Returns:
        For each place of the global order: the source's number (uint16) and the row within it
        (uint32).

    >>> riffle([np.array([2, 9], np.uint64), np.array([1, 2], np.uint64)])
    (array([1, 0, 1, 0], dtype=uint16), array([0, 0, 1, 1], dtype=uint32))

    Raises:
        BadInput: when a source is not in its own order, or there are more sources or rows than can
            be numbered.
    """
    _check_sources(priorities_by_source)
    lengths = np.array([len(source) for source in priorities_by_source], np.int64)
    # A stable sort of runs that are sorted already is a merge: NumPy's is timsort, which finds the
    # runs.
    order = np.argsort(
        np.concatenate([np.zeros(0, np.uint64), *priorities_by_source]), kind="stable"
    )
    source = np.repeat(np.arange(len(lengths), dtype=np.uint16), lengths)[order]
    first_row = np.cumsum(lengths) - lengths
    return source, (order - first_row[source]).astype(np.uint32)


def _check_sources(priorities_by_source: Sequence[UInt64[np.ndarray, " _"]]) -> None:
    if len(priorities_by_source) > MOST_SOURCES:
        raise BadInput(f"{len(priorities_by_source):,} sources; a uint16 numbers {MOST_SOURCES:,}")
    for number, source in enumerate(priorities_by_source):
        if len(source) > MOST_ROWS:
            raise BadInput(f"source {number}: {len(source):,} rows; a uint32 numbers {MOST_ROWS:,}")
        falls = np.flatnonzero(source[1:] < source[:-1])
        if len(falls):
            raise BadInput(
                f"source {number}: its priority falls after row {falls[0]:,}; wanted them in the "
                "source's own order"
            )
