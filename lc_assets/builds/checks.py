"""Checks of all stages that keep and drop documents: counts add up, tables fit their schemas, ids
are unique.

A stage that keeps and drops documents writes ``{shard}.documents.parquet`` and
``{shard}.dropped.parquet``.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.sharding import SHARDS_FILE, read_records
from lc_assets.builds.stage import (
    Check,
    CheckInput,
    CheckResult,
)
from lc_assets.builds.table_checks import checked_columns, complaints_about, misfits
from lc_assets.builds.tables import DROPPED
from lc_assets.counts import Counts
from lc_assets.lake.receipts import SCRATCH
from lc_assets.publishing import finished
from lc_assets.records import record
from lc_assets.vocabulary import parse_document_id

DOCUMENTS_SUFFIX = ".documents.parquet"
DROPPED_SUFFIX = ".dropped.parquet"
JSON_SUFFIX = ".jsonl.gz"
TABLE_SUFFIX = ".texts.parquet"
REST_SUFFIX = ".rest.parquet"
SPANS_SUFFIX = ".spans.parquet"


@record
class DocumentsTask:
    """One shard of filtered documents, ``documents``, of which a stage writes into ``folder``."""

    documents: Path
    folder: Path

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


@record
class FileTask(DocumentsTask):
    """One file of documents, number ``file``, of which a step writes a table into the scratch
    folder of ``folder``.
    """

    step: ClassVar[str]

    file: int

    @property
    def name(self) -> str:
        """A name that is unique among a version's tasks."""
        return f"{self.step}-{self.file:06d}"

    @property
    def path(self) -> Path:
        """Path of its table."""
        return self.folder / SCRATCH / self.step / f"{self.file:06d}.parquet"


def documents_files(folder: Path) -> list[Path]:
    """The tables of kept documents of a version, sorted by shard."""
    return finished(folder.glob(f"*{DOCUMENTS_SUFFIX}"))


def dropped_files(folder: Path) -> list[Path]:
    """The tables of dropped documents of a version, sorted by shard."""
    return finished(folder.glob(f"*{DROPPED_SUFFIX}"))


def files_holding(ids: Iterable[str], files: Iterable[Path]) -> list[Path]:
    """Those tables of shards' documents that may hold some documents."""
    shards = {parse_document_id(name)[0].name for name in ids}
    return [path for path in files if path.name.removesuffix(DOCUMENTS_SUFFIX) in shards]


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


