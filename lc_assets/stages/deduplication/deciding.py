"""Decide which documents are kept, from facts and pairs. No text is read.

Kinds are applied one after the other (digest, text, url, near), each to the documents that the
kinds before it kept. Of the documents with one key, the preferred one is kept. The rest is decided
in one pass, in order of preference: a document is removed if one that was kept before is at least
as similar as the threshold, or as the floor and on the other side of the split. So every removed
document has a kept one that it is a duplicate of, or too similar to.

A document that another rule excludes (too short, contaminated, withdrawn) comes last in the order,
and none is removed for it.

SQL finds the documents that share a key or are in a pair (`involved`), whatever the number of all.
Those are held in memory, some 250 bytes each, and decided by arrays.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array, Booleans
from lc_assets.stages.deduplication.facts import DIGEST, TEXT, URL
from lc_assets.stages.deduplication.preferences import COMPARED, in_order
from lc_assets.stages.deduplication.queries import Queries
from lc_assets.text.duplicates.clusters import Numbers, Similarities, star_centres

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
_TEXT, _NEAR, _NEAR_HELDOUT = (
    CODED.index(reason) for reason in (REASONS[TEXT], REASONS[NEAR], NEAR_HELDOUT)
)
NO_SIDE = 2


class Involved(NamedTuple):
    """The documents that may be removed, or another one for them, in order of preference.

    Attributes:
        facts: ``id``, and what a preference compares, of each of the n documents.
        firsts: by kind of key, the first document that has the same; itself without one; ``(n,)``.
        left: ``(m,)`` the documents of pairs of at least the floor's similarity.
        right: the others of these.
        similarities: of these.
    """

    facts: pa.Table
    firsts: dict[str, Numbers]
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
        similarities: ``(n,)`` with that document; NaN where they were not compared.
    """

    kept: Numbers
    reasons: Array
    similarities: Similarities


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
    kinds = [kind for kind in (DIGEST, TEXT, URL) if kind in by or (kind == TEXT and NEAR in by)]
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
        left.to_numpy(),
        right.to_numpy(),
        similarities.to_numpy(),
    )


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


def decide(
    known: Involved, standing: Standing, by: Sequence[str], threshold: float, floor: float = 1.0
) -> Decided:
    """Decide who is kept.

    Args:
        known: the documents.
        standing: theirs.
        by: kinds, of `REASONS`.
        threshold: least similarity of near duplicates.
        floor: least similarity of documents that must not be on both sides.
    """
    order = np.lexsort([standing.late, standing.ineligible])
    ranks = np.argsort(order)  # all that follows is by rank
    standing, n = Standing(*(column[order] for column in standing)), len(order)
    kept, reasons = np.full(n, -1), np.zeros(n, np.uint8)
    for code, kind in enumerate((DIGEST, TEXT, URL), 1):
        if kind in by:
            goes, best = _equal(kept, known.firsts[kind][order], standing.ineligible)
            kept[goes], reasons[goes] = best, code
    texts = known.firsts[TEXT][order] if NEAR in by else order
    likeness = _likeness(texts[ranks[known.left]], texts[ranks[known.right]], known.similarities)
    near = threshold if NEAR in by else np.inf
    best = _first_of_each(texts, np.flatnonzero(kept < 0))
    stars = _stars(best, likeness, standing, near, floor)
    goes, best, is_across = _similar(kept, best[texts], stars, standing.ineligible)
    kept[goes], reasons[goes] = best, np.where(is_across, _NEAR_HELDOUT, _NEAR)
    alike = _similarities(kept, reasons, texts, likeness)
    return Decided(np.where(kept < 0, -1, order[kept])[ranks], reasons[ranks], alike[ranks])


def _equal(kept: Numbers, firsts: Numbers, ineligible: Booleans) -> tuple[Numbers, Numbers]:
    """Of the remaining documents with one key, keep the first, if that is eligible: who goes, and
    for whom.
    """
    remaining = np.flatnonzero(kept < 0)
    best = _first_of_each(firsts, remaining)[firsts[remaining]]
    goes = (best != remaining) & ~ineligible[best]
    return remaining[goes], best[goes]


