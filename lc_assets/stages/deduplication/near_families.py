"""Families: who is joined to a snapshot's documents by pairs of near duplicates, however far;
nobody else matters to these.

Pairs of all snapshots that are read are joined by their ids; of the families that hold a document
of the snapshot at hand, facts are looked up where the bands were cut
(`lc_assets.stages.deduplication.banded_documents`). So what is decided costs what it is about, and
the pairs' lines, not the documents of all snapshots. Who of a family stays is decided elsewhere
(`lc_assets.stages.deduplication.removed_documents`).
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.banded_documents import bands_of, documents_named
from lc_assets.stages.deduplication.deciding import PAIRS_FILE
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted
from lc_assets.stages.deduplication.settings import FACTS, PAIRS
from lc_assets.text.duplicates.clusters import Clusters
from lc_assets.vocabulary import parse_document_id

MEMBERS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("digest", pa.string()),
        ("source", pa.string()),
        ("date", pa.string()),
        ("n_chars", pa.int64()),
    ]
)
MEMBERS_FILE: Final = "members.parquet"


def gather_families(
    asked: Queries,
    inputs: Mapping[str, Published],
    snapshot: str,
    pairs: list[Path],
    work: Path,
    *,
    lengths: bool,
) -> None:
    """Write facts and pairs of the families of a snapshot's documents, and make the table
    ``documents`` of who is in them.

    Args:
        asked: an open connection.
        inputs: `filtered_documents` and `signature_index` of all snapshots that are read.
        snapshot: the one at hand.
        pairs: `near_duplicate_pairs` of these.
        work: where ``facts.parquet`` and the pairs go.
        lengths: whether texts are measured; they are read for it.
    """
    asked.do(f"CREATE OR REPLACE VIEW near AS SELECT * FROM {parquet(pairs)}")
    _join(asked, snapshot)
    with publish(work / MEMBERS_FILE) as draft, pq.ParquetWriter(draft, MEMBERS) as writer:
        for key in sorted(
            name.partition("/")[2] for name in inputs if name.startswith("filtered_documents/")
        ):
            writer.write_table(_members(asked, inputs, key, lengths=lengths))
    asked.do(f"""CREATE OR REPLACE TABLE documents AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS number, * FROM {parquet([work / MEMBERS_FILE])}""")
    keys = ", ".join(f"NULL AS {name}" for name in FACTS.names[6:])
    facts = (
        f"SELECT number, id, source, date, n_chars, NULL AS perplexity, {keys} FROM documents "
        "ORDER BY number"
    )
    asked.publish(facts, work / "facts.parquet", FACTS)
    asked.publish(
        """SELECT a, b, least(l.number, r.number) AS a_number, greatest(l.number, r.number) AS b_number, bands, similarity, true AS verified
           FROM near JOIN documents l ON l.id = a JOIN documents r ON r.id = b ORDER BY a_number, b_number""",
        work / PAIRS_FILE,
        PAIRS,
    )


def _join(asked: Queries, snapshot: str) -> None:
    """Make the table ``family``: ids of all who are joined to a document of the snapshot."""
    asked.do("""CREATE OR REPLACE TABLE paired AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS number, id FROM (SELECT a AS id FROM near UNION SELECT b FROM near)""")
    clusters = Clusters(np.arange(asked.number("SELECT count(*) FROM paired"), dtype=np.int64))
    numbered = (
        "SELECT l.number, r.number FROM near JOIN paired l ON l.id = a JOIN paired r ON r.id = b"
    )
    for batch in asked.batches(numbered):
        clusters.add(
            np.asarray(batch.column(0), dtype=np.int64), np.asarray(batch.column(1), dtype=np.int64)
        )
    asked.connection.register(
        "rooted", pa.table({"number": clusters.nodes, "root": clusters.labels()})
    )
    asked.do(f"""CREATE OR REPLACE TABLE family AS
        WITH known AS (SELECT id, root FROM paired JOIN rooted USING (number))
        SELECT id FROM known SEMI JOIN (SELECT root FROM known WHERE starts_with(id, {quoted(f"{snapshot}/")})) USING (root)""")


def _members(
    asked: Queries, inputs: Mapping[str, Published], key: str, *, lengths: bool
) -> pa.Table:
    """Who of a family is of one snapshot."""
    batches = asked.batches(
        f"SELECT id FROM family WHERE starts_with(id, {quoted(f'{key}/')}) ORDER BY id"
    )
    ids = pa.concat_arrays(
        [pa.array([], pa.string()), *(batch.column(0).cast(pa.string()) for batch in batches)]
    )
    if not len(ids):
        return MEMBERS.empty_table()
    found = documents_named(
        bands_of(inputs, key).only("bands.json", "documents/*", "shards/*"), ids
    )
    dates = pc.binary_join_element_wise(pa.scalar(key), found["date_download"], " ")
    n_chars = (
        _lengths(asked, inputs[f"filtered_documents/{key}"], found["id"])
        if lengths
        else pa.repeat(0, found.num_rows)
    )
    return pa.table(
        [found["id"], found["digest"], pa.repeat(key, found.num_rows), dates, n_chars],
        schema=MEMBERS,
    )


def _lengths(asked: Queries, filtered: Published, ids: pa.ChunkedArray) -> pa.Array:
    """Characters of some documents' texts, which only reading these says."""
    names = [
        f"{name}{DOCUMENTS_SUFFIX}"
        for name in sorted({parse_document_id(name)[0].name for name in ids.to_pylist()})
    ]
    folder = filtered.only(*names)
    asked.connection.register("measured", pa.table({"id": ids}))
    query = (
        "SELECT id, length(raw_content) AS n FROM "
        f"{parquet([folder / name for name in names])} SEMI JOIN measured USING (id)"
    )
    length_of = {line["id"]: line["n"] for line in asked.lines(query)}
    return pa.array([length_of[name] for name in ids.to_pylist()], pa.int64())
