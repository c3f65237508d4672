"""Writing the documents of one shard that no stage removed; see
`lc_assets.stages.documents.clean_documents`.

A file's records are read again, so that each is written with its original fields; its text is the
filtered one without the removed spans.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    JSON_SUFFIX,
    TABLE_SUFFIX,
    DocumentsTask,
)
from lc_assets.build.settings.common import DecontaminationSettings
from lc_assets.build.tables import (
    DROPPED,
    FILTERED,
    IDENTITY,
    read_lines,
    read_schema,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.corpora.containers import CorpusDocument, Unread, json_line
from lc_assets.lake.staging import once
from lc_assets.publishing import gzipped, publish
from lc_assets.sources.files import FileSource
from lc_assets.stages.decontamination.contaminated_documents import Cutter
from lc_assets.stages.deduplication.paragraphs import NOTHING_LEFT, spans_by_id
from lc_assets.stages.documents.raw_snapshot import ShardFiles
from lc_assets.stages.documents.shard_inputs import file_records
from lc_assets.text.contamination.overlaps import without_spans

CLEAN: Final = pa.schema([*IDENTITY, ("date_download", pa.string()), ("n_chars", pa.int64())])
"""The published documents, in the order of their file."""
TEXT: Final = "raw_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask(DocumentsTask):
    """One shard of filtered documents, to be written into ``folder``.

    Attributes:
        file_format: see `CleanDocumentsSettings`.
        removed: reason of each excluded document, by id.
        source: the files of the records; None if the filtered documents have all of their fields.
        files: the shard, and its file in the source.
        contamination: folder of `contaminated_documents` whose items are cut out of the texts;
            None if contaminated documents are dropped.
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


@once
def clean_shard(task: CleanTask) -> Counts:
    """Write one shard."""
    dropped, extra, n_kept = Counter[str](), Counter[str](characters=0), 0
    edits = _edits_of(task)
    with contextlib.ExitStack() as stack:
        kept_table, dropped_table = (
            stack.enter_context(writing_table(task.folder / f"{task.name}{suffix}", schema))
            for suffix, schema in ((DOCUMENTS_SUFFIX, CLEAN), (DROPPED_SUFFIX, DROPPED))
        )
        write = stack.enter_context(_document_writer(task))
        for line in read_lines(task.documents, batch_lines=16):
            reason = task.removed.get(line["id"])
            if reason is None and edits and not _edited(line, edits, extra):
                reason = NOTHING_LEFT
            if reason is not None:
                dropped[reason] += 1
                why = {"reason": reason, "value": None, "reasons": [reason], "values": [None]}
                dropped_table.add({"id": line["id"], "url": line["url"], **why})
                continue
            write(line)
            n_kept += 1
            extra["characters"] += len(line[TEXT])
            found = line | {"n_chars": len(line[TEXT])}
            kept_table.add({name: found[name] for name in CLEAN.names})
    return Counts.of(n_kept, dropped, extra)


def _edits_of(task: CleanTask) -> dict[str, Callable[[str, str], str]]:
    """The edits of a document's text, functions of id and text, by kind."""
    edits: dict[str, Callable[[str, str], str]] = {}
    if task.paragraphs is not None:
        spans = spans_by_id(task.paragraphs, task.number)
        edits["edited"] = lambda name, text: without_spans(text, spans.get(name, []))
    if task.contamination is not None:
        edits["cut"] = Cutter(task.contamination, task.name, task.settings).cut
    return edits


def _edited(
    line: dict[str, Any], edits: Mapping[str, Callable[[str, str], str]], extra: Counter[str]
) -> bool:
    """Edit a document's text and count the changes; return whether any text remains."""
    before = line[TEXT]
    for what, edit in edits.items():
        text = edit(line["id"], line[TEXT])
        n_gone = len(line[TEXT]) - len(text)
        extra.update({f"documents {what}": int(n_gone > 0), f"characters {what}": n_gone})
        line[TEXT] = text
    return bool(line[TEXT].strip()) or not before.strip()


@contextlib.contextmanager
def _document_writer(task: CleanTask) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Open the file of a shard's documents; yield what writes one line of the filtered table."""
    with contextlib.ExitStack() as stack:
        if task.file_format == "parquet":
            path = task.folder / f"{task.name}{TABLE_SUFFIX}"
            table = stack.enter_context(writing_table(path, read_schema(task.documents)))
            yield lambda line: table.add(line, n_bytes=len(line[TEXT]))
        else:
            staging = stack.enter_context(publish(task.folder / f"{task.name}{JSON_SUFFIX}"))
            stream = stack.enter_context(gzipped(staging))
            records = (
                None if task.source is None else file_records(task.source, task.files, task.folder)
            )
            yield lambda line: stream.write(
                _json_line(line) if records is None else json_line(_record_of(line, records))
            )


def _json_line(line: dict[str, Any]) -> bytes:
    fields = {name: line[name] for name in FILTERED.names if line[name] not in (None, "")}
    return msgspec.json.encode(fields | {TEXT: line[TEXT]}) + b"\n"


def _record_of(
    line: dict[str, Any], records: Iterator[tuple[int, str, CorpusDocument | Unread]]
) -> CorpusDocument:
    """The record of a filtered document, with its text as it was filtered.

    Raises:
        Mismatch: when the file no longer contains it.
    """
    for _, name, record in records:
        if name == line["id"] and isinstance(record, CorpusDocument):
            return msgspec.structs.replace(record, id=name, text=line[TEXT])
    raise Mismatch(f"{line['id']}: its file no longer holds it; filter the partition again")
