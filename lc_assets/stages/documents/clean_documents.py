"""`clean_documents`: the documents of a partition that no stage removed, as a corpus of their own.

Published per shard are the documents, as compressed JSON lines or as Parquet, a table of who they
are, and a table of the others with the reason. The stage is built on request: tokens and rows are
made without it. Commands that end with documents (`lc dedup`, `lc decontaminate`) end here, and a
source of files can read what it wrote.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from lc_assets.counts import Counts
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.gzipping import gzipped
from lc_assets.lake.staging import once
from lc_assets.publishing import publish
from lc_assets.stages.building import (
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    build,
    run_shards,
)
from lc_assets.stages.claims import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    all_that_was_kept_came_in,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    the_shards_add_up,
)
from lc_assets.stages.deduplication.removed_documents import (
    TABLE as REMOVALS_TABLE,
)
from lc_assets.stages.deduplication.removed_documents import remaining_read, removed_by_shard
from lc_assets.stages.sharding import Sharding
from lc_assets.stages.tables import (
    DROPPED,
    FILTERED,
    IDENTITY,
    TableWriter,
    read_lines,
    read_schema,
    read_table,
)
from lc_assets.vocabulary import SnapshotId

JSON_SUFFIX: Final = ".jsonl.gz"
TABLE_SUFFIX: Final = ".texts.parquet"
CLEAN: Final = pa.schema([*IDENTITY, ("date_download", pa.string()), ("n_chars", pa.int64())])
"""Who the published documents are, in the order of their file."""
_TEXT: Final = "raw_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """One shard of filtered documents, to be written into ``folder`` without those ``removed``,
    reason by id.
    """

    documents: Path
    folder: Path
    file_format: str
    removed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


def write_clean_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the documents of one partition that no stage removed.

    Raises:
        NotPublished: when the filtered documents or the removals are not published.
    """

    def fill(staging: StagingFolder) -> Counts:
        removed = removed_by_shard(
            staging.inputs[f"removed_documents/{snapshot}"].only(REMOVALS_TABLE)
        )
        tasks = [
            CleanTask(
                documents=path,
                folder=staging.folder,
                file_format=context.recipe.clean_documents.file_format,
                removed=removed.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            )
            for path in documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder)
        ]
        return run_shards(context, staging, clean_shard, tasks, what=f"write {snapshot}")

    return build(context, STAGE, snapshot, fill)


@once
def clean_shard(task: CleanTask) -> Counts:
    """Write one shard."""
    dropped, n_kept, n_chars = Counter[str](), 0, 0
    with contextlib.ExitStack() as stack:
        kept_table, dropped_table = (
            stack.enter_context(
                contextlib.closing(
                    TableWriter(
                        stack.enter_context(publish(task.folder / f"{task.name}{suffix}")), schema
                    )
                )
            )
            for suffix, schema in ((DOCUMENTS_SUFFIX, CLEAN), (DROPPED_SUFFIX, DROPPED))
        )
        write = stack.enter_context(_document_writer(task))
        for line in read_lines(task.documents, batch_lines=16):
            reason = task.removed.get(line["id"])
            if reason is not None:
                dropped[reason] += 1
                dropped_table.add(_dropped_line(line, reason))
                continue
            write(line)
            n_kept, n_chars = n_kept + 1, n_chars + len(line[_TEXT])
            who = {name: line[name] for name in CLEAN.names if name != "n_chars"}
            kept_table.add(who | {"n_chars": len(line[_TEXT])})
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra={"characters": n_chars},
    )


@contextlib.contextmanager
def _document_writer(task: CleanTask) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Open the file of a shard's documents; yield what writes one line of the filtered table."""
    with contextlib.ExitStack() as stack:
        if task.file_format == "parquet":
            staging = stack.enter_context(publish(task.folder / f"{task.name}{TABLE_SUFFIX}"))
            schema = read_schema(task.documents)
            table = stack.enter_context(contextlib.closing(TableWriter(staging, schema)))
            yield lambda line: table.add(line, n_bytes=len(line[_TEXT]))
        else:
            staging = stack.enter_context(publish(task.folder / f"{task.name}{JSON_SUFFIX}"))
            stream = stack.enter_context(gzipped(staging))
            yield lambda line: stream.write(_json_line(line))


def _json_line(line: dict[str, Any]) -> bytes:
    fields = {name: line[name] for name in FILTERED.names if line[name] not in (None, "")}
    return msgspec.json.encode(fields | {_TEXT: line[_TEXT]}) + b"\n"


def _dropped_line(line: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": line["id"],
        "url": line["url"],
        "reason": reason,
        "value": None,
        "reasons": [reason],
        "values": [None],
    }


def files_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each file holds as many documents as its table, and as many characters of text."""
    wrong, n_documents = [], 0
    for path in documents_files(check_input.folder):
        name = path.name.removesuffix(DOCUMENTS_SUFFIX)
        table = read_table(path, ["id", "n_chars"])
        n_documents += table.num_rows
        expected = list(
            zip(*(table[column].to_pylist() for column in table.column_names), strict=True)
        )
        if list(_published(check_input.folder, name)) != expected:
            wrong.append(name)
    return CheckResult(
        claim="files_hold_the_documents",
        passed=not wrong,
        words=f"{n_documents:,} documents; {len(wrong):,} files differ from their tables"
        + (f", such as {wrong[0]}" if wrong else ""),
        numbers={"documents": n_documents, "differ": len(wrong)},
    )


def _published(folder: Path, name: str) -> Iterator[tuple[str, int]]:
    """Id and characters of each document in a shard's file."""
    table = folder / f"{name}{TABLE_SUFFIX}"
    if table.is_file():
        yield from ((line["id"], len(line[_TEXT])) for line in read_lines(table, ["id", _TEXT]))
        return
    for document in read_corpus(folder / f"{name}{JSON_SUFFIX}"):
        yield document.id, len(document.text) if isinstance(document, CorpusDocument) else -1


STAGE = Stage(
    name="clean_documents",
    code_version="1",
    upstream=("filtered_documents", "removed_documents"),
    params=lambda recipe, _: {"file_format": recipe.clean_documents.file_format},
    claims=(
        counts_add_up,
        all_that_was_kept_came_in("filtered_documents"),
        every_document_is_named_once,
        files_hold_the_documents,
        the_shards_add_up,
    ),
    wanted=lambda recipe: recipe.clean_documents.wanted,
    sharding=Sharding(
        reads=remaining_read,
        suffixes=(JSON_SUFFIX, TABLE_SUFFIX, DOCUMENTS_SUFFIX, DROPPED_SUFFIX),
    ),
)
"""The documents that no stage removed, as JSON lines or Parquet."""
