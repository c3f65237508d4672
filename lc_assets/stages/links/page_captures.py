"""The pages that are searched in a crawl, the captures that may be of them, and which capture is a
document's page.

The steps of `html_index`. A task per shard writes the keys of its documents; then a task per file
of the crawl writes the captures in it that may be of a document's page. The wanted pages are one
small file between them: sorted 64-bit hashes, memory-mapped, 100 MB for 12 million documents; of
page keys for archives, of the index's keys (SURT) for the columnar index; for CDXJ the sorted keys
themselves, which are merged with the index's lines. A hash collision costs one line: documents and
captures are joined by page key in DuckDB, within bounded memory. Among several captures of a page
(status 200 and HTML), the first rule that distinguishes them decides:

1. the capture that the text came from: in the archive of the text's own batch (``cc_segment``);
2. a capture with the document's digest;
3. the capture nearest in time to the document's download;
4. the newest;
5. the smallest by archive and offset.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Booleans, UInt64s
from lc_assets.builds.checks import FileTask, evenly_spaced
from lc_assets.builds.tables import Line, read_lines, writing_table
from lc_assets.counts import Counts
from lc_assets.formats.archives.captures import (
    REDIRECT,
    Capture,
    blocks_of_lines,
    capture_of,
    captures_in,
    matches,
    timestamp_of,
)
from lc_assets.formats.archives.paths import Kind, index_batches, refusal
from lc_assets.formats.archives.wat import captures_in_wat
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.corpora.containers import Unread
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.publishing import finished
from lc_assets.randomness import keyed_u64
from lc_assets.records import record
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.links.crawl_files import paths_of
from lc_assets.stages.links.link_tables import ALIASES, CAPTURES, HTML_INDEX, PAGE_DOCUMENTS
from lc_assets.text.links.page_keys import page_key, surt
from lc_assets.text.links.targets import absolute

NO_CAPTURE = "no capture"
NO_PAGE = "no capture with status 200 and HTML"
REDIRECTS = ALIASES.append(pa.field("timestamp", pa.string()))
WANTED = pa.schema(
    {
        "surt": "string",
    }
)

_SECONDS = "epoch(try_strptime({}, '%Y%m%d%H%M%S'))"
_FAR = 1 << 40
"""Seconds between two times of which one is not known."""

NO_ADDRESS = "no address of the web"

_PURPOSE = "key of a wanted page"
_LINE = ("id", "url", "digest", "cc_segment", "date_download")


@record
class DocumentsTask(FileTask):
    """One shard of filtered documents whose keys are recorded."""

    step = "documents"


def tables_in(folder: Path, what: str) -> list[Path]:
    """The tables in a version's scratch folder: ``documents`` or ``captures``."""
    return finished((folder / SCRATCH / what).glob("*.parquet"))


def wanted_file(folder: Path, kind: Kind) -> Path:
    """The file of wanted pages for a kind of crawl file."""
    return folder / SCRATCH / ("wanted.parquet" if kind == "cdxj" else "wanted.npy")


def hashes_of(keys: Iterable[str]) -> UInt64s:
    """64-bit hashes of keys, one per key."""
    return keyed_u64(_PURPOSE, seed=0, keys=keys)


def note_documents(task: DocumentsTask) -> Counts:
    """Publish the keys of one shard's documents; documents without a web address are counted and
    skipped.
    """
    n_seen = n_kept = 0
    with writing_table(task.path, PAGE_DOCUMENTS) as table:
        for position, line in enumerate(read_lines(task.documents, _LINE, batch_lines=1024)):
            n_seen += 1
            key = page_key(line["url"])
            if key is not None:
                n_kept += 1
                keys = {
                    "shard": task.file,
                    "position": position,
                    "page_key": key,
                    "surt": surt(line["url"]) or "",
                    "archive": archive_name(line["cc_segment"]),
                    "date": timestamp_of(line["date_download"]),
                }
                table.add(keys | {name: line[name] for name in ("id", "url", "digest")})
    return Counts.of(n_kept, {NO_ADDRESS: n_seen - n_kept})


def archive_name(path: str) -> str:
    """The common part of the names of one crawled batch's archives of pages, links and texts.

    >>> (
    ...     archive_name("crawl-data/x/wet/CC-MAIN-7.warc.wet.gz"),
    ...     archive_name("y/warc/CC-MAIN-7.warc.gz"),
    ...     archive_name(""),
    ... )
    ('CC-MAIN-7', 'CC-MAIN-7', '')
    """
    return path.rpartition("/")[2].partition(".warc")[0]


