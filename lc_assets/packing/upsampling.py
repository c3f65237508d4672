"""Upsampling long documents while each source keeps its share of the tokens.

Every source has a budget: its share of all tokens, of the tokens that are wanted. Its documents
stand in a line: first those that are kept, in the order of a keyed hash; then its long ones over
and over, in the same order. The budget is filled with whole documents from the front of the line,
and ends before the first that does not fit any more.

==================  ==========================================================================
kept                every long document (``threshold`` tokens or more); a shorter one with
                    probability ``keep_short``, by a hash of its key alone
a source without    is taken as it is: all its documents are kept and repeated
long documents
remainder           a source has at most its budget, and lacks less than one document
==================  ==========================================================================

So the order of arrival, the number of workers and other sources never matter, and a larger budget
only adds documents.

Here: how often each document is taken. Not here: writing them into rows (`lc pack`,
    docs/packing.md).
Source: Fu et al. 2024, "Data engineering for scaling language models to 128K context" (per-source
    upsampling; their global
upsampling is one source for all), whose own code lets the race of its processes decide the order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from lc_assets.errors import BadInput
from lc_assets.randomness import keyed_u64

ONE_SOURCE = "all"
"""Name of the source where none are told apart."""


def upsampled(
    lengths: Int64[np.ndarray, " doc"],
    sources: Sequence[str] | None,
    keys: Sequence[str],
    *,
    threshold: int,
    keep_short: float,
    budget_tokens: int,
    seed: int,
) -> Int64[np.ndarray, " doc"]:
    """How often each document is taken.

    Args:
        lengths: tokens of each document.
        sources: name of each document's source; None for one source, which is global upsampling.
        keys: a name of each document that no other has.
        threshold: tokens from which a document is long.
        keep_short: probability that a shorter document is kept, 0 to 1.
        budget_tokens: wanted of all sources together; the sum of all lengths keeps the size of the
            set.
        seed: of both draws.

    Returns:
        int64 array of shape ``(doc,)``: 0 for what is left out.

    >>> upsampled(np.array([100, 10, 10, 50]), None, ["a", "b", "c", "d"], threshold=50, keep_short=0.0, budget_tokens=300, seed=64)
    array([2, 0, 0, 2])

    Raises:
        BadInput: when there is not one length, source and key per document, two documents share a
            key, or a number cannot be meant.
    """
    codes, n_sources = _codes(sources, lengths, keys)
    _require_sensible(lengths, threshold, keep_short, budget_tokens)
    order = _in_line(keys, seed)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShare:
    """What upsampling made of one source.

    Attributes:
        source: its name.
        n_docs: documents it had; ``n_tokens``: theirs.
        share: of all tokens.
        budget_tokens: what it was to have.
        n_docs_taken: different documents that are taken; ``n_taken``: counted as often as they are;
            ``n_tokens_taken``: theirs.
        most_repeated: how often the document that is taken most often is taken.
        n_long_tokens: tokens of documents of the threshold's length or more, before;
            ``n_long_tokens_taken``: after.
    """

    source: str
    n_docs: int
    n_tokens: int
    share: float
    budget_tokens: int
    n_docs_taken: int
    n_taken: int
    n_tokens_taken: int
    most_repeated: int
    n_long_tokens: int
    n_long_tokens_taken: int


def source_shares(
    lengths: Int64[np.ndarray, " doc"],
    sources: Sequence[str] | None,
    taken: Int64[np.ndarray, " doc"],
    *,
    threshold: int,
    budget_tokens: int,
) -> list[SourceShare]:
    """Sum up what `upsampled` took, by source, sorted by name.

    >>> shares = source_shares(np.array([100, 10]), None, np.array([2, 0]), threshold=50, budget_tokens=220)
    >>> shares[0].n_tokens_taken, shares[0].most_repeated
    (200, 2)
    """
    codes, n_sources = _codes(sources, lengths, range(len(lengths)))
    names = [ONE_SOURCE] if sources is None else sorted(set(sources))
    total = int(lengths.sum())
    shares = []
    for code, (name, budget) in enumerate(
        zip(names, _budgets(lengths, codes, n_sources, budget_tokens), strict=True)
    ):
        own, own_taken = lengths[codes == code], taken[codes == code]
        is_long, n_tokens, tokens_taken = own >= threshold, int(own.sum()), own * own_taken
        shares.append(
            SourceShare(
                source=name,
                n_docs=len(own),
                n_tokens=n_tokens,
                share=n_tokens / max(total, 1),
                budget_tokens=budget,
                n_docs_taken=int((own_taken > 0).sum()),
                n_taken=int(own_taken.sum()),
                n_tokens_taken=int(tokens_taken.sum()),
                most_repeated=int(own_taken.max(initial=0)),
                n_long_tokens=int(own[is_long].sum()),
                n_long_tokens_taken=int(tokens_taken[is_long].sum()),
            )
        )
    return shares


def _kept(
    lengths: Int64[np.ndarray, " doc"],
    codes: Int64[np.ndarray, " doc"],
    n_sources: int,
    keys: Sequence[str],
    *,
    threshold: int,
    keep_short: float,
    seed: int,
) -> Bool[np.ndarray, " doc"]:
    whole = _repeatable(lengths, codes, n_sources, threshold)
    short = np.flatnonzero(~whole & (lengths > 0))
    drawn = keyed_u64("keep short", seed=seed, keys=(keys[doc] for doc in short.tolist()))
    whole[short] = drawn < np.uint64(int(keep_short * 2**64)) if keep_short < 1 else True
    return whole


def _repeatable(
    lengths: Int64[np.ndarray, " doc"],
    codes: Int64[np.ndarray, " doc"],
    n_sources: int,
    threshold: int,
) -> Bool[np.ndarray, " doc"]:
    """What is long; in a source that has nothing long, everything that is not empty."""
    is_long = lengths >= threshold
    has_long = np.bincount(codes[is_long], minlength=n_sources) > 0
    found: Bool[np.ndarray, " doc"] = is_long | (~has_long[codes] & (lengths > 0))
    return found


def _filled(
    lengths: Int64[np.ndarray, " doc"],
    kept: Bool[np.ndarray, " doc"],
    repeated: Bool[np.ndarray, " doc"],
    budget: int,
) -> Int64[np.ndarray, " doc"]:
    """Take documents from the front of one source's line; the arrays are in the line's order."""
    first = _front(np.where(kept, lengths, 0), budget) & kept
    taken: Int64[np.ndarray, " doc"] = first.astype(np.int64)
    round_tokens = int(lengths[repeated].sum())
    if not first[kept].all() or not round_tokens:
        return taken
    rounds, rest = divmod(budget - int(lengths[kept].sum()), round_tokens)
    taken[repeated] += rounds
    taken[_front(np.where(repeated, lengths, 0), rest) & repeated] += 1
    return taken


def _front(lengths: Int64[np.ndarray, " doc"], budget: int) -> Bool[np.ndarray, " doc"]:
    fits: Bool[np.ndarray, " doc"] = np.cumsum(lengths) <= budget
    return fits


def _budgets(
    lengths: Int64[np.ndarray, " doc"],
    codes: Int64[np.ndarray, " doc"],
    n_sources: int,
    budget_tokens: int,
) -> list[int]:
    own = np.zeros(n_sources, np.int64)
    np.add.at(own, codes, lengths)  # bincount would add floats, which end at 2^53
    total = int(own.sum()) or 1
    return [budget_tokens * n // total for n in own.tolist()]


def _by_source(
    codes: Int64[np.ndarray, " doc"], order: Int64[np.ndarray, " doc"], n_sources: int
) -> list[Int64[np.ndarray, " doc"]]:
    by_source: Int64[np.ndarray, " doc"] = order[np.argsort(codes[order], kind="stable")]
    return np.split(by_source, np.cumsum(np.bincount(codes, minlength=n_sources)))[:n_sources]


def _in_line(keys: Sequence[str], seed: int) -> Int64[np.ndarray, " doc"]:
    ranks = keyed_u64("upsampling order", seed=seed, keys=keys)
    order: Int64[np.ndarray, " doc"] = np.argsort(ranks, kind="stable")
    if not (ranks[order[1:]] == ranks[order[:-1]]).any():
        return order
    if len(set(keys)) < len(keys):
        raise BadInput("two documents share a key; give every document a name of its own")
    return np.array(
        sorted(range(len(keys)), key=lambda doc: (int(ranks[doc]), keys[doc])), np.int64
    )


def _codes(
    sources: Sequence[str] | None, lengths: Int64[np.ndarray, " doc"], keys: Sequence[object]
) -> tuple[Int64[np.ndarray, " doc"], int]:
    n_docs = len(lengths)
    if len(keys) != n_docs or (sources is not None and len(sources) != n_docs):
        n_named = "no" if sources is None else f"{len(sources):,}"
        raise BadInput(
            f"wanted a source and a key for each of {n_docs:,} documents, got {n_named} sources "
            f"and {len(keys):,} keys"
        )
    if sources is None:
        return np.zeros(n_docs, np.int64), 1
    numbers = {name: number for number, name in enumerate(sorted(set(sources)))}
    return np.fromiter((numbers[name] for name in sources), np.int64, n_docs), len(numbers)


def _require_sensible(
    lengths: Int64[np.ndarray, " doc"], threshold: int, keep_short: float, budget_tokens: int
) -> None:
    if (lengths < 0).any():
        raise BadInput(
            f"document {int((lengths < 0).argmax()):,} has {int(lengths.min()):,} tokens; wanted "
            "at least 0"
        )
    if threshold < 1 or budget_tokens < 0:
        raise BadInput(
            "wanted a threshold of at least 1 token and a budget of at least 0, got "
            f"{threshold:,} and {budget_tokens:,}"
        )
    if not 0 <= keep_short <= 1:
        raise BadInput(f"keep_short is a probability, 0 to 1, got {keep_short}")
