"""Cleaning one shard: its kept documents are written as they came in, with their texts edited."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa

from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    JSON_SUFFIX,
    TABLE_SUFFIX,
    DocumentsTask,
)
from lc_assets.builds.columns import PLACES
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import (
    DROPPED,
    FILTERED,
    IDENTITY,
    Line,
    read_lines,
    read_schema,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.corpora.containers import CorpusDocument, Unread, json_line, release_text
from lc_assets.publishing import gzipped, publish
from lc_assets.records import record
from lc_assets.sources.files import FileSource
from lc_assets.stages.decontamination.contaminated_documents import cutter
from lc_assets.stages.deduplication.paragraphs import NOTHING_LEFT, spans_by_id
from lc_assets.stages.documents.dropping import dropped_line
from lc_assets.stages.documents.file_records import file_records
from lc_assets.stages.documents.raw_snapshot import ShardFiles
from lc_assets.text.contamination.overlaps import without_spans
from lc_assets.tokens.tokenizers import n_characters

CLEAN = pa.schema({**IDENTITY, "date_download": "string", "n_chars": "int64"})
"""The published documents, in the order of their file."""
TEXT = "raw_content"


@record
class CleanTask(DocumentsTask):
    """One shard of filtered documents, to be written into ``folder``.

    Attributes:
        file_format: see `CleanDocumentsSettings`.
        removed: reason of each excluded document, by id.
        source: the files of the records; None if the filtered documents have all of their fields.
        files: the shard, and its file in the source.
        contamination: folder of the items to cut out; None if their documents are dropped.
        settings: the decontamination settings.
        number: of the shard.
        paragraphs: table of removed paragraphs; None if texts are unchanged.
    """

    file_format: str
    removed: Mapping[str, str]
    source: FileSource | None
    files: ShardFiles
    contamination: Path | None
    settings: DecontaminationSettings
    number: int
    paragraphs: Path | None


def clean_shard(task: CleanTask) -> Counts:
    """Write one shard."""
    dropped, extra, n_kept = Counter[str](), Counter[str](characters=0), 0
    edits = _edits_of(task)
    with contextlib.ExitStack() as stack:
        kept_table, dropped_table = (
            stack.enter_context(writing_table(task.folder / f"{task.name}{suffix}", schema))
            for suffix, schema in ((DOCUMENTS_SUFFIX, CLEAN), (DROPPED_SUFFIX, DROPPED))
        )
        write = _document_writer(task, stack)
        columns = _columns_read(task, edited=bool(edits))
        n_at_once = 16 if columns is None else 1024
        for line in read_lines(task.documents, columns, batch_lines=n_at_once, utf8=TEXT):
            reason = task.removed.get(line["id"])
            if reason is None and edits and not _edited(line, edits, extra):
                reason = NOTHING_LEFT
            if reason is not None:
                dropped[reason] += 1
                dropped_table.add(dropped_line(line, reason))
                continue
            kept = {name: line.get(name) for name in CLEAN.names}
            kept["n_chars"] = n_chars = write(line)
            n_kept, extra["characters"] = n_kept + 1, extra["characters"] + n_chars
            kept_table.add(kept)
    return Counts.of(n_kept, dropped, extra)


def _columns_read(task: CleanTask, *, edited: bool) -> list[str] | None:
    """The columns of the filtered table that are read; None for all. Where no text was or is
    edited, the texts are those of the file's records, which are read in any case.
    """
    schema = read_schema(task.documents)
    if edited or task.source is None or task.file_format == "parquet" or PLACES in list(schema):
        return None
    return [name for name in schema.names if name in CLEAN.names]


def _edits_of(task: CleanTask) -> dict[str, Callable[[str, str], str]]:
    """The edits of a document's text, functions of id and text, by kind."""
    edits: dict[str, Callable[[str, str], str]] = {}
    if task.paragraphs is not None:
        spans = spans_by_id(task.paragraphs, task.number)
        edits["edited"] = lambda name, text: without_spans(text, spans.get(name, []))
    if task.contamination is not None:
        edits["cut"] = cutter(task.contamination, task.name, task.settings)
    return edits


def _edited(
    line: Line, edits: Mapping[str, Callable[[str, str], str]], extra: Counter[str]
) -> bool:
    """Edit a document's text and count the changes; return whether any text remains."""
    text = before = line[TEXT].decode()
    for what, edit in edits.items():
        n_before, text = len(text), edit(line["id"], text)
        n_gone = n_before - len(text)
        extra.update({f"documents {what}": int(n_gone > 0), f"characters {what}": n_gone})
    line[TEXT] = text.encode()
    return bool(text.strip()) or not before.strip()


def _document_writer(task: CleanTask, stack: contextlib.ExitStack) -> Callable[[Line], int]:
    """Open the file of a shard's documents until ``stack`` is left; return what writes one line of
    the filtered table, and returns the characters of its text.
    """
    if task.file_format == "parquet":
        path = task.folder / f"{task.name}{TABLE_SUFFIX}"
        columns = [field for field in read_schema(task.documents) if field != PLACES]
        table = stack.enter_context(writing_table(path, pa.schema(columns)))
        return partial(_add, table)
    staging = stack.enter_context(publish(task.folder / f"{task.name}{JSON_SUFFIX}"))
    stream = stack.enter_context(gzipped(staging))
    if task.source is None:
        return partial(_write_fields, stream)
    return partial(_write_record, stream, file_records(task.source, task.files, task.folder))


def _add(table: TableWriter, line: Line) -> int:
    n_chars = n_characters(line[TEXT])
    table.add(line, n_bytes=len(line[TEXT]))
    return n_chars


def _write_fields(stream: BinaryIO, line: Line) -> int:
    line[TEXT] = line[TEXT].decode()
    fields = {name: line[name] for name in FILTERED.names if name == TEXT or line[name]}
    stream.write(msgspec.json.Encoder().encode_lines([fields]))
    return len(line[TEXT])


def _write_record(
    stream: BinaryIO,
    records: Iterator[tuple[int, str, CorpusDocument | Unread]],
    line: Line,
) -> int:
    record = _record_of(line, records)
    stream.write(json_line(record))
    return len(record.text)


def _record_of(
    line: Line, records: Iterator[tuple[int, str, CorpusDocument | Unread]]
) -> CorpusDocument:
    """The record of a filtered document, with its text as it was filtered, if that was read."""
    for _, name, found in records:
        if name == line["id"] and isinstance(found, CorpusDocument):
            if TEXT not in line:
                return msgspec.structs.replace(found, id=name)
            release_text(found)
            return msgspec.structs.replace(found, id=name, text=line.pop(TEXT).decode())
    raise Mismatch(f"{line['id']}: its file no longer holds it; filter the partition again")
