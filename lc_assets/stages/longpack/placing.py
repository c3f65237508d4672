"""From claims to a plan: the position of every text, before any text is read.

Parts are numbered in the order in which they are written: by the file and line of their root, then
by place. A *group* is some files of roots, about `GROUP_TOKENS` of packed text; a *slice* is some
of its roots, about `SLICE_TOKENS`, whose texts are in memory together.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.errors import Mismatch
from lc_assets.lake.receipts import SCRATCH
from lc_assets.stages.deduplication.queries import MEMORY, Queries, parquet
from lc_assets.stages.longpack.pages import Run, numbered_rows, publish_by_file

GROUP_TOKENS: Final = 64 << 20
SLICE_TOKENS: Final = 8 << 20
"""About 40 MB of text, and as much again for the packed documents."""
MOST_GROUPS: Final = 512

PARTS: Final = pa.schema(
    {
        "part": "int64",
        "file": "int32",
        "line": "int32",
        "slice": "int32",
        "depth": "int32",
        "child_id": "string",
        "keys": "string",
        "cluster": "string",
        "n_tokens": "int64",
        "root_tokens": "int64",
    }
)
"""A group's parts, in their order; ``file`` and ``line`` are their root's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Documents to be packed.

    Attributes:
        claims: table of `lc_assets.stages.links.link_tables.LINK_CLAIMS`.
        documents: the tables of documents that the claims were made from.
        folder: output folder of packed documents and spans, a file of each per file of roots; its
            scratch folder holds intermediate files.
        paper_exact: see `lc_assets.packing.longpack.written`.
        run: runs the tasks per file.
        removed: ids of excluded documents, by shard; if given, the documents that are in no packed
            one are written too.
        group_tokens: of a group, about.
        slice_tokens: of a slice, about.
        memory: bytes that tables may take; more goes to disk.
    """

    claims: Path
    documents: Sequence[Path]
    folder: Path
    paper_exact: bool
    run: Run
    removed: Mapping[str, Collection[str]] | None = None
    group_tokens: int = GROUP_TOKENS
    slice_tokens: int = SLICE_TOKENS
    memory: int = MEMORY

    @property
    def work(self) -> Path:
        """Folder of the plan and of the texts in transit."""
        return self.folder / SCRATCH

    def parts(self, group: int) -> Path:
        """Table of a group's `PARTS`."""
        return self.work / "parts" / f"{group:06d}.parquet"

    def wanted(self, file: int) -> Path:
        """Destinations of a file's texts: lines, groups and parts, ``(3, n)`` int64, by line."""
        return self.work / "wanted" / f"{file:06d}.npy"


def plan_parts(packing: Packing, asked: Queries) -> list[list[int]]:
    """Write every group's parts and the texts needed from every file; returns the file numbers of
    each group.

    Raises:
        Mismatch: when a claimed document is missing.
    """
    _place(packing, asked)
    found = asked.connection.execute("SELECT file, tokens FROM roots ORDER BY root").fetchnumpy()
    files, tokens = (np.asarray(found[name]).astype(np.int64) for name in ("file", "tokens"))
    groups = file_groups(
        np.bincount(files, weights=tokens, minlength=len(packing.documents))
        .astype(np.int64)
        .tolist(),
        packing.group_tokens,
    )
    group_of_file = np.repeat(np.arange(len(groups)), [len(members) for members in groups])
    of_root = group_of_file[files]
    table = pa.table(
        [np.arange(len(files)), of_root, slices_of(of_root, tokens, packing.slice_tokens)],
        names=["root", "bucket", "slice"],
    )
    asked.connection.register("sliced", table)
    columns = ", ".join(PARTS.names)
    for group in range(len(groups)):
        asked.publish(
            f"SELECT {columns} FROM placed JOIN sliced USING (root) WHERE bucket = {group} ORDER "
            "BY part",
            packing.parts(group),
            PARTS,
        )
    query = (
        "SELECT child_file AS file, child_line, bucket, part FROM placed JOIN sliced USING "
        "(root) ORDER BY child_file, child_line, part"
    )
    publish_by_file(
        asked,
        query,
        ("child_line", "bucket", "part"),
        [packing.wanted(number) for number in range(len(packing.documents))],
    )
    return groups


def _place(packing: Packing, asked: Queries) -> None:
    """Table ``placed``: claims with the positions of root and child; ``roots``: a line per root,
    numbered in order.
    """
    claims = parquet([packing.claims])
    named = f"SELECT root_id AS id FROM {claims} UNION SELECT child_id FROM {claims}"
    asked.do(f"""CREATE OR REPLACE TABLE places AS SELECT id, (row_of_all >> 32)::INTEGER AS file,
        (row_of_all & {2**32 - 1})::INTEGER AS line
        FROM {numbered_rows(asked, packing.documents)} SEMI JOIN ({named}) USING (id)""")
    asked.do(f"""CREATE OR REPLACE TABLE roots AS
        SELECT (row_number() OVER () - 1)::BIGINT AS root, * FROM (
        SELECT root_id, file, line, (sum(n_tokens) + any_value(root_tokens))::BIGINT AS tokens
        FROM {claims} JOIN places ON id = root_id GROUP BY root_id, file, line
            ORDER BY file, line)""")
    asked.do(f"""CREATE OR REPLACE TABLE placed AS
        SELECT (row_number() OVER () - 1)::BIGINT AS part, * FROM (
        SELECT root, roots.file, roots.line, depth, child_id, places.file AS child_file,
        places.line AS child_line, keys, cluster,
            n_tokens, root_tokens
        FROM {claims} AS claims JOIN roots USING (root_id) JOIN places ON places.id = child_id
            ORDER BY root, place)""")
    n_claims, n_placed = (
        asked.number(f"SELECT count(*) FROM {table}") for table in (claims, "placed")
    )
    if n_placed != n_claims:
        raise Mismatch(
            f"{packing.claims}: {n_claims:,} claims, {n_placed:,} of documents that are there; "
            "make the claims again"
        )


def file_groups(tokens: Sequence[int], group_tokens: int) -> list[list[int]]:
    """Numbers of the files of each group: files in their order, a group as long as it may be, at
    least one file each.

    >>> file_groups([5, 5, 0, 30, 1], 10)
    [[0, 1, 2], [3], [4]]
    """
    most = max(group_tokens, -(-sum(tokens) // MOST_GROUPS))
    groups: list[list[int]] = []
    room = 0
    for file, n_tokens in enumerate(tokens):
        if not groups or n_tokens > room:
            groups.append([])
            room = most
        groups[-1].append(file)
        room -= n_tokens
    return groups


def slices_of(
    groups: NDArray[np.int64], tokens: NDArray[np.int64], slice_tokens: int
) -> NDArray[np.int32]:
    """Number of the slice of each root, counted from 0 in its group.

    >>> slices_of(np.array([0, 0, 0, 1]), np.array([8, 8, 8, 8]), 10)
    array([0, 0, 1, 0], dtype=int32)
    """
    before = np.cumsum(tokens) - tokens
    _, starts, members = np.unique(groups, return_index=True, return_inverse=True)
    return ((before - before[starts][members]) // slice_tokens).astype(np.int32)
