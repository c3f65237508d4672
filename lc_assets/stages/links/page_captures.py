"""Captures of the pages of a snapshot's documents, from archives, lists of links or an index, file
by file.

The second step of `html_index`: a task per file of the crawl writes one table, of the captures that
may be of a document's page, into the version's scratch folder.
`lc_assets.stages.links.page_documents` provides the wanted pages.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lc_assets.build.tables import TableWriter
from lc_assets.counts import Counts
from lc_assets.formats.archives.captures import (
    Capture,
    blocks_of_lines,
    capture_of,
    captures_in,
    matches,
    refusal,
)
from lc_assets.formats.archives.columnar import index_batches
from lc_assets.formats.archives.paths import Kind
from lc_assets.formats.archives.wat import captures_in_wat
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.corpora.records import Unread
from lc_assets.lake.staging import once
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.stages.links.crawl_files import paths_of
from lc_assets.stages.links.page_documents import (
    archive_name,
    is_in,
    sorted_keys,
    wanted_file,
    working_table,
)
from lc_assets.text.links.page_keys import page_key

CAPTURES: Final = pa.schema(
    [
        ("page_key", pa.string()),
        ("captured_url", pa.string()),
        ("filename", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("timestamp", pa.string()),
        ("digest", pa.string()),
        ("archive", pa.string()),
        ("is_page", pa.bool_()),
    ]
)
"""A capture that may be of a document's page."""

RECORDS: Final = "records read"
CAPTURED: Final = "captures"
LEFT_OUT: Final = "left out: "
AT_ONCE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturesTask:
    """One file of a crawl in which captures are looked for; ``number`` counts the files that are
    read.
    """

    crawl: Upstream
    path: str
    kind: Kind
    number: int
    folder: Path

    @property
    def name(self) -> str:
        """A name that is unique among a version's tasks."""
        return f"captures-{self.number:06d}"

    def __str__(self) -> str:
        return self.path


@once
@with_retries
def find_captures(task: CapturesTask) -> Counts:
    """Publish the captures in one file of a crawl that may be of a document's page."""
    with working_table(task.folder, "captures", task.number, CAPTURES) as table:
        found = _Found(table)
        if task.kind == "cdxj":
            _look_through_lines(task, found)
        elif task.kind == "columnar":
            _look_through_rows(task, found)
        else:
            _look_through_records(task, found)
    return Counts(extra={f"{task.kind} files read": 1, **found.counts})


@dataclass(slots=True)
class _Found:
    """Where captures go, and how many records they are out of."""

    table: TableWriter
    counts: Counter[str] = field(default_factory=Counter)

    def leave_out(self, why: str) -> None:
        self.counts[RECORDS] += 1
        self.counts[f"{LEFT_OUT}{why}"] += 1

    def take(self, captures: list[Capture], keys: list[str | None], wanted: Iterable[bool]) -> None:
        """Count captures, and write the wanted ones."""
        self.counts[RECORDS] += len(captures)
        self.counts[CAPTURED] += len(captures)
        for capture, key, is_wanted in zip(captures, keys, wanted, strict=True):
            if is_wanted:
                self.table.add(_line(capture, key))


def _line(capture: Capture, key: str | None) -> dict[str, Any]:
    return {
        "page_key": key,
        "captured_url": capture.url,
        "filename": capture.filename,
        "offset": capture.offset,
        "length": capture.length,
        "timestamp": capture.timestamp,
        "digest": capture.digest,
        "archive": archive_name(capture.filename),
        "is_page": capture.is_page,
    }


def _look_through_records(task: CapturesTask, found: _Found) -> None:
    wanted = read_npy(wanted_file(task.folder, task.kind))
    with task.crawl.open(task.path) as stream:
        records = (captures_in_wat if task.kind == "wat" else captures_in)(
            stream, filename=task.path
        )
        for some in _batches(records):
            captures = [one for one in some if isinstance(one, Capture)]
            for one in some:
                if isinstance(one, Unread):
                    found.leave_out(one.why)
            keys = [page_key(capture.url) for capture in captures]
            found.take(captures, keys, is_in([key or "" for key in keys], wanted))


def _look_through_lines(task: CapturesTask, found: _Found) -> None:
    archives = _Archives(task)
    with task.crawl.open(task.path) as stream:
        first = next(blocks_of_lines(stream, where=task.path), [b""])[0].partition(b" ")[0]
    with task.crawl.open(task.path) as stream:
        for _, line in matches(
            stream, sorted_keys(wanted_file(task.folder, task.kind), first), where=task.path
        ):
            capture = capture_of(line)
            found_capture = archives.placed(capture) if isinstance(capture, Capture) else capture
            _take(found, found_capture)


def _look_through_rows(task: CapturesTask, found: _Found) -> None:
    archives, wanted = _Archives(task), read_npy(wanted_file(task.folder, task.kind))
    with task.crawl.open(task.path) as stream:
        for batch in index_batches(stream, where=task.path):
            chosen = np.flatnonzero(is_in(batch.column("surt").to_pylist(), wanted))
            for row in batch.drop_columns(["surt"]).take(pa.array(chosen)).to_pylist():
                refused = refusal(row["filename"], row["offset"], row["length"])
                _take(found, refused or archives.placed(Capture(**row)))


def _take(found: _Found, capture: Capture | str) -> None:
    if isinstance(capture, str):
        found.leave_out(capture)
    else:
        found.take([capture], [page_key(capture.url)], [True])


class _Archives:
    """The archives of a crawl, by the names that an index has for them: paths below the root, or
    beside the index.
    """

    def __init__(self, task: CapturesTask) -> None:
        self._known = set(paths_of(task.folder, "warc"))
        self._beside = task.path.rpartition("/")[0]

    def placed(self, capture: Capture) -> Capture | str:
        """The capture with its archive's path below the root, or why it has none."""
        beside = f"{self._beside}/{capture.filename}"
        for path in (capture.filename, beside):
            if path in self._known:
                return Capture(
                    capture.url,
                    capture.timestamp,
                    capture.is_page,
                    capture.digest,
                    path,
                    capture.offset,
                    capture.length,
                )
        return "archive not listed" if self._known else capture


def _batches(records: Iterable[Capture | Unread]) -> Iterator[list[Capture | Unread]]:
    batch: list[Capture | Unread] = []
    for record in records:
        batch.append(record)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch
