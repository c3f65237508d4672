"""Decide which documents are kept, from facts and pairs.

Kinds are applied one after the other (digest, text, url, near), each to the documents that the
kinds before it kept. Of the documents with one key, the preferred one is kept. The rest is decided
in one pass, in order of preference: a document is removed if one that was kept before is at least
as similar as the threshold, or as the floor and on the other side of the split. So every removed
document has a kept one that it is a duplicate of, or too similar to. Near duplicates need not have
been compared: that both are like a third may prove it. Where it does not, they are compared then if
one of the two stays, and all is decided again (`decide_all`).

A document that another rule excludes (too short, contaminated, withdrawn) comes last in the order,
and none is removed for it.

SQL finds the documents that share a key or are in a pair (`involved`), whatever the number of all.
Those are held in memory, some 250 bytes each, and decided by arrays.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array, Booleans
from lc_assets.stages.deduplication.facts import DIGEST, TEXT, URL
from lc_assets.stages.deduplication.preferences import COMPARED, in_order
from lc_assets.stages.deduplication.queries import Queries
from lc_assets.text.duplicates.clusters import (
    Numbers,
    Similarities,
    neighbours,
    remove_similar,
    unknown_pairs,
)

NEAR = "near"
NEAR_HELDOUT = "near heldout"
WITHDRAWN = "withdrawn"
REASONS = {
    DIGEST: "same digest",
    TEXT: "same text",
    URL: "same url",
    NEAR: "near duplicate",
}
CODED = ("", *REASONS.values(), NEAR_HELDOUT)
"""Reasons by their codes in `Decided`."""
_NEAR, _NEAR_HELDOUT = CODED.index(REASONS[NEAR]), CODED.index(NEAR_HELDOUT)
NO_SIDE = 2
FIRST, ROUNDS = 16, 8
"""Of the documents that are like one, the first that stay are compared with the others: so many of
them in the first round, as many more in each, and at most so many rounds.
"""

AGAIN, UNKNOWN = "pairs compared again", "pairs not compared"

Comparer = Callable[[Numbers], Similarities]
"""The similarities of some pairs of `Involved`'s documents, ``(m, 2)``."""


class Involved(NamedTuple):
    """The documents that may be removed, or another one for them, in order of preference.

    Attributes:
        facts: ``id``, and what a preference compares, of each of the n documents.
        firsts: by kind of key, the first document that has the same; itself without one; ``(n,)``.
        snapshots: ``(n,)`` numbers in the order of preference, where the oldest comes first and no
            newer one is read; else 0.
        left: ``(m,)`` the documents of pairs of at least the floor's similarity.
        right: the others of these.
        similarities: of these.
    """

    facts: pa.Table
    firsts: dict[str, Numbers]
    snapshots: Numbers
    left: Numbers
    right: Numbers
    similarities: Similarities


class Standing(NamedTuple):
    """What else is known of `Involved`'s documents.

    Attributes:
        ineligible: ``(n,)`` whom another rule excludes: none is removed for one of them.
        late: ``(n,)`` who comes after all others that are eligible.
        held: ``(n,)`` uint8: 1 who is held out, 0 who is not, `NO_SIDE` whom the split does not
            concern.
    """

    ineligible: Booleans
    late: Booleans
    held: Array


class Decided(NamedTuple):
    """What is decided on `Involved`'s documents.

    Attributes:
        kept: ``(n,)`` the document that each is removed for, -1 if it stays.
        reasons: ``(n,)`` uint8, of `CODED`.
        similarities: ``(n,)`` with that document, of near duplicates at least; NaN of others.
        unknown: pairs ``(m, 2)`` that were not compared, though both are like a third document, and
            of which the first stays and might remove the other.
    """

    kept: Numbers
    reasons: Array
    similarities: Similarities
    unknown: Numbers


