"""Facts that decide which documents are removed: dates, lengths, and keys of digest, text and URL.

`lc_assets.stages.deduplication.signature_index` writes them per file where the recipe removes exact
duplicates. `gather_facts` reads those of all documents; `gather_families` only those of documents
connected to a snapshot's own by any chain of near-duplicate pairs. Both create the relations
``facts`` and ``pairs`` in a database.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.columns import PERPLEXITY
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.tables import read_schema, read_table, writing_table
from lc_assets.errors import Mismatch
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.index import (
    PLACE_BITS,
    facts_path,
    indexed_files,
    keyed_tables,
)
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted
from lc_assets.stages.deduplication.signing import TEXT_FACTS, signatures_of, text_facts
from lc_assets.text.duplicates.clusters import cluster_roots
from lc_assets.text.duplicates.keys import digest_key, url_key
from lc_assets.vocabulary import parse_document_id

DIGEST, TEXT, URL = "digest", "text", "url"
_KEYS = [f"{kind}_{half}" for kind in (DIGEST, TEXT, URL) for half in ("high", "low")]
FACTS = pa.schema(
    [
        ("number", pa.int64()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("date", pa.string()),
        ("n_chars", pa.int64()),
        ("perplexity", pa.float64()),
        *((name, pa.uint64()) for name in _KEYS),
    ]
)
"""A document: ``number`` is its file's number × 2³² + its index in the file; missing keys are null.
"""
NO_PAIRS = "SELECT '' AS a, '' AS b, 0::DOUBLE AS similarity WHERE false"


def write_facts(
    path: Path, shards: Sequence[Path], privacy: PrivacySettings, signed: Path | None
) -> None:
    """Publish the facts about the documents of some shards, numbered from 0 in their order; texts
    are compared as they are tokenized. They are read only if no folder of `document_signatures`,
    ``signed``, has their keys.
    """
    tables, n_documents = [FACTS.empty_table()], 0
    for shard in shards:
        if signed is None:
            texts = text_facts(shard, privacy)
        else:
            texts = read_table(signatures_of(shard, signed), TEXT_FACTS.names)
        tables.append(_facts_of(shard, n_documents, texts))
        n_documents += len(texts)
    with writing_table(path, FACTS) as table:
        table.write(pa.concat_tables(tables).combine_chunks())


def _facts_of(shard: Path, first: int, texts: pa.Table) -> pa.Table:
    """Facts of a shard's documents, the first of which has number ``first``, with those of their
    texts.

    Raises:
        Mismatch: when these are of other documents.
    """
    schema = read_schema(shard)
    known = [PERPLEXITY] if PERPLEXITY in schema.names else []
    table = read_table(shard, ["id", "date_download", "url", "digest", *known])
    if len(texts) != len(table):
        raise Mismatch(
            f"{shard}: has {len(table):,} documents, {len(texts):,} have keys; materialize "
            "`document_signatures` of this snapshot again"
        )
    keys = {
        DIGEST: [digest_key(digest or "") for digest in table["digest"].to_pylist()],
        URL: [url_key(url) if url else None for url in table["url"].to_pylist()],
    }
    halves = {
        f"{kind}_{half}": pa.array([key and key[at] for key in found], pa.uint64())
        for kind, found in keys.items()
        for at, half in enumerate(("high", "low"))
    }
    perplexity = table[PERPLEXITY].to_numpy() if known else np.full(len(table), math.nan)
    columns = halves | {
        "number": pa.array(np.arange(first, first + len(table))),
        "id": table["id"],
        "source": pa.array([""] * len(table)),
        "date": table["date_download"].fill_null(""),
        "perplexity": pa.array(perplexity, mask=np.isnan(perplexity)),
        **{name: texts[name] for name in TEXT_FACTS.names},
    }
    return pa.table([columns[name] for name in FACTS.names], schema=FACTS)


def fact_columns(shard: Path) -> list[str]:
    """Columns of a shard of filtered documents that `preferred_by` needs."""
    known = [PERPLEXITY] if PERPLEXITY in read_schema(shard).names else []
    return ["id", "date_download", "raw_content", *known]


def preferred_by(number: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a preference compares, of a line of `fact_columns`."""
    perplexity = line.get(PERPLEXITY)
    return {
        "number": number,
        "id": line["id"],
        "source": "",
        "date": line["date_download"] or "",
        "n_chars": len(line["raw_content"]),
        "perplexity": None if perplexity is None or math.isnan(perplexity) else perplexity,
    }


