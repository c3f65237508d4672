"""Upsample long documents while each source keeps its share of the tokens.

Every source has a budget: its share of the tokens to take. Its documents form a queue:
first those that are kept, in the order of a keyed hash; then its long documents over and over, in
the same order. The budget is filled with whole documents from the front of the queue, up to the
first that does not fit.

================  ==================================================================================
kept              every long document (``threshold`` tokens or more); a shorter one with probability
                  ``keep_short``, by a hash of its key alone
source without    all its documents are kept and repeated
long documents
remainder         a source gets at most its budget, and less by less than one document
================  ==================================================================================

The result does not depend on the order of documents, the number of workers or other sources, and a
larger budget only adds documents.

Source: Fu et al. 2024, "Data engineering for scaling language models to 128K context" (per-source
    upsampling; their global upsampling is that with one source). In their code, a race of processes
    decides the order.
"""

from collections.abc import Sequence

import numpy as np

from lc_assets.arrays import Booleans, Int64s
from lc_assets.randomness import keyed_u64, shuffled, within


def upsampled(
    lengths: Int64s,
    sources: Sequence[str] | None,
    keys: Sequence[str],
    *,
    threshold: int,
    keep_short: float,
    budget_tokens: int,
    seed: int,
) -> Int64s:
    """Number of times that each document is taken.

    Args:
        lengths: tokens of each document.
        sources: name of each document's source; None for one source, which is global upsampling.
        keys: a unique name of each document.
        threshold: tokens from which a document is long.
        keep_short: probability that a shorter document is kept, 0 to 1.
        budget_tokens: tokens of all sources together; the sum of all lengths keeps the size of the
            set.
        seed: seed of both draws.

    Returns:
        int64 array of shape ``(doc,)``: 0 for documents that are left out.

    >>> settings = {"threshold": 50, "keep_short": 0.0, "budget_tokens": 300, "seed": 64}
    >>> upsampled(np.array([100, 10, 10, 50]), None, ["a", "b", "c", "d"], **settings)
    array([2, 0, 0, 2])
    """
    codes = np.zeros(len(keys), np.int64)
    if sources is not None:
        codes = np.unique(np.array(sources, np.object_), return_inverse=True)[1]
    order = shuffled(keyed_u64("upsampling order", seed=seed, keys=keys), keys)
    total = int(lengths.sum()) or 1
    by_source = order[np.argsort(codes[order], kind="stable")]
    taken = np.zeros(len(lengths), np.int64)
    for members in np.split(by_source, np.cumsum(np.bincount(codes))[:-1]):
        own = lengths[members]
        repeated = own >= threshold
        if not repeated.any():
            repeated = own > 0
        kept, short = repeated.copy(), np.flatnonzero(~repeated & (own > 0))
        drawn = keyed_u64("keep short", seed=seed, keys=(keys[doc] for doc in members[short]))
        kept[short] = within(drawn, keep_short)
        budget = budget_tokens * int(own.sum()) // total
        taken[members] = _filled(own, kept, repeated, budget)
    return taken


def _filled(lengths: Int64s, kept: Booleans, repeated: Booleans, budget: int) -> Int64s:
    """Take documents from the front of one source's queue; the arrays are in its order."""
    first = _front(lengths, kept, budget)
    taken: Int64s = first.astype(np.int64)
    round_tokens = int(lengths[repeated].sum())
    if first[kept].all() and round_tokens:
        rounds, rest = divmod(budget - int(lengths[kept].sum()), round_tokens)
        taken[repeated] += rounds
        taken[_front(lengths, repeated, rest)] += 1
    return taken


def _front(lengths: Int64s, chosen: Booleans, budget: int) -> Booleans:
    """The first of the chosen documents, as many as the budget holds."""
    return np.asarray(chosen & (np.cumsum(np.where(chosen, lengths, 0)) <= budget))
