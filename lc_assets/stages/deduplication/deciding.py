"""Deciding who stays, from evidence alone: facts, pairs, a threshold and a preference. No text is
read.

Kinds are asked one after the other (digest, text, url, near), each among those that the kinds
before left standing. Of documents of one key, the preferred one stays. Near duplicates are the
connected components of the pairs that are alike enough, with one document of each text standing for
all that have it; a text that no longer stands joins nothing.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.build.tables import count_lines
from lc_assets.counts import Counts
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.facts_reading import facts_of, repeated_in
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted
from lc_assets.stages.deduplication.settings import (
    CLUSTERS,
    DIGEST,
    FACTS,
    KEPT,
    NEAR,
    REASONS,
    REMOVED,
    TEXT,
    URL,
    Decision,
)
from lc_assets.text.duplicates.clusters import Clusters
from lc_assets.text.duplicates.keys import SOURCE, Preference

CLUSTERS_FILE, REMOVED_FILE, KEPT_FILE, PAIRS_FILE = (
    "clusters.parquet",
    "removed.parquet",
    "kept.parquet",
    "pairs.parquet",
)

_NOTHING = {
    "chosen": "number BIGINT, cluster BIGINT, kept BIGINT",
    "texts": "number BIGINT, first BIGINT",
    "likeness": "a_number BIGINT, b_number BIGINT, similarity DOUBLE",
}


def decide(asked: Queries, facts: list[Path], pairs: Path, decision: Decision, out: Path) -> Counts:
    """Publish clusters, removed and kept documents into ``out``; return what stays and what does
    not, by reason.

    Args:
        asked: an open connection.
        facts: tables of `settings.FACTS`, of all documents.
        pairs: the table of `settings.PAIRS`.
        decision: what follows from them.
        out: the folder.
    """
    preference = Preference(decision.prefer)
    asked.do(f"CREATE OR REPLACE VIEW facts AS SELECT * FROM {parquet(facts)}")
    asked.do("CREATE OR REPLACE TABLE removed (number BIGINT, for_number BIGINT, reason VARCHAR)")
    for kind in (DIGEST, TEXT, URL):
        if kind in decision.by:
            asked.do(_same_key(kind))
            _remove(asked, kind, preference)
    for table, columns in _NOTHING.items():
        asked.do(f"CREATE OR REPLACE TABLE {table} ({columns})")
    if NEAR in decision.by:
        _gather_near(asked, facts, pairs, decision.threshold)
    _narrow(asked, facts, near=NEAR in decision.by)
    if NEAR in decision.by:
        _remove(asked, NEAR, preference)
    with os_errors_as_lc_errors(out):
        asked.publish(_clusters(preference), out / CLUSTERS_FILE, CLUSTERS)
        asked.publish(_removed(preference), out / REMOVED_FILE, REMOVED)
        n_kept = _publish_kept(asked, facts, out / KEPT_FILE)
    dropped = {
        line["reason"]: line["n"]
        for line in asked.lines(
            "SELECT reason, count(*) AS n FROM removed GROUP BY reason ORDER BY 1"
        )
    }
    extra = {
        "clusters": asked.number("SELECT count(DISTINCT cluster) FROM chosen"),
        "documents in clusters": asked.number("SELECT count(*) FROM chosen"),
    }
    return Counts(
        seen=sum(map(count_lines, facts)),
        kept=n_kept,
        dropped=dropped,
        failed_rules=dropped,
        extra=extra,
    )


def repeated_texts(asked: Queries, facts: list[Path]) -> None:
    """Make the table ``texts``: documents whose text others have too, and the first document that
    has it.
    """
    asked.do("CREATE OR REPLACE TABLE texts (number BIGINT, first BIGINT)")
    for numbers, first in repeated_in(facts, asked.scratch):
        asked.connection.register("repeated", pa.table({"number": numbers, "first": first}))
        asked.do("INSERT INTO texts SELECT * FROM repeated")


def _narrow(asked: Queries, facts: list[Path], *, near: bool) -> None:
    """Make ``facts`` those of the documents that anything more is asked about: near duplicates, and
    what goes, and for whom.
    """
    members = "UNION SELECT number FROM members" if near else ""
    numbers = asked.numbers(
        f"SELECT number FROM removed UNION SELECT for_number FROM removed {members} ORDER BY 1"
    )
    path = asked.scratch / "known.parquet"
    with publish(path) as draft, pq.ParquetWriter(draft, FACTS) as writer:
        for table in facts_of(facts, numbers, FACTS.names):
            writer.write_table(table.cast(FACTS))
    asked.do(f"CREATE OR REPLACE VIEW facts AS SELECT * FROM {parquet([path])}")


def _publish_kept(asked: Queries, facts: list[Path], path: Path) -> int:
    numbers, n_kept = asked.numbers("SELECT number FROM removed ORDER BY 1"), 0
    with publish(path) as draft, pq.ParquetWriter(draft, KEPT, compression="zstd") as writer:
        for table in facts_of(facts, numbers, KEPT.names, others=True):
            writer.write_table(table.select(KEPT.names).cast(KEPT))
            n_kept += table.num_rows
    return n_kept


def _same_key(kind: str) -> str:
    high, low = f"{kind}_high", f"{kind}_low"
    return f"""CREATE OR REPLACE TABLE members AS
        WITH standing AS (SELECT number, {high}, {low} FROM facts ANTI JOIN removed USING (number) WHERE {high} IS NOT NULL),
             several AS (SELECT {high}, {low}, min(number) AS cluster FROM standing GROUP BY {high}, {low} HAVING count(*) > 1)
        SELECT number, cluster FROM standing JOIN several USING ({high}, {low})"""


def _remove(asked: Queries, kind: str, preference: Preference) -> None:
    asked.do(f"""CREATE OR REPLACE TABLE chosen AS
        SELECT number, cluster, first_value(number) OVER (PARTITION BY cluster ORDER BY {in_order(preference)}) AS kept
        FROM members JOIN facts USING (number)""")
    asked.do(
        f"INSERT INTO removed SELECT number, kept, {quoted(REASONS[kind])} FROM chosen WHERE "
        "number <> kept"
    )


def _gather_near(asked: Queries, facts: list[Path], pairs: Path, threshold: float) -> None:
    """Make ``members`` of the near duplicates among those that still stand."""
    repeated_texts(asked, facts)
    asked.do("""CREATE OR REPLACE TABLE gone AS
        SELECT number FROM removed
        ANTI JOIN (SELECT first AS number FROM texts ANTI JOIN removed USING (number)) USING (number)""")
    asked.do(f"""CREATE OR REPLACE TABLE edges AS
        SELECT a_number, b_number FROM {parquet([pairs])}
        WHERE verified AND similarity >= {threshold!r}
          AND a_number NOT IN (SELECT number FROM gone) AND b_number NOT IN (SELECT number FROM gone)""")
    nodes = asked.numbers("SELECT a_number FROM edges UNION SELECT b_number FROM edges ORDER BY 1")
    clusters = Clusters(nodes)
    for batch in asked.batches("SELECT a_number, b_number FROM edges"):
        clusters.add(
            np.asarray(batch.column(0), dtype=np.int64), np.asarray(batch.column(1), dtype=np.int64)
        )
    asked.connection.register("found", pa.table({"number": nodes, "root": clusters.labels()}))
    asked.do("CREATE OR REPLACE TABLE roots AS SELECT * FROM found")
    asked.do("""CREATE OR REPLACE TABLE members AS
        WITH standing AS (
            SELECT number, first FROM texts ANTI JOIN removed USING (number)
            UNION ALL
            SELECT number, number AS first FROM roots ANTI JOIN removed USING (number) ANTI JOIN texts USING (number)),
        joined AS (SELECT standing.number, coalesce(root, first) AS cluster FROM standing LEFT JOIN roots ON roots.number = first)
        SELECT number, cluster FROM joined QUALIFY count(*) OVER (PARTITION BY cluster) > 1""")
    asked.do(f"""CREATE OR REPLACE TABLE likeness AS
        SELECT a_number, b_number, similarity FROM {parquet([pairs])} SEMI JOIN roots ON roots.number = a_number""")


def in_order(preference: Preference) -> str:
    """An ORDER BY over facts: who stays comes first."""
    orders = {
        "newest": "date DESC",
        "oldest": "date = '', date",
        "longest": "n_chars DESC",
        "best_perplexity": "perplexity ASC NULLS LAST",
    }
    keys = [
        orders.get(key) or f"source = {quoted(key.removeprefix(SOURCE))} DESC"
        for key in preference.keys
    ]
    return ", ".join([*keys, "id", "number"])


def _why(preference: Preference) -> str:
    """`Preference.why` as SQL, of what is kept ``k`` and the other ``o``."""
    dated = "k.date || ' rather than ' || CASE o.date WHEN '' THEN 'no date' ELSE o.date END"
    words = {
        "newest": ("date", f"'newer: ' || {dated}"),
        "oldest": ("date", f"'older: ' || {dated}"),
        "longest": (
            "n_chars",
            "'longer: ' || k.n_chars || ' rather than ' || o.n_chars || ' characters'",
        ),
        "best_perplexity": (
            "perplexity",
            (
                "'better perplexity: ' || k.perplexity || ' rather than ' || "
                "coalesce(CAST(o.perplexity AS VARCHAR), 'none')"
            ),
        ),
    }
    cases = []
    for key in preference.keys:
        name = key.removeprefix(SOURCE)
        if key in words:
            cases.append(
                f"WHEN k.{words[key][0]} IS DISTINCT FROM o.{words[key][0]} THEN {words[key][1]}"
            )
        else:
            cases.append(
                f"WHEN (k.source = {quoted(name)}) <> (o.source = {quoted(name)}) THEN "
                f"{quoted(f'from {name}')}"
            )
    return f"CASE {' '.join(cases)} ELSE 'first by id' END"


_LIKENESS = """
    LEFT JOIN texts tk ON tk.number = c.kept LEFT JOIN texts t ON t.number = c.number
    LEFT JOIN likeness l ON l.a_number = least(coalesce(tk.first, c.kept), coalesce(t.first, c.number))
                        AND l.b_number = greatest(coalesce(tk.first, c.kept), coalesce(t.first, c.number))"""
_SAME_TEXT = "coalesce(tk.first, c.kept) = coalesce(t.first, c.number)"


def _clusters(preference: Preference) -> str:
    return f"""
        SELECT o.id, c.number, min(o.id) OVER (PARTITION BY c.cluster) AS cluster, count(*) OVER (PARTITION BY c.cluster) AS size,
               c.number = c.kept AS stays, k.id AS kept_id, CASE WHEN {_SAME_TEXT} THEN 1.0 ELSE l.similarity END AS similarity_to_kept,
               CASE WHEN c.number = c.kept THEN 'stays' ELSE {_why(preference)} END AS why
        FROM chosen c JOIN facts o ON o.number = c.number JOIN facts k ON k.number = c.kept {_LIKENESS}
        ORDER BY cluster, c.number"""


def _removed(preference: Preference) -> str:
    return f"""
        WITH ends AS (
            SELECT c.number, c.for_number AS kept, c.reason, coalesce(r3.for_number, r2.for_number, r1.for_number, c.for_number) AS last
            FROM removed c LEFT JOIN removed r1 ON r1.number = c.for_number LEFT JOIN removed r2 ON r2.number = r1.for_number
            LEFT JOIN removed r3 ON r3.number = r2.for_number)
        SELECT o.id, c.number, c.reason, k.id AS for_id, e.id AS kept_id,
               CASE WHEN c.reason = {quoted(REASONS[TEXT])} OR c.reason = {quoted(REASONS[NEAR])} AND {_SAME_TEXT} THEN 1.0
                    WHEN c.reason = {quoted(REASONS[NEAR])} THEN l.similarity END AS similarity,
               {_why(preference)} AS why
        FROM ends c JOIN facts o ON o.number = c.number JOIN facts k ON k.number = c.kept JOIN facts e ON e.number = c.last {_LIKENESS}
        ORDER BY c.number"""