def involved(database: Queries, by: Sequence[str], prefer: Sequence[str], floor: float) -> Involved:
    """Find the documents that share a key, or are in a pair; their ids are the table ``involved``
    of the database then.

    Args:
        database: an open database with `facts` and `pairs`
            (`lc_assets.stages.deduplication.facts`).
        by: kinds, of `REASONS`.
        prefer: which document is kept, as in `RemovalSettings.prefer`.
        floor: least similarity of pairs.
    """
    kinds = [kind for kind in (DIGEST, TEXT, URL) if kind in by]
    alike = f"FROM pairs WHERE similarity >= {floor!r}"
    shared = [
        f"""{kind}_high IN (SELECT {kind}_high FROM facts WHERE {kind}_high IS NOT NULL
            GROUP BY {kind}_high HAVING count(*) > 1)"""
        for kind in kinds
    ]
    keys = [f"{kind}_{half}" for kind in kinds for half in ("high", "low")]
    found = database.table(f"""SELECT {", ".join(["id", *COMPARED, *keys])} FROM facts
        WHERE {" OR ".join([f"id IN (SELECT unnest([a, b]) {alike})", *shared])}
        ORDER BY {in_order(prefer)}""")
    named = pa.table({"id": found["id"], "place": np.arange(len(found))})
    database.connection.register("involved", named)
    left, right, similarities = database.table(f"""SELECT l.place, r.place, similarity
        FROM (SELECT * {alike}) JOIN involved l ON l.id = a JOIN involved r ON r.id = b""")
    large = {pa.string(): pa.large_string()}  # together they may be more than 2 GiB
    facts = found.drop_columns(keys)
    types = [large.get(field.type, field.type) for field in facts.schema]
    return Involved(
        facts.cast(pa.schema(zip(facts.column_names, types, strict=True))),
        {kind: _firsts(found[f"{kind}_high"], found[f"{kind}_low"]) for kind in kinds},
        _snapshots(found["snapshot"], prefer),
        left.to_numpy(),
        right.to_numpy(),
        similarities.to_numpy(),
    )


def _snapshots(names: pa.ChunkedArray, prefer: Sequence[str]) -> Numbers:
    if prefer[:1] != ("oldest",):
        return np.zeros(len(names), np.int64)
    return np.asarray(names.combine_chunks().dictionary_encode().indices, np.int64)


def _firsts(high: pa.ChunkedArray, low: pa.ChunkedArray) -> Numbers:
    """The first line that has the same key, for each line; itself without one."""
    firsts: Numbers = np.arange(len(high))
    keyed = np.flatnonzero(high.is_valid())
    halves = [half.fill_null(0).to_numpy()[keyed] for half in (low, high)]
    order = np.lexsort(halves)
    starts = np.flatnonzero(_begin_runs(*(half[order] for half in halves)))
    sizes = np.diff(np.append(starts, len(order)))
    firsts[keyed[order]] = np.repeat(keyed[order[starts]], sizes)
    return firsts


