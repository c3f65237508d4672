"""Filtering one shard: which documents are kept, and why the others are not.

Of a shard with published signals, these decide nearly all documents' fates without their text; only
the lines of the rest are decoded. Of a file, signals are computed from the text, a chunk of
documents at a time. Both end in `_sort`, which measures what no signal tells and writes the tables.

Documents, signals and duplicates of RedPajama-V2 are joined by the id inside the records, never by
line position: upstream's writer skips lines that it cannot decode.
"""

import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from lc_assets.build.checks import DOCUMENTS_SUFFIX, DROPPED_SUFFIX
from lc_assets.build.tables import DROPPED, FILTERED, TableWriter, write_table
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.redpajama.documents import DocumentRecord, decode_document
from lc_assets.formats.redpajama.lines import LineCount
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.lake.upstream import with_retries
from lc_assets.publishing import publish
from lc_assets.sources.files import FileSource, own_id
from lc_assets.stages.documents.measuring import (
    Survivors,
    described,
    lists_of,
    models_of,
    record_offers,
    with_language,
)
from lc_assets.stages.documents.shard_inputs import (
    COMPUTED,
    SKIPPED,
    UNIQUE,
    FilterTask,
    Skip,
    duplicates_of_shard,
    require_unchanged,
    signals_of_shard,
    skip_by_policy,
    undecided_documents,
)
from lc_assets.stages.documents.sweeping import SWEEP_SUFFIX, added, sweep_of_shard
from lc_assets.stages.documents.verdicts import (
    NO_SIGNALS,
    OTHER_URL,
    TOO_LONG,
    UNREADABLE,
    Verdicts,
)
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.models import Models
from lc_assets.text.rules.rules import Complaint, RuleSet

CHUNK_CHARS: Final = 32 << 20
CHUNK_DOCUMENTS: Final = 1 << 15
"""Documents of a file whose signals are computed together; the first of both ends a chunk."""

PERPLEXITY: Final = "ccnet_perplexity"
"""Column of the perplexity that CCNet published with a document."""

NO_TEXT: Final = "documents without a text"
"""Counted of files, so that a stage that reads no text at all can say so."""

Document = DocumentRecord | CorpusDocument
Judged = Document | int
"""A document, or the fate of one that is dropped."""


class _Writers(NamedTuple):
    kept: TableWriter
    dropped: TableWriter


class _Part(NamedTuple):
    """A part of a shard that is sorted at once.

    Attributes:
        verdicts: by signals.
        documents: those that signals do not drop, by line, each judged as far as its text tells.
        read: what was read, counted while ``documents`` is gone through.
        name_of: tells a line's document id.
        survivors: measures them.
    """

    verdicts: Verdicts
    documents: Iterable[tuple[int, Judged]]
    read: LineCount
    name_of: Callable[[int], str]
    survivors: Survivors


@once
@with_retries
def filter_shard(task: FilterTask) -> Counts:
    """Filter one shard; a shard that the policies leave out is counted, with why."""
    try:
        with contextlib.ExitStack() as stack:
            if task.source is not None:
                counts, sweep = _filter_file(task, task.source, stack)
            else:
                counts, sweep = _filter_published(task, stack)
    except Skip as skip:
        return Counts(extra={"shards": 1, f"{SKIPPED}: {skip}": 1})
    write_table(task.folder / f"{task.name}{SWEEP_SUFFIX}", sweep)
    return counts


