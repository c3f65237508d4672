"""The table of claims, written out of numbers: ids, addresses and words come back last, some roots
at a time.

Strings of many claims at once would be the most that memory has to hold; so the words of all claims
are looked up once, by the places of their links, and each block of the table joins only what it
names.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.publishing import publish
from lc_assets.stages.deduplication.queries import Queries, quoted
from lc_assets.stages.links.link_tables import LINK_CLAIMS

BYTES_PER_CLAIM: Final = 4096
"""Memory set aside for a claim while its block is joined and sorted; some 300 are its own."""
LAST: Final = 2**63 - 1
"""Behind every place of appearance: a page stands behind what it points at."""


def numbered_rows(asked: Queries, paths: Sequence[Path]) -> str:
    """Tables' lines with column ``row_of_all``, which names file and line; as a table of a
    query.
    """
    files = ", ".join(f"({quoted(str(path))}, {number})" for number, path in enumerate(paths))
    asked.do(
        f"CREATE OR REPLACE TABLE files AS SELECT * FROM (VALUES {files}) AS v(filename, file)"
    )
    listed = ", ".join(quoted(str(path)) for path in paths)
    return f"""(SELECT lines.*, file::BIGINT << 32 | file_row_number AS row_of_all
        FROM read_parquet([{listed}], filename = true, file_row_number = true) AS lines JOIN files USING (filename))"""


def publish_claims(
    asked: Queries, links: Sequence[Path], out: Path, *, paper_exact: bool, memory: int
) -> int:
    """Publish the table of claims, by the turns of roots and by place; returns how many there are.

    Args:
        asked: holds ``tree``, ``pages``, ``facts`` and ``known``, see
            `lc_assets.stages.longpack.claiming`.
        links: the tables of links that the tree's ``row_of_all`` counts.
        out: the table.
        paper_exact: whether words are the links' own even where they say nothing.
        memory: bytes that a block may take.
    """
    asked.do(f"""CREATE OR REPLACE TABLE placed AS SELECT root, depth, page, parent, row_of_all,
        (row_number() OVER (PARTITION BY root ORDER BY list_append(path, {LAST})) - 1)::INTEGER AS place FROM tree""")
    asked.do(f"""CREATE OR REPLACE TABLE words AS SELECT row_of_all, keys, target_url, {"false" if paper_exact else "generic OR keys = ''"}
        AS says_nothing FROM {numbered_rows(asked, links)} SEMI JOIN placed USING (row_of_all)""")
    asked.do("""CREATE OR REPLACE TABLE names AS SELECT number, id, title, content, n_tokens FROM pages JOIN facts USING (number)
        SEMI JOIN (SELECT unnest([root, page, parent]) AS number FROM placed) USING (number)""")
    n_claims = 0
    with publish(out) as draft, pq.ParquetWriter(draft, LINK_CLAIMS, compression="zstd") as writer:
        for low, high in _blocks(asked, max(1, memory // BYTES_PER_CLAIM)):
            for batch in _block(asked, low, high):
                writer.write_batch(batch.cast(LINK_CLAIMS))
                n_claims += batch.num_rows
    return n_claims


def _blocks(asked: Queries, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of roots of about ``most`` claims each."""
    low, n_claims = 0, 0
    for line in asked.lines("SELECT root, count(*) AS n FROM placed GROUP BY root ORDER BY root"):
        if n_claims and n_claims + line["n"] > most:
            yield low, line["root"]
            low, n_claims = line["root"], 0
        n_claims += line["n"]
    if n_claims:
        yield low, LAST


def _block(asked: Queries, low: int, high: int) -> Iterator[pa.RecordBatch]:
    asked.do(
        f"CREATE OR REPLACE TABLE block_claims AS SELECT * FROM placed WHERE root >= {low} AND "
        f"root < {high}"
    )
    asked.do("""CREATE OR REPLACE TABLE block_names AS SELECT * FROM names
        SEMI JOIN (SELECT unnest([root, page, parent]) AS number FROM block_claims) USING (number)""")
    asked.do(
        "CREATE OR REPLACE TABLE block_words AS SELECT * FROM words SEMI JOIN block_claims USING "
        "(row_of_all)"
    )
    return asked.batches("""
        SELECT top.id AS root_id, place, depth, above.id AS parent_id, child.id AS child_id,
            CASE WHEN says_nothing THEN child.title ELSE keys END AS keys, target_url, child.content AS cluster, child.n_tokens,
            top.n_tokens AS root_tokens
        FROM block_claims JOIN block_names AS top ON top.number = root JOIN block_names AS above ON above.number = parent
        JOIN block_names AS child ON child.number = page JOIN block_words USING (row_of_all)
        ORDER BY root, place""")