def _begin_runs(*columns: Array) -> Booleans:
    """Which lines differ from the one before."""
    begin = np.ones(len(columns[0]), np.bool_)
    begin[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return begin


def decide_all(
    known: Involved,
    standing: Standing,
    by: Sequence[str],
    gone: Booleans,
    *,
    bounds: tuple[float, float],
    is_metric: bool,
    compare: Comparer,
) -> tuple[Standing, Decided, dict[str, int]]:
    """Decide who is kept. If a document was removed for one that is withdrawn (``gone``), or as a
    duplicate of one that goes across the split, decide again: the former is ineligible, the latter
    comes last. Decide again, too, with the similarities of the pairs that were still unknown.

    Withdrawn documents are decided like others at first, so their copies keep their reasons.

    Args:
        known: the documents.
        standing: theirs.
        by: as in `decide`.
        gone: ``(n,)`` who is withdrawn.
        bounds: the threshold and the floor of `decide`.
        is_metric: as in `decide`.
        compare: reads the texts of documents.

    Returns:
        How the documents stood at last, what was decided, and how many pairs were compared, and
        left unknown after the last round, where there are any.
    """
    counted, rounds = dict[str, int](), 1
    while True:
        decided = decide(known, standing, by, *bounds, is_metric=is_metric, most=FIRST * rounds)
        found = kept_for_others(decided, gone)
        if np.any(found & ~standing.late):
            standing = standing._replace(
                ineligible=standing.ineligible | (found & gone),
                late=standing.late | (found & ~gone),
            )
        elif not (n_unknown := len(pairs := decided.unknown)) or rounds > ROUNDS:
            return standing, decided, counted | ({UNKNOWN: n_unknown} if n_unknown else {})
        else:
            known = known._replace(
                left=np.concatenate([known.left, pairs[:, 0]]),
                right=np.concatenate([known.right, pairs[:, 1]]),
                similarities=np.concatenate([known.similarities, compare(pairs)]),
            )
            counted[AGAIN], rounds = counted.get(AGAIN, 0) + n_unknown, rounds + 1


def decide(
    known: Involved,
    standing: Standing,
    by: Sequence[str],
    threshold: float,
    floor: float = 1.0,
    *,
    is_metric: bool = True,
    most: int = FIRST,
) -> Decided:
    """Decide who is kept.

    Args:
        known: the documents.
        standing: theirs.
        by: kinds, of `REASONS`.
        threshold: least similarity of near duplicates.
        floor: least similarity of documents that must not be on both sides.
        is_metric: whether similarities are Jaccard indices.
        most: as in `unknown_pairs`.
    """
    order = np.lexsort([standing.late, standing.ineligible])
    ranks = np.argsort(order)  # all that follows is by rank
    standing, n = Standing(*(column[order] for column in standing)), len(order)
    kept, reasons = np.full(n, -1), np.zeros(n, np.uint8)
    for code, kind in enumerate((DIGEST, TEXT, URL), 1):
        if kind in by:
            goes, best = _equal(kept, known.firsts[kind][order], standing.ineligible)
            kept[goes], reasons[goes] = best, code
    similarities: Similarities = np.where(reasons == CODED.index(REASONS[TEXT]), 1.0, np.nan)
    remaining = kept < 0
    near, snapshots = threshold if NEAR in by else np.inf, known.snapshots[order]
    pairs = neighbours(ranks[known.left], ranks[known.right], known.similarities, n)
    marks = standing.ineligible, standing.held, snapshots
    across = remove_similar(pairs, marks, (near, floor), is_metric, kept, similarities)
    similar = remaining & (kept >= 0)
    reasons[similar] = np.where(across[similar], _NEAR_HELDOUT, _NEAR)
    keepers = np.where(kept < 0, n, np.where(reasons == _NEAR, kept, -1))
    unknown = order[unknown_pairs(pairs, keepers, (standing.ineligible, snapshots), near, most)]
    kept = np.where(kept < 0, -1, order[kept])
    return Decided(kept[ranks], reasons[ranks], similarities[ranks], unknown)


def _equal(kept: Numbers, firsts: Numbers, ineligible: Booleans) -> tuple[Numbers, Numbers]:
    """Of the remaining documents with one key, keep the first, if that is eligible: who goes, and
    for whom.
    """
    remaining = np.flatnonzero(kept < 0)
    first: Numbers = np.empty(len(firsts), np.int64)
    first[firsts[remaining[::-1]]] = remaining[::-1]
    best = first[firsts[remaining]]
    goes = (best != remaining) & ~ineligible[best]
    return remaining[goes], best[goes]


def kept_for_others(decided: Decided, gone: Booleans) -> Booleans:
    """Those that others were removed for, of the documents that are not served: gone, or similar to
    one across the split. The others are neither.
    """
    away = gone | (decided.reasons == _NEAR_HELDOUT)
    found: Booleans = np.zeros(len(away), np.bool_)
    found[decided.kept[(decided.kept >= 0) & ~away]] = True
    found &= away
    return found
