"""Decide which documents are kept, from facts and pairs, in SQL. No text is read.

Kinds are applied one after the other (digest, text, url, near), each to the documents that the
kinds before it kept. Of the documents with one key, the preferred one is kept. Clusters of near
duplicates are the connected components of the pairs at or above the threshold, where one document
represents all with the same text; excluded texts connect nothing.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lc_assets.build.settings.documents import SOURCE
from lc_assets.build.settings.rows import GriddingSettings
from lc_assets.errors import NotPublished
from lc_assets.lake.versions import Published
from lc_assets.stages.decontamination.contaminated_documents import contaminated_ids
from lc_assets.stages.decontamination.evidence import CONTAMINATED
from lc_assets.stages.deduplication.facts import DIGEST, TEXT, URL, join_clusters
from lc_assets.stages.deduplication.queries import Queries, quoted
from lc_assets.stages.withdrawal.snapshot_withdrawals import TABLE as WITHDRAWALS_TABLE
from lc_assets.stages.withdrawal.snapshot_withdrawals import withdrawals_in
from lc_assets.tokens.orders import heldout

NEAR: Final = "near"
NEAR_HELDOUT: Final = "near heldout"
WITHDRAWN: Final = "withdrawn"
REASONS: Final = {
    DIGEST: "same digest",
    TEXT: "same text",
    URL: "same url",
    NEAR: "near duplicate",
}

_NOTHING: Final = {
    "removed": "number BIGINT, for_number BIGINT, reason VARCHAR",
    "texts": "number BIGINT, first BIGINT",
    "likeness": "a_number BIGINT, b_number BIGINT, similarity DOUBLE",
}
_DATED: Final = "k.date || ' rather than ' || CASE o.date WHEN '' THEN 'no date' ELSE o.date END"
_ORDERS: Final = {
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


def decide(database: Queries, by: Sequence[str], prefer: Sequence[str], threshold: float) -> None:
    """Make the tables that `removed_query` and `clusters_query` read.

    Args:
        database: an open database with `facts` and `pairs`
            (`lc_assets.stages.deduplication.facts`).
        by: kinds, of `REASONS`.
        prefer: which document is kept, as in `RemovalSettings.prefer`.
        threshold: least similarity of near duplicates.
    """
    for table, columns in _NOTHING.items():
        database.do(f"CREATE OR REPLACE TABLE {table} ({columns})")
    for kind in (DIGEST, TEXT, URL):
        if kind in by:
            database.do(f"""CREATE OR REPLACE TABLE members AS
                WITH kept AS (SELECT * FROM facts ANTI JOIN removed USING (number))
                SELECT number, first AS cluster FROM ({_sharing(kind, "kept")})""")
            _remove(database, kind, prefer)
    database.do("CREATE OR REPLACE TABLE chosen (number BIGINT, cluster BIGINT, kept BIGINT)")
    if NEAR in by:
        _join_near(database, threshold)
        _remove(database, NEAR, prefer)


def _sharing(kind: str, table: str) -> str:
    """Documents that share a key with others, and the first document with that key."""
    high, low = f"{kind}_high", f"{kind}_low"
    return f"""SELECT number, first FROM {table} JOIN (
            SELECT {high}, {low}, min(number) AS first FROM {table} WHERE {high} IS NOT NULL
            GROUP BY {high}, {low} HAVING count(*) > 1) USING ({high}, {low})"""


def _remove(database: Queries, kind: str, prefer: Sequence[str]) -> None:
    database.do(f"""CREATE OR REPLACE TABLE chosen AS
        SELECT number, cluster,
               first_value(number) OVER (PARTITION BY cluster ORDER BY {in_order(prefer)}) AS kept
        FROM members JOIN facts USING (number)""")
    database.do(f"""INSERT INTO removed
        SELECT number, kept, {quoted(REASONS[kind])} FROM chosen WHERE number <> kept""")


def _join_near(database: Queries, threshold: float) -> None:
    """Make ``members`` of the near duplicates among the documents that are kept so far."""
    database.do(f"CREATE OR REPLACE TABLE texts AS {_sharing(TEXT, 'facts')}")
    database.do("""CREATE OR REPLACE TABLE gone AS
        SELECT number FROM removed
        ANTI JOIN (SELECT first AS number FROM texts ANTI JOIN removed USING (number))
        USING (number)""")
    database.do(f"""CREATE OR REPLACE TABLE edges AS
        SELECT a_number, b_number FROM pairs WHERE similarity >= {threshold!r}
          AND a_number NOT IN (SELECT number FROM gone)
          AND b_number NOT IN (SELECT number FROM gone)""")
    join_clusters(database, "roots", "SELECT * FROM edges")
    database.do("""CREATE OR REPLACE TABLE members AS
        WITH kept AS (
            SELECT number, first FROM texts ANTI JOIN removed USING (number)
            UNION ALL
            SELECT number, number AS first FROM roots
            ANTI JOIN removed USING (number) ANTI JOIN texts USING (number)),
        joined AS (
            SELECT kept.number, coalesce(root, first) AS cluster
            FROM kept LEFT JOIN roots ON roots.number = first)
        SELECT number, cluster FROM joined
        QUALIFY count(*) OVER (PARTITION BY cluster) > 1""")
    database.do("""CREATE OR REPLACE TABLE likeness AS
        SELECT a_number, b_number, similarity FROM pairs
        SEMI JOIN roots ON roots.number = a_number""")


def in_order(prefer: Sequence[str]) -> str:
    """An ORDER BY over facts: the document that is kept comes first."""
    keys = [
        _ORDERS[key][0] if key in _ORDERS else f"source = {quoted(key.removeprefix(SOURCE))} DESC"
        for key in prefer
    ]
    return ", ".join([*keys, "id", "number"])


def _why(prefer: Sequence[str]) -> str:
    """Why the document ``k`` is kept rather than ``o``: the first key in which they differ."""
    cases = ["WHEN false THEN ''"]
    for key in prefer:
        if key in _ORDERS:
            _, column, why = _ORDERS[key]
            cases.append(f"WHEN k.{column} IS DISTINCT FROM o.{column} THEN {why}")
        else:
            name = key.removeprefix(SOURCE)
            differ = f"(k.source = {quoted(name)}) <> (o.source = {quoted(name)})"
            cases.append(f"WHEN {differ} THEN {quoted(f'from {name}')}")
    return f"CASE {' '.join(cases)} ELSE 'first by id' END"


_LIKENESS: Final = """
    LEFT JOIN texts tk ON tk.number = c.kept LEFT JOIN texts t ON t.number = c.number
    LEFT JOIN likeness l
        ON l.a_number = least(coalesce(tk.first, c.kept), coalesce(t.first, c.number))
        AND l.b_number = greatest(coalesce(tk.first, c.kept), coalesce(t.first, c.number))"""
_SAME_TEXT: Final = "coalesce(tk.first, c.kept) = coalesce(t.first, c.number)"


def clusters_query(prefer: Sequence[str]) -> str:
    """The clusters of near duplicates, a line per document."""
    return f"""
        SELECT o.id, c.number, min(o.id) OVER (PARTITION BY c.cluster) AS cluster,
               count(*) OVER (PARTITION BY c.cluster) AS size, c.number = c.kept AS stays,
               k.id AS kept_id,
               CASE WHEN {_SAME_TEXT} THEN 1.0 ELSE l.similarity END AS similarity_to_kept,
               CASE WHEN c.number = c.kept THEN 'stays' ELSE {_why(prefer)} END AS why
        FROM chosen c
        JOIN facts o ON o.number = c.number JOIN facts k ON k.number = c.kept {_LIKENESS}"""


def removed_query(prefer: Sequence[str]) -> str:
    """The excluded documents: the document that each is a duplicate of, the one that is finally
    kept, their similarity, and the reason for the choice.
    """
    text, near = quoted(REASONS[TEXT]), quoted(REASONS[NEAR])
    return f"""
        WITH ends AS (
            SELECT c.number, c.for_number AS kept, c.reason,
                   coalesce(r3.for_number, r2.for_number, r1.for_number, c.for_number) AS last
            FROM removed c LEFT JOIN removed r1 ON r1.number = c.for_number
            LEFT JOIN removed r2 ON r2.number = r1.for_number
            LEFT JOIN removed r3 ON r3.number = r2.for_number)
        SELECT o.id, c.reason, k.id AS for_id, e.id AS kept_id,
               CASE WHEN c.reason = {text} OR c.reason = {near} AND {_SAME_TEXT} THEN 1.0
                    WHEN c.reason = {near} THEN l.similarity END AS similarity,
               {_why(prefer)} AS why
        FROM ends c JOIN facts o ON o.number = c.number JOIN facts k ON k.number = c.kept
        JOIN facts e ON e.number = c.last {_LIKENESS}"""


def across_the_split(
    database: Queries, snapshot: str, gridding: GriddingSettings, *, floor: float
) -> list[dict[str, Any]]:
    """Lines, as of `removed_query`, of the snapshot's documents that are kept so far, and similar
    to a kept one on the other side of the split: of an older snapshot, or of the same one and held
    out.

    Args:
        database: after `decide`.
        snapshot: the one being decided.
        gridding: settings that determine which documents are held out.
        floor: least similarity.
    """
    database.do(f"""CREATE OR REPLACE TABLE neighbours AS
        SELECT a AS id, b AS other, similarity FROM pairs WHERE similarity >= {floor!r}
        UNION ALL SELECT b, a, similarity FROM pairs WHERE similarity >= {floor!r}""")
    documents = database.lines(
        "SELECT id, digest FROM facts ANTI JOIN removed USING (number) "
        "SEMI JOIN neighbours USING (id)"
    )
    keys = [line["digest"] or line["id"] for line in documents]
    held = heldout(keys, seed=gridding.seed, fraction=gridding.heldout_fraction)
    ids = pa.array([line["id"] for line in documents], pa.string())
    database.connection.register("sides", pa.table({"id": ids, "held": pa.array(held)}))
    query = f"""
        SELECT l.id, {quoted(NEAR_HELDOUT)} AS reason, r.id AS for_id, r.id AS kept_id, similarity,
               CASE WHEN l.held THEN 'the other is trained on'
                    ELSE 'the other is held out' END AS why
        FROM neighbours n JOIN sides l ON l.id = n.id JOIN sides r ON r.id = other
        WHERE l.held <> r.held AND starts_with(l.id, {quoted(f"{snapshot}/")})
          AND CASE WHEN starts_with(r.id, {quoted(f"{snapshot}/")}) THEN r.held
                   ELSE split_part(r.id, '/', 1) < {quoted(snapshot)} END
        QUALIFY row_number() OVER (PARTITION BY l.id ORDER BY similarity DESC, r.id) = 1"""
    return database.lines(query)


def _line(name: str, reason: str, for_id: str, similarity: float, why: str) -> dict[str, Any]:
    """A line of `REMOVALS` without a kept document."""
    columns = ("id", "reason", "for_id", "kept_id", "similarity", "why")
    return dict(zip(columns, (name, reason, for_id, "", similarity, why), strict=True))


def contaminated(inputs: Mapping[str, Published], snapshot: str) -> list[dict[str, Any]]:
    """The snapshot's documents that hold too much of an evaluation item."""
    published = inputs.get(f"contaminated_documents/{snapshot}")
    found = contaminated_ids(published.folder) if published else {}
    return [
        _line(name, CONTAMINATED, item, share, f"holds {share:.0%} of {item}")
        for name, (item, share) in found.items()
    ]


def withdrawn(inputs: Mapping[str, Published], snapshot: str) -> list[dict[str, Any]]:
    """The snapshot's documents that must not be served."""
    published = inputs.get(f"snapshot_withdrawals/{snapshot}")
    if published is None:
        raise NotPublished(
            f"snapshot_withdrawals/{snapshot} has not been published: materialize "
            "`snapshot_withdrawals` first"
        )
    return [
        _line(line["id"], WITHDRAWN, line["for_id"], line["similarity"], line["how"])
        for line in withdrawals_in(published.only(WITHDRAWALS_TABLE))
    ]