def _filter_published(task: FilterTask, stack: contextlib.ExitStack) -> tuple[Counts, pa.Table]:
    duplicates = duplicates_of_shard(task)
    table, computed = signals_of_shard(task)
    verdicts = Verdicts.of(
        table,
        duplicates or (),
        task.published,
        max_line_bytes=task.settings.max_line_bytes,
        later=[rule.name for rule in task.measured.rules],
    )
    read = LineCount()
    part = _Part(
        verdicts,
        (
            (line, _judged(task, verdicts, line, raw))
            for line, raw in undecided_documents(task, verdicts, read)
        ),
        read,
        task.files.shard.document_id,
        Survivors(task.measured, verdicts, models_of(task.settings.models, task.measured.columns)),
    )
    counts, sweep = _sort(task, part, _writers(stack, task))
    extra = {
        "bytes of JSON": read.n_bytes,
        "signals unreadable": table.n_undecodable + table.n_oversize,
        "shards": 1,
        UNIQUE: int(duplicates is None),
        COMPUTED: int(computed),
    }
    return counts + Counts(extra=extra), sweep


def _judged(task: FilterTask, verdicts: Verdicts, line: int, raw: bytes | None) -> Judged:
    if raw is None:
        return TOO_LONG
    fate = verdicts.fate_of.get(line, NO_SIGNALS)
    try:
        record = decode_document(raw, where=f"{task.files.shard.tag} line {line}")
    except CorruptFile:
        return UNREADABLE
    if fate not in verdicts.passing:
        return NO_SIGNALS
    return record if verdicts.url(line) in ("", record.url) else OTHER_URL


def _filter_file(
    task: FilterTask, source: FileSource, stack: contextlib.ExitStack
) -> tuple[Counts, pa.Table]:
    writers = _writers(stack, task)
    counts, sweeps = Counts(extra={"shards": 1, COMPUTED: 1}), []
    models = models_of(task.settings.models, task.models_needed)
    seen: set[str] = set()
    with skip_by_policy("documents", task.settings.corrupt_documents):
        for chunk in _chunks(task, source):
            part = _part_of_chunk(task, source, chunk, models, seen)
            counted, sweep = _sort(task, part, writers)
            n_unread = sum(isinstance(document, Unread) for _, document in chunk)
            counts += counted + Counts(extra={NO_TEXT: n_unread})
            sweeps.append(sweep)
    return counts, added(sweeps)


def _chunks(
    task: FilterTask, source: FileSource
) -> Iterator[list[tuple[int, CorpusDocument | Unread]]]:
    """A file's documents with their numbers, some at a time; one empty chunk of an empty file."""
    chunk: list[tuple[int, CorpusDocument | Unread]] = []
    n_chars = n_chunks = 0
    file = task.files.parts["documents"]
    if file is None:
        raise CorruptFile(f"{task.files.shard.tag}: its file is missing")
    require_unchanged(task.upstream, file)
    for line, document in source.documents(file.path, task.folder / SCRATCH):
        chunk.append((line, document))
        n_chars += len(document.text) if isinstance(document, CorpusDocument) else 0
        if n_chars >= CHUNK_CHARS or len(chunk) >= CHUNK_DOCUMENTS:
            yield chunk
            chunk, n_chars, n_chunks = [], 0, n_chunks + 1
    if chunk or not n_chunks:
        yield chunk


def _part_of_chunk(
    task: FilterTask,
    source: FileSource,
    chunk: list[tuple[int, CorpusDocument | Unread]],
    models: Models,
    seen: set[str],
) -> _Part:
    """Compute the signals that the rules judge of a chunk's documents, and judge them."""
    lists, names = lists_of(task.settings.lists), sorted(task.published.columns)
    readable = {
        line: with_language(document, source.settings.language, models)
        for line, document in chunk
        if isinstance(document, CorpusDocument)
    }
    unread = {line: document for line, document in chunk if isinstance(document, Unread)}
    own = {line: own_id(document, seen, task.files.shard) for line, document in chunk}
    values = array("d")
    for document in readable.values():
        found = values_of(record_offers(document, task.rules), names, lists, models)
        values.extend(nan if (value := found[name]) is None else value for name in names)
    by_name = np.array(values).reshape(len(readable), len(names))
    table = SignalsTable(
        np.array(list(readable), np.int64),
        [document.url for document in readable.values()],
        {name: np.ascontiguousarray(by_name[:, place]) for place, name in enumerate(names)},
        0,
        0,
    )
    reasons = sorted({document.why for document in unread.values()})
    verdicts = Verdicts.of(
        table,
        (),
        task.published,
        max_line_bytes=task.settings.max_line_bytes,
        later=[*(rule.name for rule in task.measured.rules), *reasons],
    )
    survivors = Survivors(task.measured, verdicts, models, lists)
    read = LineCount()

    def documents() -> Iterator[tuple[int, Judged]]:
        for line, document in chunk:
            read.n_lines = line + 1
            if isinstance(document, Unread):
                complaint = Complaint(document.why, None, document.where)
                yield line, survivors.fate_of_complaints((complaint,))
            elif verdicts.fate_of[line] in verdicts.passing:
                yield line, readable[line]

    shard = task.files.shard
    return _Part(
        verdicts,
        documents(),
        read,
        lambda line: shard.document_id(own[line] or line),
        survivors,
    )


