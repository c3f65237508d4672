"""Claims that hold of every stage that sorts documents: what is on disk adds up, fits its schema,
names each once.

A stage that keeps and drops documents writes ``{shard}.documents.parquet`` and
``{shard}.dropped.parquet``.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets.build.schemas import complaints_about
from lc_assets.build.sharding import SHARDS_FILE, read_records
from lc_assets.build.stage import (
    Check,
    CheckInput,
    CheckResult,
)
from lc_assets.build.tables import DROPPED, count_lines, read_schema, read_table
from lc_assets.counts import Counts
from lc_assets.publishing import finished

DOCUMENTS_SUFFIX = ".documents.parquet"
DROPPED_SUFFIX = ".dropped.parquet"


def documents_files(folder: Path) -> list[Path]:
    """The tables of kept documents of a version, sorted by shard."""
    return finished(folder.glob(f"*{DOCUMENTS_SUFFIX}"))


def dropped_files(folder: Path) -> list[Path]:
    """The tables of dropped documents of a version, sorted by shard."""
    return finished(folder.glob(f"*{DROPPED_SUFFIX}"))


def evenly_spaced(n_items: int, most: int) -> list[int]:
    """Indices of at most ``most`` of ``n_items`` items, first and last among them.

    >>> evenly_spaced(9, 3), evenly_spaced(2, 3), evenly_spaced(0, 3)
    ([0, 4, 8], [0, 1], [])
    """
    return (
        sorted({round(step) for step in np.linspace(0, n_items - 1, min(most, n_items))})
        if n_items
        else []
    )


def by_chunk(rows: Iterable[int], chunk_rows: int) -> list[list[int]]:
    """Ascending rows grouped by the chunk that holds them, so that each chunk need be decoded only
    once.

    >>> by_chunk([0, 3, 4, 9], 4)
    [[0, 3], [4], [9]]
    """
    return [list(group) for _, group in itertools.groupby(rows, key=lambda row: row // chunk_rows)]


def counts_add_up(check_input: CheckInput) -> CheckResult:
    """Documents in = kept + dropped: the tables on disk give the counts of the receipt, reason by
    reason.
    """
    kept = sum(count_lines(path) for path in documents_files(check_input.folder))
    dropped = Counter(
        reason
        for path in dropped_files(check_input.folder)
        for reason in read_table(path, ["reason"])["reason"].to_pylist()
    )
    counts = check_input.counts
    agrees = kept == counts.kept and dict(dropped) == counts.dropped
    found = f"{kept:,} kept + {dropped.total():,} dropped"
    return CheckResult(
        check="counts_add_up",
        passed=agrees,
        message=f"{counts.seen:,} in = {found}"
        if agrees
        else f"tables hold {found}, the receipt says {counts}",
        values={"documents in": counts.seen, "kept": kept, "dropped": dropped.total()},
    )


def reads_all_upstream_documents(*stages: str) -> Check:
    """Make the claim that a stage saw exactly the documents that ``stages`` kept, those of them
    that it was made from.
    """

    def reads_all_upstream_documents(check_input: CheckInput) -> CheckResult:
        """The documents that came in are as many as the stage before kept."""
        read = [
            stage
            for stage in stages
            if len(stages) == 1
            or any(name.startswith(f"{stage}/") for name in check_input.fingerprint.inputs)
        ]
        before = sum(check_input.only_input(stage).receipt.counts.kept for stage in read)
        return CheckResult(
            check="reads_all_upstream_documents",
            passed=before == check_input.counts.seen,
            message=f"{' and '.join(read)} kept {before:,} documents, {check_input.counts.seen:,} "
            "came in",
            values={"kept before": before, "documents in": check_input.counts.seen},
        )

    return reads_all_upstream_documents


def tables_fit(schema: pa.Schema | None = None) -> Check:
    """Make the claim that all tables fit their schemas; without one, the kept tables' first file
    sets the columns.
    """

    def the_tables_fit_their_schemas(check_input: CheckInput) -> CheckResult:
        """Every table fits its pandera schema: columns, types, ids' form, no nulls where none may
        be, ids unique per shard.
        """
        kept, dropped = documents_files(check_input.folder), dropped_files(check_input.folder)
        columns = schema or (read_schema(kept[0]) if kept else pa.schema([]))
        wrong = complaints_about(kept, columns, unique="id") + complaints_about(
            dropped, DROPPED, unique="id"
        )
        return CheckResult(
            check="the_tables_fit_their_schemas",
            passed=not wrong,
            message=f"{len(kept) + len(dropped):,} tables fit"
            if not wrong
            else "; ".join(wrong[:5]),
            values={"tables": len(kept) + len(dropped), "complaints": len(wrong)},
        )

    return the_tables_fit_their_schemas


def shard_counts_match(check_input: CheckInput) -> CheckResult:
    """What ``shards.jsonl`` says of the shards adds up to the counts, and each shard's files are
    there; names what is not so.
    """
    path = check_input.folder / SHARDS_FILE
    if not path.is_file():
        n_shards = check_input.counts.extra.get("shards", 0)
        words = (
            f"nothing is noted of {n_shards:,} shards, so no newer version can take one over"
            if n_shards
            else "there are no shards"
        )
        return CheckResult(
            check="shard_counts_match", passed=not n_shards, message=words, severity="warning"
        )
    records = read_records(path)
    lost = [
        fact.path
        for record in records
        for fact in record.files
        if _n_bytes(check_input.folder / fact.path) != fact.n_bytes
    ]
    counted = Counts.total([record.counts for record in records])
    agrees = counted == check_input.counts
    return CheckResult(
        check="shard_counts_match",
        passed=agrees and not lost,
        message=f"{len(records):,} shards, {sum(len(record.files) for record in records):,} files"
        + (
            ""
            if agrees
            else (
                f"; together {counted.kept:,} of {counted.seen:,} kept, the receipt says "
                f"{check_input.counts}"
            )
        )
        + (f"; not as noted: {', '.join(lost[:3])}" if lost else ""),
        values={"shards": len(records)},
    )


def _n_bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


def every_document_is_named_once(check_input: CheckInput) -> CheckResult:
    """No document id stands twice, neither among the kept nor among the dropped nor in both."""
    n_ids = n_repeated = 0
    for ids in _ids_by_shard(check_input.folder):
        n_ids += len(ids)
        n_repeated += len(ids) - len(set(ids))
    return CheckResult(
        check="every_document_is_named_once",
        passed=n_repeated == 0,
        message=f"{n_ids:,} ids, {n_repeated:,} repeated",
        values={"ids": n_ids, "repeated": n_repeated},
    )


def _ids_by_shard(folder: Path) -> Iterator[list[str]]:
    """Ids of each shard: an id begins with its shard's tag, so no two shards can share one."""
    for dropped in dropped_files(folder):
        kept = dropped.with_name(dropped.name.removesuffix(DROPPED_SUFFIX) + DOCUMENTS_SUFFIX)
        yield [
            name for path in (kept, dropped) for name in read_table(path, ["id"])["id"].to_pylist()
        ]
