"""Filtering one shard: which documents are kept, and why the others are not.

In a shard with published signals, nearly all documents are dropped by these, and only the other
lines are decoded. For files, values are computed from the text, a chunk of documents at a time. In
both cases `_filter_part` measures the texts of documents that pass, if rules need it.

Documents, signals and duplicates of RedPajama-V2 are joined by the id inside the records,
never by line position: upstream's writer skips lines that it cannot decode.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Int64s
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, DROPPED_SUFFIX
from lc_assets.builds.columns import PERPLEXITY
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import (
    DROPPED,
    write_table,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.formats.redpajama.documents import digest_in
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.lake.upstream import with_retries
from lc_assets.sources.files import FileSource
from lc_assets.stages.documents.dropping import Part, Reasons, reason_counts
from lc_assets.stages.documents.kept_lines import (
    in_utf8,
    kept_columns,
    nan_for_none,
    schema_of,
)
from lc_assets.stages.documents.measuring import (
    Document,
    described,
    described_columns,
    in_batches,
    lists_of,
    numbers_of,
)
from lc_assets.stages.documents.shard_inputs import (
    SKIPPED,
    TOO_LONG,
    ShardTask,
    Skip,
    batches_of,
    lines_of_documents,
    read_document,
    records_of,
)
from lc_assets.stages.documents.shard_values import (
    computed_signals,
    duplicates_of_shard,
    signals_of_shard,
    stored_values,
)
from lc_assets.stages.documents.sweeping import SWEEP_SUFFIX, added, sweep
from lc_assets.stages.tokens.tokenized_text import text_digest
from lc_assets.text.rules.rules import failures

UNIQUE = "shards treated as unique"
COMPUTED = "shards with computed signals"
NO_TEXT = "documents without a text"
"""Counted per file, so that a stage that finds no text at all can report it."""

ODD = "fields of another type"
"""Counted by name: the record is read as if it lacked the field, or with its number in a string."""

NO_SIGNALS = "no signals"
OTHER_URL = "signals of another url"
"""Signals and document have the same id but different addresses."""

CHUNK_CHARS = 32 << 20
CHUNK_DOCUMENTS = 1 << 15
"""Limits of a chunk of documents whose values are computed together; the first one reached ends it.
"""

DROPPED_AT_ONCE = 1 << 17
"""Dropped documents in one row group: some 32 MiB."""

Found = Iterable[tuple[int, Document | Reasons]]
"""Documents that do not fail by the values tested first, or the reasons for dropping them, by
line.
"""


@with_retries
def filter_shard(task: ShardTask) -> Counts:
    """Filter one shard; a shard skipped by a policy is counted with the reason."""
    extra, counts, sweeps = Counter[str](shards=1), Counts(), []
    schema = schema_of(task.rules, perplexity=task.perplexity, fields=task.fields)
    try:
        with contextlib.ExitStack() as stack:
            kept, dropped = (
                stack.enter_context(writing_table(task.folder / f"{task.name}{suffix}", *how))
                for suffix, *how in (
                    (DOCUMENTS_SUFFIX, schema, task.settings.compression),
                    (DROPPED_SUFFIX, DROPPED),
                )
            )
            parts: Iterable[tuple[Part, Found]]
            if task.source is None:
                parts = _published_part(task, extra)
            elif task.keeps_all:
                counts, parts = _keep_all(task, task.source, extra, kept)
            else:
                parts = _parts_of_file(task, extra)
            for part, documents in parts:
                counted, swept = _filter_part(task, part, documents, kept, dropped)
                counts += counted
                sweeps.append(swept)
    except Skip as skip:
        return Counts(extra={"shards": 1, f"{SKIPPED}: {skip}": 1})
    write_table(task.folder / f"{task.name}{SWEEP_SUFFIX}", added(sweeps))
    return counts + Counts(extra=dict(extra))


def _published_part(task: ShardTask, extra: Counter[str]) -> Iterator[tuple[Part, Found]]:
    """All documents of a shard of RedPajama-V2, by their published signals."""
    duplicates = duplicates_of_shard(task)
    table, computed = signals_of_shard(task)
    digests: dict[int, str] = {}
    part = Part(
        table,
        task.published,
        task.files.shard.document_id,
        duplicates or (),
        digest_of=digests.__getitem__,
    )
    failing = set(table.lines[part.failing].tolist())
    odd = Counter[str]()

    def documents() -> Iterator[tuple[int, Document | Reasons]]:
        for line, raw in lines_of_documents(task):
            part.n_lines += 1
            extra["bytes of JSON"] += len(raw or b"")
            digests[line] = digest_in(raw or b"")
            if raw is None or line not in failing:
                found = [_met(task, part, line, read_document(task, line, raw, odd))]
                del raw
                yield line, found.pop()  # a long document is kept once, by the caller

    yield part, documents()
    extra.update({f"{ODD}: {name}": count for name, count in odd.items()})
    extra["bytes of JSON"] += 0
    extra["signals unreadable"] = table.n_undecodable + table.n_oversize
    extra[UNIQUE], extra[COMPUTED] = int(duplicates is None), int(computed)


def _met(task: ShardTask, part: Part, line: int, found: Document | Unread) -> Document | Reasons:
    """A document, or the reason for dropping it."""
    if isinstance(found, Unread):
        too_long = found.why == TOO_LONG
        return ((found.why, task.settings.max_line_bytes if too_long else nan),)
    if line not in part.row_of:
        return ((NO_SIGNALS, nan),)
    return found if part.url(line) in ("", found.url) else ((OTHER_URL, nan),)


def _parts_of_file(task: ShardTask, extra: Counter[str]) -> Iterator[tuple[Part, Found]]:
    """The documents of a file, a chunk at a time, by stored or computed values."""
    stored = None if task.stored is None else stored_values(task.stored, task.rules.columns)
    models = task.models()
    extra[COMPUTED] = 1
    for chunk in _chunks(records_of(task, models)):
        readable = [(line, found) for line, _, found in chunk if not isinstance(found, Unread)]
        extra[NO_TEXT] += len(chunk) - len(readable)
        odd = (found.odd for _, found in readable if isinstance(found, CorpusDocument))
        extra.update(f"{ODD}: {name}" for name in chain.from_iterable(odd))
        table = (
            computed_signals(task, readable, models)
            if stored is None
            else stored.of_lines([line for line, _ in readable])
        )
        ids = {line: name for line, name, _ in chunk}
        n_lines = chunk[-1][0] + 1 if chunk else 0
        part = Part(
            table,
            task.published,
            ids.__getitem__,
            n_lines=n_lines,
            digest_of=partial(_digest_of, task, dict(readable)),
        )
        failing = set(table.lines[part.failing].tolist())
        yield (
            part,
            (
                (line, ((found.why, nan),) if isinstance(found, Unread) else found)
                for line, _, found in chunk
                if line not in failing
            ),
        )


def _keep_all(
    task: ShardTask, source: FileSource, extra: Counter[str], kept_table: TableWriter
) -> tuple[Counts, list[tuple[Part, Found]]]:
    """Write the documents of a file, which no rule tests; return their counts, and those that
    cannot be read.
    """
    names, lost = dict[int, str](), list[tuple[int, Reasons]]()
    n_kept, kept_chars = 0, 0
    for batch in batches_of(task, source, task.models()):
        columns, unread = batch.batch.columns, batch.batch.unread
        lost += [(batch.begin + at, ((it.why, nan),)) for at, it in unread.items()]
        names |= {batch.begin + at: batch.names[at] for at in unread}
        extra.update(f"{ODD}: {name}" for name in chain.from_iterable(columns["odd"]))
        kept: dict[str, list[Any]] = {
            "id": [batch.names[at] for at in batch.batch.positions],
            "url": columns["url"],
            **described_columns(columns, task.rules),
        }
        if task.perplexity:
            kept[PERPLEXITY] = nan_for_none(columns["perplexity"])
        columns.clear()
        n_chars = in_utf8(kept["raw_content"])
        kept_table.extend(kept, n_chars)
        n_kept, kept_chars = n_kept + len(n_chars), kept_chars + sum(n_chars)
    extra[COMPUTED], extra[NO_TEXT] = 1, len(lost)
    part = Part(
        SignalsTable(np.empty(0, np.int64), [], {}, 0, 0),
        task.published,
        names.__getitem__,
        n_lines=n_kept + len(lost),
    )
    counts = Counts(seen=n_kept, kept=n_kept, extra={"characters kept": kept_chars})
    return counts, [(part, lost)]


def _digest_of(task: ShardTask, documents: Mapping[int, Document], line: int) -> str:
    """The digest of a file's document: the page's, or the text's where its record states none;
    empty for one that could not be read.
    """
    if line not in documents:
        return ""
    known = described([documents[line]], "", "", task.rules)
    return known["digest"][0] or text_digest(known["raw_content"][0].encode())


Records = list[tuple[int, str, Document | Unread]]


def _chunks(records: Iterable[tuple[int, str, Document | Unread]]) -> Iterator[Records]:
    """Chunks of documents; an empty file gives one empty chunk."""
    chunk: Records = []
    n_chars, is_first = 0, True
    for record in records:
        chunk.append(record)
        n_chars += len(record[2].text) if isinstance(record[2], CorpusDocument) else 0
        if n_chars >= CHUNK_CHARS or len(chunk) >= CHUNK_DOCUMENTS:
            yield chunk
            chunk, n_chars, is_first = [], 0, False
    if chunk or is_first:
        yield chunk


def _sorted_out(
    batch: list[tuple[int, Document | Reasons]],
) -> tuple[list[tuple[int, Document]], dict[int, Reasons]]:
    """The documents of a batch, with their lines, and reasons by line."""
    documents, reasons = list[tuple[int, Document]](), dict[int, Reasons]()
    for line, found in batch:
        if isinstance(found, Document):
            documents.append((line, found))
        else:
            reasons[line] = found
    return documents, reasons


def _filter_part(
    task: ShardTask,
    part: Part,
    documents: Found,
    kept_table: TableWriter,
    dropped_table: TableWriter,
) -> tuple[Counts, pa.Table]:
    """Write the kept documents and the reasons for dropping the others; count, and sweep.

    Args:
        task: provides the rules.
        part: the documents' values.
        documents: those to test by the other rules.
        kept_table: of the shard's kept documents.
        dropped_table: of the others.
    """
    rules, lists, models = task.measured, lists_of(task.settings.lists), task.models()
    columns = sorted(rules.columns)
    late: dict[int, Reasons] = {}
    measured_rows, measured = list[int](), [np.empty((0, len(columns)))]
    kept_chars = list[int]()
    for batch in in_batches(documents):
        readable, unread = _sorted_out(batch)
        late |= unread
        records = [found for _, found in readable]
        values = numbers_of(records, columns, task.rules, lists, models)
        measured_rows += [part.row_of[line] for line, _ in readable]
        measured.append(values)
        fails = rules.failing(dict(zip(columns, values.T, strict=True)), len(values))
        for at in np.flatnonzero(fails).tolist():
            late[readable[at][0]] = failures(
                dict(zip(columns, values[at].tolist(), strict=True)), rules
            )
        passing = np.flatnonzero(~fails)
        if len(passing):
            kept, n_chars = kept_columns(task, part, [readable[at] for at in passing.tolist()])
            kept |= zip(columns, values[passing].T.tolist(), strict=True)
            kept_table.extend(kept, n_chars)
            kept_chars += n_chars
    dropped, dropped_rows = part.dropped_table(late), part.dropped_rows(late)
    for begin in range(0, len(dropped), DROPPED_AT_ONCE):
        dropped_table.write(dropped.slice(begin, DROPPED_AT_ONCE))
    counts = Counts(
        seen=len(kept_chars) + len(dropped),
        kept=len(kept_chars),
        dropped=reason_counts(dropped["reason"]),
        failed_rules=reason_counts(dropped["reasons"].combine_chunks().flatten()),
        extra={"characters kept": sum(kept_chars)},
    )
    read = np.concatenate(measured).T
    rows: Int64s = np.append(dropped_rows, np.array(measured_rows, np.int64))
    missing = np.full(len(dropped_rows), nan)
    known = {name: column[rows] for name, column in part.table.columns.items()}
    swept = sweep(
        known | {name: np.append(missing, it) for name, it in zip(columns, read, strict=True)},
        task.published.and_also(*rules.rules),
        allowed=~part.fails[rows, 0],
        measured=columns,
    )
    return counts, swept