def an_eighth(columns: range, chunk_tokens: int, number: int) -> range:
    """One eighth of an array's columns, in whole chunks; ``number`` says which, modulo their count.

    A check of copied rows compares only this: a row of another document, or one that begins
    elsewhere, differs in every eighth. An error confined to the other columns of a file is missed;
    ``lc audit`` compares all columns, and checksums find damage after writing.

    >>> an_eighth(range(65_536), 1024, 9), an_eighth(range(40), 64, 9)
    (range(8192, 16384), range(0, 40))
    """
    step = -(-len(columns) // (8 * chunk_tokens)) * chunk_tokens
    start = columns.start + number % -(-len(columns) // step) * step
    return range(start, min(start + step, columns.stop))


def first_of_each(counts: Sequence[int], most: int) -> list[int]:
    """Indices of at most ``most`` items: the first ones of evenly spaced parts, which have
    ``counts`` items each.

    >>> first_of_each([2, 0, 9], 3), first_of_each([5, 5, 5], 2), first_of_each([], 2)
    ([0, 2, 3], [0, 10], [])
    """
    begins, held = np.cumsum([0, *counts]).tolist(), np.flatnonzero(counts).tolist()
    chosen = [held[at] for at in evenly_spaced(len(held), most)]
    each = -(-most // max(1, len(chosen)))
    found = [begins[at] + n for at in chosen for n in range(min(each, counts[at]))]
    return [found[at] for at in evenly_spaced(len(found), most)]


def by_chunk(rows: Iterable[int], chunk_rows: int) -> list[list[int]]:
    """Ascending rows grouped by chunk, so that each chunk is decoded only once.

    >>> by_chunk([0, 3, 4, 9], 4)
    [[0, 3], [4], [9]]
    """
    return [list(group) for _, group in itertools.groupby(rows, key=lambda row: row // chunk_rows)]


@record
class ShardTables:
    """What checks need to know of one shard's tables, of kept and of dropped documents.

    Attributes:
        names: of the tables that there are.
        n_kept: kept documents.
        reasons: dropped ones by their first reason.
        n_repeated: ids that occur before among both.
        schemas: one per table.
        complaints: about the values of each table.
    """

    names: tuple[str, ...]
    n_kept: int
    reasons: Counter[str]
    n_repeated: int
    schemas: tuple[pa.Schema, ...]
    complaints: tuple[list[str], ...]


def shard_tables(check_input: CheckInput) -> dict[str, ShardTables]:
    """What checks need to know of the tables of each shard, by its name; they are read once for all
    checks, by workers.
    """
    if not check_input.tables:
        paths = [*documents_files(check_input.folder), *dropped_files(check_input.folder)]
        of_shard: dict[str, list[Path]] = {}
        for path in paths:
            of_shard.setdefault(path.name.rsplit(".", 2)[0], []).append(path)
        found = by_workers(check_input, _tables_of_shard, list(of_shard.values()))
        check_input.tables.update(zip(of_shard, found, strict=True))
    return check_input.tables


def _tables_of_shard(paths: Sequence[Path]) -> ShardTables:
    ids, n_kept, reasons = list[str | None](), 0, Counter[str]()
    schemas, complaints = list[pa.Schema](), list[list[str]]()
    for path in paths:
        is_kept = path.name.endswith(DOCUMENTS_SUFFIX)
        table, schema = checked_columns(path, ["id"] if is_kept else ["id", "reason"])
        ids += table["id"].to_pylist()
        schemas.append(_one(schema))
        complaints.append(complaints_about(path.name, table, "id"))
        if is_kept:
            n_kept = len(table)
        else:
            reasons.update(table["reason"].to_pylist())
    return ShardTables(
        names=tuple(path.name for path in paths),
        n_kept=n_kept,
        reasons=reasons,
        n_repeated=len(ids) - len(set(ids)),
        schemas=tuple(schemas),
        complaints=tuple(complaints),
    )


@lru_cache(maxsize=8)
def _one(schema: pa.Schema) -> pa.Schema:
    """One object for equal schemas, which is sent to the main process once for several shards."""
    return schema


def counts_add_up(check_input: CheckInput) -> CheckResult:
    """Documents in = kept + dropped: the tables match the receipt's counts, by reason."""
    found = shard_tables(check_input).values()
    kept, dropped, counts = sum(shard.n_kept for shard in found), Counter[str](), check_input.counts
    for shard in found:
        dropped.update(shard.reasons)
    agrees = kept == counts.kept and dict(dropped) == counts.dropped
    words = f"{kept:,} kept + {dropped.total():,} dropped"
    return CheckResult(
        passed=agrees,
        message=f"{counts.seen:,} in = {words}"
        if agrees
        else f"tables hold {words}, the receipt says {counts}",
        values={"documents in": counts.seen, "kept": kept, "dropped": dropped.total()},
    )


def reads_all_upstream_documents(*stages: str) -> Check:
    """A check that a stage saw exactly the documents that its inputs among ``stages`` kept."""

    def reads_all_upstream_documents(check_input: CheckInput) -> CheckResult:
        """The stage read as many documents as the previous stage kept."""
        read = [
            stage
            for stage in stages
            if len(stages) == 1
            or any(name.startswith(f"{stage}/") for name in check_input.fingerprint.inputs)
        ]
        before = sum(check_input.only_input(stage).counts.kept for stage in read)
        return CheckResult(
            passed=before == check_input.counts.seen,
            message=f"{' and '.join(read)} kept {before:,} documents, {check_input.counts.seen:,} "
            "came in",
            values={"kept before": before, "documents in": check_input.counts.seen},
        )

    return reads_all_upstream_documents


def tables_fit(schema: pa.Schema | None = None) -> Check:
    """A check that all tables fit a schema, by default that of the first table."""

    def the_tables_fit_their_schemas(check_input: CheckInput) -> CheckResult:
        """Every table fits its pandera schema: columns, types, form of ids, nulls, ids unique per
        shard.
        """
        declared, wrong, n_tables = schema, list[str](), 0
        for shard in shard_tables(check_input).values():
            tables = zip(shard.names, shard.schemas, shard.complaints, strict=True)
            for name, columns, complaints in tables:
                is_kept = name.endswith(DOCUMENTS_SUFFIX)
                if is_kept and declared is None:
                    declared = columns
                wrong += misfits(name, columns, declared if is_kept else DROPPED) or complaints
            n_tables += len(shard.names)
        return CheckResult(
            passed=not wrong,
            message=f"{n_tables:,} tables fit" if not wrong else "; ".join(wrong[:5]),
            values={"tables": n_tables, "complaints": len(wrong)},
        )

    return the_tables_fit_their_schemas


def shard_counts_match(check_input: CheckInput) -> CheckResult:
    """The counts in ``shards.jsonl`` add up to the receipt's, and each shard's files exist."""
    path = check_input.folder / SHARDS_FILE
    if not path.is_file():
        n_shards = check_input.counts.extra.get("shards", 0)
        words = (
            f"nothing is noted of {n_shards:,} shards, so no newer version can take one over"
            if n_shards
            else "there are no shards"
        )
        return CheckResult(passed=not n_shards, message=words, severity="warning")
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
    """No document id occurs twice among kept and dropped documents. An id begins with its shard's
    tag, so shards are checked one by one.
    """
    found = shard_tables(check_input).values()
    n_ids = sum(shard.n_kept + shard.reasons.total() for shard in found)
    n_repeated = sum(shard.n_repeated for shard in found)
    return CheckResult(
        passed=n_repeated == 0,
        message=f"{n_ids:,} ids, {n_repeated:,} repeated",
        values={"ids": n_ids, "repeated": n_repeated},
    )