def gather_facts(database: Queries, inputs: Mapping[str, Published], pairs: Sequence[Path]) -> bool:
    """Make ``facts`` of the documents of all partitions that are read; a partition is the source.
    Return whether there are any.

    Args:
        database: an open database.
        inputs: `filtered_documents` and `signature_index` of the partitions.
        pairs: their tables of pairs.
    """
    tables = [
        f"SELECT * REPLACE (number | {number << PLACE_BITS} AS number, "
        f"{quoted(file.snapshot)} AS source), '' AS snapshot "
        f"FROM {parquet([facts_path(file.folder, file.number)])}"
        for number, file in enumerate(indexed_files(inputs, "facts/*"))
    ]
    if tables:
        database.do(f"CREATE OR REPLACE VIEW facts AS {' UNION ALL '.join(tables)}")
        known = f"SELECT * FROM {parquet(list(pairs))}" if pairs else NO_PAIRS
        database.do(f"CREATE OR REPLACE VIEW pairs AS {known}")
    return bool(tables)


def gather_families(
    database: Queries,
    inputs: Mapping[str, Published],
    snapshot: str,
    pairs: Sequence[Path],
    *,
    lengths: bool,
) -> None:
    """Make ``facts`` of the documents that pairs join to those of a snapshot, without keys.

    Args:
        database: an open database.
        inputs: `filtered_documents` and `document_keys` of all snapshots that are read.
        snapshot: the one being decided.
        pairs: the tables of pairs of all of them.
        lengths: whether to measure text lengths, which requires reading the texts.
    """
    database.do(f"CREATE OR REPLACE VIEW near AS SELECT * FROM {parquet(list(pairs))}")
    _make_family(database, snapshot)
    database.do("""CREATE OR REPLACE TABLE members
        (id VARCHAR, snapshot VARCHAR, date VARCHAR, n_chars BIGINT)""")
    for key, path in keyed_tables(inputs).items():
        family = database.lines(f"SELECT id FROM family WHERE starts_with(id, {quoted(f'{key}/')})")
        if not family:
            continue
        measured = "(SELECT 0 AS n_chars) ON true"
        if lengths:
            shards = {parse_document_id(line["id"])[0].name for line in family}
            names = [f"{name}{DOCUMENTS_SUFFIX}" for name in sorted(shards)]
            texts = inputs[f"filtered_documents/{key}"].only(*names)
            found = parquet([texts / name for name in names])
            measured = f"(SELECT id, length(raw_content) AS n_chars FROM {found}) USING (id)"
        database.do(f"""INSERT INTO members
            SELECT id, {quoted(key)}, coalesce(date_download, ''), n_chars
            FROM {parquet([path])} SEMI JOIN family USING (id) JOIN {measured}""")
    no_keys = ", ".join(f"NULL::UBIGINT AS {name}" for name in _KEYS)
    database.do(f"""CREATE OR REPLACE TABLE facts AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS number, *, snapshot AS source,
               NULL::DOUBLE AS perplexity, {no_keys}
        FROM members""")
    database.do("""CREATE OR REPLACE TABLE pairs AS
        SELECT * FROM near SEMI JOIN family ON id = a""")


def _make_family(database: Queries, snapshot: str) -> None:
    """Make ``family``: ids of all documents that pairs join to one of the snapshot."""
    database.do("""CREATE OR REPLACE TABLE paired AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS number, id
        FROM (SELECT a AS id FROM near UNION SELECT b FROM near)""")
    nodes = np.arange(database.number("SELECT count(*) FROM paired"))
    pairs = (
        (batch.column(0).to_numpy(), batch.column(1).to_numpy())
        for batch in database.batches("""SELECT l.number, r.number
            FROM near JOIN paired l ON l.id = a JOIN paired r ON r.id = b""")
    )
    rooted = pa.table({"number": nodes, "label": cluster_roots(nodes, pairs)})
    database.connection.register("rooted", rooted)
    database.do(f"""CREATE OR REPLACE TABLE family AS
        WITH known AS (SELECT id, label AS root FROM paired JOIN rooted USING (number)),
             own AS (SELECT root FROM known WHERE starts_with(id, {quoted(f"{snapshot}/")}))
        SELECT id FROM known SEMI JOIN own USING (root)""")