def is_in(keys: list[str], wanted: UInt64s) -> Booleans:
    """Which keys' hashes are among the sorted ones.

    >>> is_in(["a", "b"], np.sort(hashes_of(["b", "c"])))
    array([False,  True])
    """
    if not len(wanted):
        return np.zeros(len(keys), np.bool_)
    hashes = hashes_of(keys)
    places = np.searchsorted(wanted, hashes).clip(max=len(wanted) - 1)
    return np.asarray(wanted[places] == hashes)


def sorted_keys(path: Path, first: bytes) -> Iterator[bytes]:
    """The wanted keys of the index in order, without those before ``first`` as far as the file's
    statistics allow.
    """
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            stated = file.metadata.row_group(group).column(0).statistics
            if stated is not None and stated.has_min_max and stated.max.encode() < first:
                continue
            for key in file.read_row_group(group, columns=["surt"])["surt"].to_pylist():
                if (wanted := key.encode()) >= first:
                    yield wanted


RECORDS = "records read"
CAPTURED = "captures"
LEFT_OUT = "left out: "
AT_ONCE = 1024


@record
class CapturesTask:
    """One file of a crawl to search for captures; ``number`` counts the files that are read."""

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


@with_retries
def find_captures(task: CapturesTask) -> Counts:
    """Publish the captures in one file of a crawl that may be of a document's page."""
    counts: Counter[str] = Counter()
    find = {"cdxj": _in_lines, "columnar": _in_rows}.get(task.kind, _in_records)
    path = task.folder / SCRATCH / "captures" / f"{task.number:06d}.parquet"
    other = path.parent.with_name("redirects") / path.name
    with writing_table(path, CAPTURES) as table, writing_table(other, REDIRECTS) as redirects:
        for capture, key in find(task):
            counts[RECORDS] += 1
            counts[f"{LEFT_OUT}{capture}" if isinstance(capture, str) else CAPTURED] += 1
            if isinstance(capture, Capture) and capture.redirect and not capture.is_page:
                target = absolute(capture.redirect, capture.url)
                keys = page_key(capture.url), page_key(target or "")
                if None not in keys and keys[0] != keys[1]:
                    place = dict(zip(ALIASES.names, keys, strict=True))
                    redirects.add(place | {"timestamp": capture.timestamp})
            if isinstance(capture, Capture) and key is not None:
                line = msgspec.structs.asdict(capture)
                del line["redirect"]
                names = {"captured_url": line.pop("url"), "page_key": key}
                table.add(line | names | {"archive": archive_name(capture.filename)})
    return Counts(extra={f"{task.kind} files read": 1, **counts})


def counts_after(counts: Counts, prefix: str) -> dict[str, int]:
    """The counts whose names begin with a prefix, by the rest of the name."""
    return {
        name.removeprefix(prefix): count
        for name, count in counts.extra.items()
        if name.startswith(prefix)
    }


Found = tuple[Capture | str, str | None]
"""A capture, or the reason why there is none; and its page key if it may be of a document's page.
"""


def _in_records(task: CapturesTask) -> Iterator[Found]:
    wanted = read_npy(wanted_file(task.folder, task.kind))
    captures_of = captures_in_wat if task.kind == "wat" else captures_in
    with task.crawl.open(task.path) as stream:
        records = captures_of(stream, filename=task.path)
        while some := list(itertools.islice(records, AT_ONCE)):
            keys = [None if isinstance(one, Unread) else page_key(one.url) for one in some]
            are_wanted = is_in([key or "" for key in keys], wanted).tolist()
            for one, key, is_wanted in zip(some, keys, are_wanted, strict=True):
                yield one.why if isinstance(one, Unread) else one, key if is_wanted else None


def _in_lines(task: CapturesTask) -> Iterator[Found]:
    placed = _placing(task)
    with task.crawl.open(task.path) as stream:
        first = next(blocks_of_lines(stream, where=task.path), [b""])[0].partition(b" ")[0]
    with task.crawl.open(task.path) as stream:
        wanted = sorted_keys(wanted_file(task.folder, task.kind), first)
        for key, line in matches(stream, wanted, where=task.path, marked=REDIRECT):
            capture, own_key = placed(capture_of(line))
            yield capture, own_key if key else None


def _in_rows(task: CapturesTask) -> Iterator[Found]:
    placed, wanted = _placing(task), read_npy(wanted_file(task.folder, task.kind))
    with task.crawl.open(task.path) as stream:
        for batch in index_batches(stream, where=task.path):
            are_wanted = is_in(batch.column("surt").to_pylist(), wanted)
            redirects = np.array(batch.column("redirect").to_pylist(), np.object_) != ""
            chosen = np.flatnonzero(are_wanted | redirects)
            rows = batch.drop_columns(["surt"]).take(pa.array(chosen)).to_pylist()
            for row, is_wanted in zip(rows, are_wanted[chosen].tolist(), strict=True):
                refused = refusal(row["filename"], row["offset"], row["length"])
                capture, own_key = placed(refused or Capture(**row))
                yield capture, own_key if is_wanted else None