def _first_of_each(labels: Numbers, remaining: Numbers) -> Numbers:
    """The first of the remaining documents with each label; the number of all where there is none.
    ``labels`` are the documents', below their number.
    """
    first: Numbers = np.full(len(labels), len(labels))
    first[labels[remaining[::-1]]] = remaining[::-1]
    return first


class _Likeness(NamedTuple):
    """How similar texts are, at most: the lesser one, the greater other; ascending, without
    repeats.
    """

    one: Numbers
    other: Numbers
    similarities: Similarities


def _likeness(left: Numbers, right: Numbers, similarities: Similarities) -> _Likeness:
    one, other = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort([-similarities, other, one])
    order = order[_begin_runs(one[order], other[order]) & (one < other)[order]]
    return _Likeness(one[order], other[order], similarities[order])


class _Stars(NamedTuple):
    """Whom each document is removed for, itself if it stays; and whether only for the split."""

    centres: Numbers
    across: Booleans


def _stars(
    best: Numbers, likeness: _Likeness, standing: Standing, threshold: float, floor: float
) -> _Stars:
    """Go through texts by the rank of their best document: it is removed if one that was kept is
    similar, or is across the split and similar.
    """
    n = len(best)
    lo, hi = np.sort([best[likeness.one], best[likeness.other]], axis=0)
    lo, hi, alike = (column[hi < n] for column in (lo, hi, likeness.similarities))
    across = alike < threshold
    parted = (alike >= floor) & (standing.held[lo] + standing.held[hi] == 1)
    is_edge = np.where(across, parted, ~standing.ineligible[lo])
    lo, hi, across = (column[is_edge] for column in (lo, hi, across))
    order = np.lexsort([hi, lo])
    kept = star_centres(np.arange(n), [(lo[order], hi[order])]) == np.arange(n)
    order = np.lexsort([lo, across, hi])
    order = order[(kept[lo] & ~kept[hi])[order]]
    order = order[_begin_runs(hi[order])]
    stars = _Stars(np.arange(n), np.zeros(n, np.bool_))
    stars.centres[hi[order]], stars.across[hi[order]] = lo[order], across[order]
    return stars


def _similar(
    kept: Numbers, best: Numbers, stars: _Stars, ineligible: Booleans
) -> tuple[Numbers, Numbers, Booleans]:
    """Who of the remaining documents goes, for whom, and whether for the split alone; ``best`` is
    the first of each one's text, for which all others of it go if it stays, or goes for the split.
    """
    remaining = np.flatnonzero(kept < 0)
    best = best[remaining]
    is_across = stars.across[best] & (best == remaining)
    ends = np.where(stars.across[best] & ~is_across, best, stars.centres[best])
    goes = (ends != remaining) & ~ineligible[ends]
    return remaining[goes], ends[goes], is_across[goes]


def _similarities(
    kept: Numbers, reasons: Array, texts: Numbers, likeness: _Likeness
) -> Similarities:
    """How similar each removed document is to the one that it is removed for."""
    found: Similarities = np.full(len(kept), np.nan)
    found[reasons == _TEXT] = 1.0
    places = np.flatnonzero((reasons == _NEAR) | (reasons == _NEAR_HELDOUT))
    one, other = np.sort([texts[places], texts[kept[places]]], axis=0)
    codes, n = likeness.one * len(kept) + likeness.other, len(kept)
    at = np.searchsorted(codes, one * n + other)
    found[places] = np.append(likeness.similarities, 1.0)[np.where(one == other, -1, at)]
    return found


def kept_for_others(decided: Decided, gone: Booleans) -> Booleans:
    """Those that others were removed for, of the documents that are not served: gone, or similar to
    one across the split. The others are neither.
    """
    away = gone | (decided.reasons == _NEAR_HELDOUT)
    found: Booleans = np.zeros(len(away), np.bool_)
    found[decided.kept[(decided.kept >= 0) & ~away]] = True
    found &= away
    return found
