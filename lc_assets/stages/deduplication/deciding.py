"""Decide which documents are kept, from facts and pairs, in SQL. No text is read.

Kinds are applied one after the other (digest, text, url, near), each to the documents that the
kinds before it kept. Of the documents with one key, the preferred one is kept. The rest is decided
in one pass, in order of preference: a document is removed if one that was kept before is at least
as similar as the threshold, or as the floor and on the other side of the split. So every removed
document has a kept one that it is a duplicate of, or too similar to.

A document that another rule excludes (too short, contaminated, withdrawn) comes last in the order,
and none is removed for it.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from lc_assets.builds.settings.documents import SOURCE
from lc_assets.lake.versions import Published
from lc_assets.stages.decontamination.contaminated_documents import (
    EVIDENCE_SUFFIX,
    contaminated_ids,
)
from lc_assets.stages.decontamination.evidence import CONTAMINATED
from lc_assets.stages.deduplication.facts import DIGEST, TEXT, URL, join_labels
from lc_assets.stages.deduplication.queries import Queries, quoted
from lc_assets.stages.withdrawal.snapshot_withdrawals import (
    TABLE as WITHDRAWALS_TABLE,
    withdrawals_in,
)
from lc_assets.text.duplicates.clusters import star_centres

NEAR = "near"
NEAR_HELDOUT = "near heldout"
WITHDRAWN = "withdrawn"
REASONS = {
    DIGEST: "same digest",
    TEXT: "same text",
    URL: "same url",
    NEAR: "near duplicate",
}

_IN_ONE_PASS = f"({quoted(REASONS[NEAR])}, {quoted(NEAR_HELDOUT)})"
SIDES = pa.schema({"id": "string", "held": "bool"})
_NOTHING = {
    "removed": "number BIGINT, for_number BIGINT, reason VARCHAR",
    "texts": "number BIGINT, first BIGINT",
    "likeness": "one BIGINT, other BIGINT, similarity DOUBLE",
}
_DATED = "k.date || ' rather than ' || CASE o.date WHEN '' THEN 'no date' ELSE o.date END"
_ORDERS = {
    "newest": ("date DESC", "date", f"'newer: ' || {_DATED}"),
    "oldest": ("date = '', date", "date", f"'older: ' || {_DATED}"),
    "longest": (
        "n_chars DESC",
        "n_chars",
        "'longer: ' || k.n_chars || ' rather than ' || o.n_chars || ' characters'",
    ),
    "best_perplexity": (
        "perplexity ASC NULLS LAST",
        "perplexity",
        (
            "'better perplexity: ' || k.perplexity || ' rather than ' || "
            "coalesce(CAST(o.perplexity AS VARCHAR), 'none')"
        ),
    ),
}
"""By key of a preference: its ORDER BY over facts, the column that it compares, and why the
document ``k`` is kept rather than ``o``.
"""


def decide(
    database: Queries,
    by: Sequence[str],
    prefer: Sequence[str],
    threshold: float,
    *,
    sides: pa.Table | None = None,
    floor: float = 1.0,
    ineligible: Collection[str] = (),
    last: Collection[str] = (),
) -> None:
    """Make the tables that `removed_query` reads.

    Args:
        database: an open database with `facts` and `pairs`
            (`lc_assets.stages.deduplication.facts`).
        by: kinds, of `REASONS`.
        prefer: which document is kept, as in `RemovalSettings.prefer`.
        threshold: least similarity of near duplicates.
        sides: by ``id``, whether a document is ``held`` out; the split concerns no others.
        floor: least similarity of documents that must not be on both sides.
        ineligible: ids of documents that another rule excludes: none is removed for one of them.
        last: ids of documents that come after all others that are eligible.
    """
    for table, columns in _NOTHING.items():
        database.do(f"CREATE OR REPLACE TABLE {table} ({columns})")
    for name, ids in (("ineligible", ineligible), ("late", last)):
        database.connection.register(name, pa.table({"id": pa.array(ids, pa.string())}))
    placed = SIDES.empty_table() if sides is None else sides
    database.connection.register("sides", placed)
    database.do(f"""CREATE OR REPLACE TABLE ranked AS
        WITH known AS (
            SELECT facts.*, held, ineligible.id IS NOT NULL AS is_ineligible,
                   late.id IS NOT NULL AS is_late
            FROM facts LEFT JOIN ineligible USING (id) LEFT JOIN late USING (id)
            LEFT JOIN sides USING (id))
        SELECT number, is_ineligible, held,
               row_number() OVER (ORDER BY is_ineligible, is_late, {in_order(prefer)}) - 1 AS rank
        FROM known""")
    for kind in (DIGEST, TEXT, URL):
        if kind in by:
            _remove_equal(database, kind)
    if NEAR in by or placed.num_rows:
        _remove_similar(database, threshold, floor, near=NEAR in by)


def _sharing(kind: str, table: str) -> str:
    """Documents that share a key with others, and the first document with that key."""
    high, low = f"{kind}_high", f"{kind}_low"
    return f"""SELECT number, first FROM {table} JOIN (
            SELECT {high}, {low}, min(number) AS first FROM {table} WHERE {high} IS NOT NULL
            GROUP BY {high}, {low} HAVING count(*) > 1) USING ({high}, {low})"""


def _remove_equal(database: Queries, kind: str) -> None:
    """Of the documents with one key, keep the one of least rank, if that is eligible."""
    database.do(f"""INSERT INTO removed
        WITH kept AS (SELECT * FROM facts ANTI JOIN removed USING (number)),
             best AS (
                SELECT number, first_value(number) OVER cluster AS kept,
                       first_value(is_ineligible) OVER cluster AS is_none
                FROM ({_sharing(kind, "kept")}) JOIN ranked USING (number)
                WINDOW cluster AS (PARTITION BY first ORDER BY rank))
        SELECT number, kept, {quoted(REASONS[kind])} FROM best WHERE number <> kept AND NOT is_none
        """)


def _remove_similar(database: Queries, threshold: float, floor: float, *, near: bool) -> None:
    """Go through the texts of the remaining documents by rank: remove one if one that was kept is
    similar (with ``near``), or is across the split and similar. With ``near``, all documents of one
    text but the first are removed too.
    """
    least = min(threshold, floor) if near else floor
    is_near = f"similarity >= {threshold!r}" if near else "false"
    if near:
        database.do(f"CREATE OR REPLACE TABLE texts AS {_sharing(TEXT, 'facts')}")
    database.do("""CREATE OR REPLACE TABLE remaining AS
        SELECT number, coalesce(first, number) AS text, rank, is_ineligible, held
        FROM ranked LEFT JOIN texts USING (number) ANTI JOIN removed USING (number)""")
    database.do("""CREATE OR REPLACE TABLE best AS
        SELECT text, min(rank) AS rank, arg_min(number, rank) AS number,
               arg_min(is_ineligible, rank) AS is_ineligible, first(held ORDER BY rank) AS held
        FROM remaining GROUP BY text""")
    database.do(f"""CREATE OR REPLACE TABLE likeness AS
        SELECT least(one, other) AS one, greatest(one, other) AS other,
               max(similarity) AS similarity
        FROM (SELECT coalesce(l.first, a_number) AS one, coalesce(r.first, b_number) AS other,
                     similarity
              FROM pairs LEFT JOIN texts l ON l.number = a_number
              LEFT JOIN texts r ON r.number = b_number WHERE similarity >= {least!r})
        WHERE one <> other GROUP BY ALL""")
    database.do(f"""CREATE OR REPLACE TABLE edges AS
        SELECT least(l.rank, r.rank) AS lo, greatest(l.rank, r.rank) AS hi,
               NOT ({is_near}) AS is_across
        FROM likeness JOIN best l ON l.text = one JOIN best r ON r.text = other
        WHERE CASE WHEN {is_near}
            THEN NOT (CASE WHEN l.rank < r.rank THEN l.is_ineligible ELSE r.is_ineligible END)
            ELSE similarity >= {floor!r} AND l.held <> r.held END""")
    join_labels(database, "centres", star_centres, "SELECT lo, hi FROM edges ORDER BY 1, 2")
    database.do(f"""INSERT INTO removed
        WITH stars AS (
            SELECT hi, arg_min(lo, (is_across, lo)) AS lo, bool_and(is_across) AS is_across
            FROM edges JOIN centres ON number = hi AND label <> hi
            JOIN centres k ON k.number = lo AND k.label = lo GROUP BY hi)
        SELECT o.number, k.number, CASE WHEN is_across AND o.number = b.number
               THEN {quoted(NEAR_HELDOUT)} ELSE {quoted(REASONS[NEAR])} END
        FROM remaining o JOIN best b USING (text) LEFT JOIN stars ON hi = b.rank
        JOIN best k ON k.rank = CASE WHEN is_across AND o.number <> b.number THEN b.rank
                                     ELSE coalesce(lo, b.rank) END
        WHERE o.number <> k.number AND NOT k.is_ineligible""")


def in_order(prefer: Sequence[str]) -> str:
    """An ORDER BY over facts: the document that is kept comes first."""
    keys = [
        _ORDERS[key][0] if key in _ORDERS else f"source = {quoted(key.removeprefix(SOURCE))} DESC"
        for key in prefer
    ]
    return ", ".join([*keys, "id", "number"])


def _why(prefer: Sequence[str]) -> str:
    """Why the document ``k`` is kept rather than ``o``, whose line of ``ranked`` is joined: the
    first key in which they differ.
    """
    cases = ["WHEN is_ineligible THEN 'the other is excluded anyway'"]
    for key in prefer:
        if key in _ORDERS:
            _, column, why = _ORDERS[key]
            cases.append(f"WHEN k.{column} IS DISTINCT FROM o.{column} THEN {why}")
        else:
            name = key.removeprefix(SOURCE)
            differ = f"(k.source = {quoted(name)}) <> (o.source = {quoted(name)})"
            cases.append(f"WHEN {differ} THEN {quoted(f'from {name}')}")
    return f"CASE {' '.join(cases)} ELSE 'first by id' END"


_WHY_ACROSS = "CASE WHEN held THEN 'the other is trained on' ELSE 'the other is held out' END"


_LIKENESS = """
    LEFT JOIN texts tk ON tk.number = c.kept LEFT JOIN texts t ON t.number = c.number
    LEFT JOIN likeness l
        ON l.one = least(coalesce(tk.first, c.kept), coalesce(t.first, c.number))
        AND l.other = greatest(coalesce(tk.first, c.kept), coalesce(t.first, c.number))"""
_SAME_TEXT = "coalesce(tk.first, c.kept) = coalesce(t.first, c.number)"


def clusters_query(ours: str) -> str:
    """The kept documents that near duplicates were removed for, and those near duplicates, of the
    clusters that have a document of which ``ours`` is true; out of a table ``described``, of what
    `removed_query` returns.
    """
    near = f"FROM described WHERE reason = {quoted(REASONS[NEAR])}"
    return f"""
        WITH members AS (
            SELECT id, false AS stays, for_id AS kept_id, similarity, why {near} UNION ALL
            SELECT DISTINCT for_id, true, for_id, 1.0, 'stays' {near}),
        clusters AS MATERIALIZED (
            SELECT id, min(id) OVER same AS cluster, count(*) OVER same AS size, stays, kept_id,
                   similarity AS similarity_to_kept, why
            FROM members WINDOW same AS (PARTITION BY kept_id))
        SELECT * FROM clusters SEMI JOIN (SELECT cluster FROM clusters WHERE {ours})
            USING (cluster) ORDER BY cluster, id"""


def removed_query(prefer: Sequence[str]) -> str:
    """The excluded documents: the document that each is a duplicate of, the one that is finally
    kept, their similarity, and the reason for the choice.
    """
    text = quoted(REASONS[TEXT])
    return f"""
        WITH ends AS (
            SELECT c.number, c.for_number AS kept, c.reason,
                   coalesce(r3.for_number, r2.for_number, r1.for_number, c.for_number) AS last
            FROM removed c LEFT JOIN removed r1 ON r1.number = c.for_number
            LEFT JOIN removed r2 ON r2.number = r1.for_number
            LEFT JOIN removed r3 ON r3.number = r2.for_number)
        SELECT o.id, c.reason, k.id AS for_id, e.id AS kept_id,
               CASE WHEN c.reason = {text} OR c.reason IN {_IN_ONE_PASS} AND {_SAME_TEXT} THEN 1.0
                    WHEN c.reason IN {_IN_ONE_PASS} THEN l.similarity END AS similarity,
               CASE WHEN c.reason = {quoted(NEAR_HELDOUT)} THEN {_WHY_ACROSS}
                    ELSE {_why(prefer)} END AS why
        FROM ends c JOIN ranked USING (number)
        JOIN facts o ON o.number = c.number JOIN facts k ON k.number = c.kept
        JOIN facts e ON e.number = c.last {_LIKENESS}"""


def compared_query(by: Sequence[str], floor: float) -> str:
    """Ids of the documents that may be removed, or another one for them."""
    alike = f"FROM pairs WHERE similarity >= {floor!r}"
    shared = [f"SELECT number FROM ({_sharing(kind, 'facts')})" for kind in by if kind != NEAR]
    numbers = [f"SELECT a_number {alike}", f"SELECT b_number {alike}", *shared]
    return f"SELECT id FROM facts WHERE number IN ({' UNION '.join(numbers)}) ORDER BY id"


def kept_for_others(database: Queries, withdrawn: Collection[str]) -> set[str]:
    """Those that others were removed for, by id, of the documents that are not served: withdrawn,
    or similar to one across the split. The others are neither.
    """
    ids = pa.table({"id": pa.array(withdrawn, pa.string())})
    database.connection.register("withdrawn", ids)
    lines = database.lines(f"""
        WITH away AS (SELECT number FROM facts SEMI JOIN withdrawn USING (id)
            UNION SELECT number FROM removed WHERE reason = {quoted(NEAR_HELDOUT)})
        SELECT DISTINCT facts.id FROM removed JOIN away ON away.number = for_number
        JOIN facts ON facts.number = for_number ANTI JOIN away o ON o.number = removed.number""")
    return {line["id"] for line in lines}


def _line(name: str, reason: str, for_id: str, similarity: float, why: str) -> dict[str, Any]:
    """A line of an excluded document for which none is kept."""
    columns = ("id", "reason", "for_id", "kept_id", "similarity", "why")
    return dict(zip(columns, (name, reason, for_id, "", similarity, why), strict=True))


def contaminated(published: Published) -> list[dict[str, Any]]:
    """A snapshot's documents that hold too much of an evaluation item."""
    evidence = published.only(f"*{EVIDENCE_SUFFIX}")
    return [
        _line(name, CONTAMINATED, item, share, f"holds {share:.0%} of {item}")
        for name, (item, share) in contaminated_ids(evidence).items()
    ]


def withdrawn(published: Published) -> list[dict[str, Any]]:
    """A snapshot's documents that must not be served."""
    return [
        _line(line["id"], WITHDRAWN, line["for_id"], line["similarity"], line["how"])
        for line in withdrawals_in(published.only(WITHDRAWALS_TABLE))
    ]