def _sort(task: FilterTask, part: _Part, writers: _Writers) -> tuple[Counts, pa.Table]:
    """Write the documents that are kept and the reasons of the others; count, and sweep."""
    n_kept = n_kept_chars = 0
    lines, fates = array("q"), array("q")
    survivors = part.survivors
    for line, judged in part.documents:
        late = None if isinstance(judged, int) else survivors.fate(line, judged)
        found = judged if late is None else late
        if isinstance(found, int):
            lines.append(line)
            fates.append(found)
            continue
        kept = _kept_line(task, part, line, found) | survivors.latest
        n_kept += 1
        n_kept_chars += len(kept["raw_content"])
        writers.kept.add(kept, n_bytes=len(kept["raw_content"]))
    every_line, every_fate = part.verdicts.with_failing(part.read.n_lines, lines, fates)
    verdicts = part.verdicts.and_later(survivors.complaints)
    for table in verdicts.dropped(part.name_of, every_line, every_fate):
        writers.dropped.write(table)
    first, every = verdicts.counted(every_fate)
    counts = Counts(
        seen=n_kept + len(every_line),
        kept=n_kept,
        dropped=first,
        failed_rules=every,
        extra={"characters kept": n_kept_chars},
    )
    return counts, sweep_of_shard(task, verdicts, survivors, every_fate)


def _writers(stack: contextlib.ExitStack, task: FilterTask) -> _Writers:
    return _Writers(
        *(
            stack.enter_context(
                contextlib.closing(
                    TableWriter(
                        stack.enter_context(publish(task.folder / f"{task.name}{suffix}")), schema
                    )
                )
            )
            for suffix, schema in (
                (DOCUMENTS_SUFFIX, schema_of(task.rules, perplexity=task.perplexity)),
                (DROPPED_SUFFIX, DROPPED),
            )
        )
    )


def schema_of(rules: RuleSet, *, perplexity: bool = False) -> pa.Schema:
    """Columns of `filtered_documents`: `FILTERED`, and a float64 column per judged signal; of files
    also the record's ``perplexity``, where documents are preferred by it.
    """
    signals = sorted(rules.columns | ({PERPLEXITY} if perplexity else set()))
    return pa.schema([*FILTERED, *((name, pa.float64()) for name in signals)])


def _kept_line(task: FilterTask, part: _Part, line: int, record: Document) -> dict[str, Any]:
    shard = task.files.shard
    if isinstance(record, DocumentRecord):
        named: dict[str, Any] = {
            "digest": record.digest,
            "source_domain": record.source_domain,
            "cc_segment": record.cc_segment,
            "language": shard.language,
            "bucket": shard.bucket,
            "date_download": record.date_download,
            "title": record.title,
            "raw_content": record.raw_content,
        }
    else:
        perplexity = nan if record.perplexity is None else record.perplexity
        named = {**described(record, task.rules), PERPLEXITY: perplexity}
    return {
        "id": part.name_of(line),
        "url": record.url,
        **named,
        **part.verdicts.signals(line),
    }