def _placing(task: CapturesTask) -> Callable[[Capture | str], Found]:
    """Resolves a capture's archive path, which an index states relative to the root or to itself,
    to a path below the root.
    """
    known = set(paths_of(task.folder, "warc"))
    beside = task.path.rpartition("/")[0]

    def placed(capture: Capture | str) -> Found:
        if isinstance(capture, str):
            return capture, None
        names = (capture.filename, f"{beside}/{capture.filename}")
        path = next((path for path in names if path in known), "")
        if known and not path:  # those of redirects are listed elsewhere, and are not read
            return capture if capture.redirect else "archive not listed", None
        found = msgspec.structs.replace(capture, filename=path or capture.filename)
        return found, page_key(capture.url)

    return placed


def note_what_is_wanted(database: Queries, folder: Path, kind: Kind) -> None:
    """Publish, into a version's scratch folder, the keys to search for in files of a kind."""
    tables = tables_in(folder, "documents")
    column = "page_key" if kind in {"warc", "wat"} else "surt"
    keys = f"SELECT DISTINCT {column} FROM {parquet(tables)} WHERE {column} <> ''"
    path = wanted_file(folder, kind)
    if kind == "cdxj":
        database.publish(f"{keys} ORDER BY {column}", path, WANTED)
        return
    hashes = [hashes_of(batch.column(0).to_pylist()) for batch in database.batches(keys)]
    write_npy(path, np.unique(np.concatenate([np.empty(0, np.uint64), *hashes])))


def choose(database: Queries, folder: Path) -> dict[str, int]:
    """Choose a capture for each document that has one; return the number of documents without one,
    by reason.
    """
    documents, captures = (parquet(tables_in(folder, what)) for what in ("documents", "captures"))
    apart = f"coalesce(abs({_SECONDS.format('c.timestamp')} - {_SECONDS.format('d.date')}), {_FAR})"
    columns = ", ".join(f"d.{name}" for name in PAGE_DOCUMENTS.names if name != "digest")
    database.do(f"""CREATE OR REPLACE TABLE chosen AS
        SELECT {columns}, c.* EXCLUDE (page_key, archive, is_page) FROM {documents} d
        JOIN {captures} c USING (page_key) WHERE c.is_page
        QUALIFY row_number() OVER (
            PARTITION BY d.shard, d.position
            ORDER BY (c.archive = d.archive) DESC, (c.digest = d.digest) DESC, {apart}, c.timestamp
            DESC, c.filename, c."offset", c.length
        ) = 1""")
    n_without = database.number(
        f"SELECT count(*) FROM {documents} ANTI JOIN {captures} USING (page_key)"
    )
    n_documents = database.number(f"SELECT count(*) FROM {documents}")
    n_chosen = database.number("SELECT count(*) FROM chosen")
    found = {NO_CAPTURE: n_without, NO_PAGE: n_documents - n_without - n_chosen}
    return {reason: count for reason, count in found.items() if count}


def publish_chosen(database: Queries, paths: Sequence[Path]) -> None:
    """Publish a table of `HTML_INDEX` per shard, in the order of its documents, to the path of its
    number; an empty one, too.
    """
    columns = ", ".join(f'"{name}"' for name in HTML_INDEX.names)
    query = f"SELECT shard, {columns} FROM chosen ORDER BY shard, position"
    database.publish_parts(query, paths, HTML_INDEX)


def publish_redirects(database: Queries, folder: Path, path: Path) -> int:
    """Publish a table of `ALIASES`: of each address that redirects, where the newest capture leads;
    returns their number.
    """
    tables = tables_in(folder, "redirects")
    source = parquet(tables) if tables else "(SELECT '' AS page_key) WHERE false"
    return database.publish(
        f"""SELECT page_key, arg_max(target_key, timestamp || target_key) AS target_key
        FROM {source} GROUP BY page_key ORDER BY page_key""",
        path,
        ALIASES,
    )


def some_chosen(database: Queries, most: int) -> list[Line]:
    """An even sample of the lines of all tables, in their order."""
    places = evenly_spaced(database.number("SELECT count(*) FROM chosen"), most)
    return database.lines(f"""SELECT * EXCLUDE (place) FROM (
            SELECT *, row_number() OVER (ORDER BY shard, position) - 1 AS place FROM chosen)
        WHERE list_contains({places}::BIGINT[], place) ORDER BY place""")
