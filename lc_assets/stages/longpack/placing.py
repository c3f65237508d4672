"""From claims to a plan: which text goes where, before any text is read.

Parts are numbered in the order in which they are written: by the file and line of their root, then
by place. A *group* is some files of roots, about `GROUP_TOKENS` of packed text; a *slice* is some
of its roots, about `SLICE_TOKENS`, whose texts are in memory together.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.errors import Mismatch
from lc_assets.formats.arrays.npy import npy_bytes
from lc_assets.publishing import publish_bytes
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted

GROUP_TOKENS: Final = 64 << 20
SLICE_TOKENS: Final = 8 << 20
"""Some 40 MB of text, and as much again for what is made of it."""
MOST_GROUPS: Final = 512

PARTS: Final = pa.schema(
    [
        ("part", pa.int64()),
        ("file", pa.int32()),
        ("line", pa.int32()),
        ("slice", pa.int32()),
        ("depth", pa.int32()),
        ("child_id", pa.string()),
        ("keys", pa.string()),
        ("cluster", pa.string()),
        ("n_tokens", pa.int64()),
        ("root_tokens", pa.int64()),
    ]
)
"""A group's parts, in their order; ``file`` and ``line`` are their root's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where a plan is written down, and how much goes together.

    Attributes:
        claims: table of `lc_assets.stages.links.link_tables.LINK_CLAIMS`.
        documents: the tables of documents that the claims were made of.
        work: folder of the plan.
        group_tokens: of a group, about.
        slice_tokens: of a slice, about.
    """

    claims: Path
    documents: Sequence[Path]
    work: Path
    group_tokens: int = GROUP_TOKENS
    slice_tokens: int = SLICE_TOKENS

    def parts(self, group: int) -> Path:
        """Where a group's parts are written down."""
        return self.work / "parts" / f"{group:06d}.parquet"

    def wanted(self, file: int) -> Path:
        """Where stands what a file is asked for: lines, groups and parts, ``(3, n)`` int64, by
        line.
        """
        return self.work / "wanted" / f"{file:06d}.npy"


def plan_parts(plan: Plan, asked: Queries) -> list[list[int]]:
    """Write down every group's parts and what every file is asked for; returns the numbers of the
    files of each group.

    Raises:
        Mismatch: when a document that is claimed is not there.
    """
    _place(plan, asked)
    found = asked.connection.execute("SELECT file, tokens FROM roots ORDER BY root").fetchnumpy()
    files, tokens = (np.asarray(found[name]).astype(np.int64) for name in ("file", "tokens"))
    groups = file_groups(
        np.bincount(files, weights=tokens, minlength=len(plan.documents)).astype(np.int64).tolist(),
        plan.group_tokens,
    )
    group_of_file = np.repeat(np.arange(len(groups)), [len(members) for members in groups])
    of_root = group_of_file[files]
    table = pa.table(
        [np.arange(len(files)), of_root, slices_of(of_root, tokens, plan.slice_tokens)],
        names=["root", "bucket", "slice"],
    )
    asked.connection.register("sliced", table)
    columns = ", ".join(PARTS.names)
    for group in range(len(groups)):
        asked.publish(
            f"SELECT {columns} FROM placed JOIN sliced USING (root) WHERE bucket = {group} ORDER "
            "BY part",
            plan.parts(group),
            PARTS,
        )
    query = (
        "SELECT child_file AS file, child_line, bucket, part FROM placed JOIN sliced USING "
        "(root) ORDER BY child_file, child_line, part"
    )
    for number, wanted in by_file(
        asked, query, ("child_line", "bucket", "part"), len(plan.documents)
    ):
        publish_bytes(plan.wanted(number), npy_bytes(wanted))
    return groups


def _place(plan: Plan, asked: Queries) -> None:
    """Table ``placed``: claims with the places of root and child; ``roots``: a line per root,
    numbered in their order.
    """
    claims = parquet([plan.claims])
    files = ", ".join(
        f"({quoted(str(path))}, {number})" for number, path in enumerate(plan.documents)
    )
    asked.do(
        f"CREATE OR REPLACE TABLE files AS SELECT * FROM (VALUES {files}) AS v(filename, file)"
    )
    named = f"SELECT root_id AS id FROM {claims} UNION SELECT child_id FROM {claims}"
    asked.do(f"""CREATE OR REPLACE TABLE places AS SELECT id, file::INTEGER AS file, file_row_number::INTEGER AS line
        FROM read_parquet([{", ".join(quoted(str(path)) for path in plan.documents)}], filename = true, file_row_number = true)
        SEMI JOIN ({named}) USING (id) JOIN files USING (filename)""")
    asked.do(f"""CREATE OR REPLACE TABLE roots AS SELECT (row_number() OVER () - 1)::BIGINT AS root, * FROM (
        SELECT root_id, file, line, (sum(n_tokens) + any_value(root_tokens))::BIGINT AS tokens
        FROM {claims} JOIN places ON id = root_id GROUP BY root_id, file, line ORDER BY file, line)""")
    asked.do(f"""CREATE OR REPLACE TABLE placed AS SELECT (row_number() OVER () - 1)::BIGINT AS part, * FROM (
        SELECT root, roots.file, roots.line, depth, child_id, places.file AS child_file, places.line AS child_line, keys, cluster,
            n_tokens, root_tokens
        FROM {claims} AS claims JOIN roots USING (root_id) JOIN places ON places.id = child_id ORDER BY root, place)""")
    n_claims, n_placed = (
        asked.number(f"SELECT count(*) FROM {table}") for table in (claims, "placed")
    )
    if n_placed != n_claims:
        raise Mismatch(
            f"{plan.claims}: {n_claims:,} claims, {n_placed:,} of documents that are there; make "
            "the claims again"
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


def by_file(
    asked: Queries, query: str, columns: Sequence[str], n_files: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """What a query says of each file, ``(columns, n)`` int64, a file at a time; also of those that
    it does not mention.

    The query's lines come by their column ``file``.
    """
    waiting: list[NDArray[Any]] = []
    done = 0
    for batch in asked.batches(query):
        files = batch["file"].to_numpy()
        values = np.stack([batch[name].to_numpy().astype(np.int64) for name in columns])
        for file in np.unique(files).tolist():
            while done < file:
                yield (
                    done,
                    np.concatenate([np.zeros((len(columns), 0), np.int64), *waiting], axis=1),
                )
                done, waiting = done + 1, []
            waiting.append(values[:, files == file])
    for file in range(done, n_files):
        yield file, np.concatenate([np.zeros((len(columns), 0), np.int64), *waiting], axis=1)
        waiting = []
