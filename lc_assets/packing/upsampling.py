"""Upsample long documents while each source keeps its share of the tokens.

Every source has a budget: its share of the tokens that are wanted. Its documents form a queue:
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
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Int64

from lc_assets.errors import BadInput
from lc_assets.randomness import keyed_u64

DocColumn: TypeAlias = Int64[np.ndarray, " doc"]
DocMask: TypeAlias = Bool[np.ndarray, " doc"]


def upsampled(
    lengths: DocColumn,
    sources: Sequence[str] | None,
    keys: Sequence[str],
    *,
    threshold: int,
    keep_short: float,
    budget_tokens: int,
    seed: int,
) -> DocColumn:
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

    >>> upsampled(np.array([100, 10, 10, 50]), None, ["a", "b", "c", "d"], threshold=50, keep_short=0.0, budget_tokens=300, seed=64)
    array([2, 0, 0, 2])

    Raises:
        BadInput: if there is not one length, source and key per document, two documents share a
            key, or a number is out of range.
    """
    codes, n_sources = _codes(sources, lengths, keys)
    _require_sensible(lengths, threshold, keep_short, budget_tokens)
    order = _queue(keys, seed)
    kept = _kept(
        lengths, codes, n_sources, keys, threshold=threshold, keep_short=keep_short, seed=seed
    )
    repeated = kept & _repeatable(lengths, codes, n_sources, threshold)
    taken = np.zeros(len(lengths), np.int64)
    for budget, members in zip(
        _budgets(lengths, codes, n_sources, budget_tokens),
        _by_source(codes, order, n_sources),
        strict=True,
    ):
        taken[members] = _filled(lengths[members], kept[members], repeated[members], budget)
    return taken


def _kept(
    lengths: DocColumn,
    codes: DocColumn,
    n_sources: int,
    keys: Sequence[str],
    *,
    threshold: int,
    keep_short: float,
    seed: int,
) -> DocMask:
    whole = _repeatable(lengths, codes, n_sources, threshold)
    short = np.flatnonzero(~whole & (lengths > 0))
    drawn = keyed_u64("keep short", seed=seed, keys=(keys[doc] for doc in short.tolist()))
    whole[short] = drawn < np.uint64(int(keep_short * 2**64)) if keep_short < 1 else True
    return whole


def _repeatable(
    lengths: DocColumn,
    codes: DocColumn,
    n_sources: int,
    threshold: int,
) -> DocMask:
    """Long documents; in a source without any, all documents that are not empty."""
    is_long = lengths >= threshold
    has_long = np.bincount(codes[is_long], minlength=n_sources) > 0
    found: DocMask = is_long | (~has_long[codes] & (lengths > 0))
    return found


def _filled(
    lengths: DocColumn,
    kept: DocMask,
    repeated: DocMask,
    budget: int,
) -> DocColumn:
    """Take documents from the front of one source's queue; the arrays are in its order."""
    first = _front(np.where(kept, lengths, 0), budget) & kept
    taken: DocColumn = first.astype(np.int64)
    round_tokens = int(lengths[repeated].sum())
    if not first[kept].all() or not round_tokens:
        return taken
    rounds, rest = divmod(budget - int(lengths[kept].sum()), round_tokens)
    taken[repeated] += rounds
    taken[_front(np.where(repeated, lengths, 0), rest) & repeated] += 1
    return taken


def _front(lengths: DocColumn, budget: int) -> DocMask:
    fits: DocMask = np.cumsum(lengths) <= budget
    return fits


def _budgets(
    lengths: DocColumn,
    codes: DocColumn,
    n_sources: int,
    budget_tokens: int,
) -> list[int]:
    own = np.zeros(n_sources, np.int64)
    np.add.at(own, codes, lengths)  # bincount sums in float64, exact up to 2^53 only
    total = int(own.sum()) or 1
    return [budget_tokens * n // total for n in own.tolist()]


def _by_source(codes: DocColumn, order: DocColumn, n_sources: int) -> list[DocColumn]:
    by_source: DocColumn = order[np.argsort(codes[order], kind="stable")]
    return np.split(by_source, np.cumsum(np.bincount(codes, minlength=n_sources)))[:n_sources]


def _queue(keys: Sequence[str], seed: int) -> DocColumn:
    ranks = keyed_u64("upsampling order", seed=seed, keys=keys)
    order: DocColumn = np.argsort(ranks, kind="stable")
    if not (ranks[order[1:]] == ranks[order[:-1]]).any():
        return order
    if len(set(keys)) < len(keys):
        raise BadInput("two documents have the same key: give every document a unique one")
    return np.array(
        sorted(range(len(keys)), key=lambda doc: (int(ranks[doc]), keys[doc])), np.int64
    )


def _codes(
    sources: Sequence[str] | None, lengths: DocColumn, keys: Sequence[object]
) -> tuple[DocColumn, int]:
    n_docs = len(lengths)
    if len(keys) != n_docs or (sources is not None and len(sources) != n_docs):
        n_named = "no" if sources is None else f"{len(sources):,}"
        raise BadInput(
            f"expected a source and a key for each of {n_docs:,} documents, got {n_named} sources "
            f"and {len(keys):,} keys"
        )
    if sources is None:
        return np.zeros(n_docs, np.int64), 1
    numbers = {name: number for number, name in enumerate(sorted(set(sources)))}
    return np.fromiter((numbers[name] for name in sources), np.int64, n_docs), len(numbers)


def _require_sensible(
    lengths: DocColumn, threshold: int, keep_short: float, budget_tokens: int
) -> None:
    if (lengths < 0).any():
        raise BadInput(
            f"document {int((lengths < 0).argmax()):,} has {int(lengths.min()):,} tokens; "
            "expected at least 0"
        )
    if threshold < 1 or budget_tokens < 0:
        raise BadInput(
            "the threshold must be at least 1 token and the budget at least 0, got "
            f"{threshold:,} and {budget_tokens:,}"
        )
    if not 0 <= keep_short <= 1:
        raise BadInput(f"keep_short is a probability and must be 0 to 1, got {keep_short}")
