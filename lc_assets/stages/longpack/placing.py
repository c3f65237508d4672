"""From claims to a plan: the position of every text, before any text is read.

Parts are numbered in the order in which they are written: by the file and line of their root, then
by place. A *bucket* is some consecutive roots, about `BUCKET_TOKENS` of packed text, whose texts
are in memory together. A *group* is the files of roots that begin in one bucket.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets.builds.checks import FileTask
from lc_assets.errors import Mismatch
from lc_assets.lake.receipts import SCRATCH
from lc_assets.records import record
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.longpack.pages import numbered_rows

BUCKET_TOKENS = 8 << 20
"""About 40 MB of text, and as much again for the packed documents."""
MOST_BUCKETS = 256

PARTS = pa.schema(
    {
        "part": "int64",
        "file": "int32",
        "line": "int32",
        "bucket": "int32",
        "depth": "int32",
        "child_id": "string",
        "keys": "string",
        "cluster": "string",
        "n_tokens": "int64",
        "root_tokens": "int64",
    }
)
"""A group's parts, in their order; ``file`` and ``line`` are their root's."""

SENT = pa.schema({"line": "int64", "bucket": "int32", "part": "int64"})
"""Where the texts of a file are sent, by line."""


@record
class SendTask(FileTask):
    """Documents whose texts are sent to buckets, as the table ``sent`` (`SENT`) says."""

    step = "texts"

    @property
    def sent(self) -> Path:
        """Where its texts are sent."""
        return self.folder / SCRATCH / "sent" / f"{self.file:06d}.parquet"


@record
class Packing:
    """Documents to be packed.

    Attributes:
        claims: table of `lc_assets.stages.links.link_tables.LINK_CLAIMS`.
        documents: the tables of documents that the claims were made from.
        older: the same of older snapshots, which are read for children only.
        folder: output folder of packed documents and spans, a file of each per file of roots; its
            scratch folder holds intermediate files.
        paper_exact: see `lc_assets.packing.longpack.written`.
        bucket_tokens: of a bucket, about.
    """

    claims: Path
    documents: Sequence[Path]
    folder: Path
    paper_exact: bool
    older: Sequence[Path] = ()
    bucket_tokens: int = BUCKET_TOKENS

    @property
    def send(self) -> list[SendTask]:
        """A task for every file's texts."""
        return [
            SendTask(documents=path, folder=self.folder, file=n)
            for n, path in enumerate([*self.documents, *self.older])
        ]

    def parts(self, group: int) -> Path:
        """Table of a group's `PARTS`."""
        return self.folder / SCRATCH / "parts" / f"{group:06d}.parquet"


def plan_parts(packing: Packing, database: Queries) -> list[list[int]]:
    """Write every group's parts and the destinations of every file's texts; returns the file
    numbers of each group.

    Raises:
        Mismatch: when a claimed document is missing.
    """
    _place(packing, database)
    found = database.connection.execute("SELECT file, tokens FROM roots ORDER BY root").fetchnumpy()
    files, tokens = (np.asarray(found[name]).astype(np.int64) for name in ("file", "tokens"))
    most = max(packing.bucket_tokens, -(-int(tokens.sum()) // MOST_BUCKETS))
    ends = np.cumsum(tokens)
    buckets = (ends - tokens) // most
    starts = np.searchsorted(files, np.arange(len(packing.documents)))
    # The bucket in which each file begins; files without roots belong to the one before.
    begins = np.concatenate([[0], ends])[starts] // most
    _, groups = np.unique(begins, return_inverse=True)
    table = pa.table(
        [np.arange(len(files)), buckets, groups[files]], names=["root", "bucket", "group_number"]
    )
    database.connection.register("divided", table)
    database.publish_parts(
        f"SELECT group_number, {', '.join(PARTS.names)} FROM placed JOIN divided USING (root) "
        "ORDER BY part",
        [packing.parts(group) for group in range(groups.max() + 1)],
        PARTS,
    )
    database.publish_parts(
        "SELECT child_file, child_line AS line, bucket, part FROM placed JOIN divided USING (root) "
        "ORDER BY child_file, child_line, part",
        [task.sent for task in packing.send],
        SENT,
    )
    return [np.flatnonzero(groups == group).tolist() for group in range(groups.max() + 1)]


def _place(packing: Packing, database: Queries) -> None:
    """Table ``placed``: claims with the positions of root and child; ``roots``: a line per root,
    numbered in order.
    """
    claims = parquet([packing.claims])
    named = f"SELECT root_id AS id FROM {claims} UNION SELECT child_id FROM {claims}"
    rows = numbered_rows(database, [*packing.documents, *packing.older])
    database.do(f"""CREATE OR REPLACE TABLE places AS
        SELECT id, (row_of_all >> 32)::INTEGER AS file, (row_of_all & {2**32 - 1})::INTEGER AS line
        FROM {rows} SEMI JOIN ({named}) USING (id)""")
    database.do(f"""CREATE OR REPLACE TABLE roots AS
        SELECT (row_number() OVER () - 1)::BIGINT AS root, * FROM (
        SELECT root_id, file, line, (sum(n_tokens) + any_value(root_tokens))::BIGINT AS tokens
        FROM {claims} JOIN places ON id = root_id GROUP BY root_id, file, line
            ORDER BY file, line)""")
    database.do(f"""CREATE OR REPLACE TABLE placed AS
        SELECT (row_number() OVER () - 1)::BIGINT AS part, * FROM (
        SELECT root, roots.file, roots.line, depth, child_id, places.file AS child_file,
        places.line AS child_line, keys, cluster,
            n_tokens, root_tokens
        FROM {claims} AS claims JOIN roots USING (root_id) JOIN places ON places.id = child_id
            ORDER BY root, place)""")
    n_claims, n_placed = (
        database.number(f"SELECT count(*) FROM {table}") for table in (claims, "placed")
    )
    if n_placed != n_claims:
        raise Mismatch(
            f"{packing.claims}: {n_claims:,} claims, {n_placed:,} of documents that are there; "
            "make the claims again"
        )
