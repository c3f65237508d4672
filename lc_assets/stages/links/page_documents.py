"""Documents whose pages are searched: their keys, shard by shard, and one small file of all wanted
pages.

The first step of `html_index`. Every task of the second step
(`lc_assets.stages.links.page_captures`) reads the wanted pages: sorted 64-bit hashes,
memory-mapped, 100 MB for 12 million documents — of page keys for archives, of the index's keys
(SURT) for the columnar index; for CDXJ the sorted keys themselves, which are merged with the
index's lines. A hash collision costs one line: captures are joined to documents by page keys
(`lc_assets.stages.links.capture_choice`).
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.build.tables import TableWriter, read_lines
from lc_assets.counts import Counts
from lc_assets.formats.archives.captures import timestamp_of
from lc_assets.formats.archives.paths import Kind
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.publishing import finished, publish
from lc_assets.randomness import keyed_u64
from lc_assets.text.links.page_keys import page_key, surt

DOCUMENTS: Final = pa.schema(
    [
        ("shard", pa.int32()),
        ("position", pa.int64()),
        ("id", pa.string()),
        ("url", pa.string()),
        ("page_key", pa.string()),
        ("surt", pa.string()),
        ("archive", pa.string()),
        ("digest", pa.string()),
        ("date", pa.string()),
    ]
)
"""A document whose page is searched: its shard and position, its keys, and what is known of its
capture.
"""

NO_ADDRESS: Final = "no address of the web"

_PURPOSE: Final = "key of a wanted page"
_LINE: Final = ("id", "url", "digest", "cc_segment", "date_download")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsTask:
    """One shard of filtered documents whose keys are recorded; ``number`` counts a snapshot's
    shards.
    """

    documents: Path
    number: int
    folder: Path

    @property
    def name(self) -> str:
        """A name that is unique among a version's tasks."""
        return f"documents-{self.documents.name.removesuffix(DOCUMENTS_SUFFIX)}"

    def __str__(self) -> str:
        return str(self.documents)


def tables_in(folder: Path, what: str) -> list[Path]:
    """The tables in a version's workings: ``documents`` or ``captures``."""
    return finished((folder / SCRATCH / what).glob("*.parquet"))


def wanted_file(folder: Path, kind: Kind) -> Path:
    """The file of wanted pages for a kind of crawl file."""
    return folder / SCRATCH / ("wanted.parquet" if kind == "cdxj" else "wanted.npy")


def hashes_of(keys: Iterable[str]) -> NDArray[np.uint64]:
    """64-bit hashes of keys, one per key."""
    return keyed_u64(_PURPOSE, seed=0, keys=keys)


@once
def note_documents(task: DocumentsTask) -> Counts:
    """Publish the keys of one shard's documents; those without an address of the web are counted
    and left out.
    """
    n_seen = n_kept = 0
    with working_table(task.folder, "documents", task.number, DOCUMENTS) as table:
        for position, line in enumerate(read_lines(task.documents, _LINE, batch_lines=1024)):
            n_seen += 1
            key = page_key(line["url"])
            if key is not None:
                n_kept += 1
                table.add(_noted(line, key) | {"shard": task.number, "position": position})
    dropped = {NO_ADDRESS: n_seen - n_kept} if n_seen > n_kept else {}
    return Counts(seen=n_seen, kept=n_kept, dropped=dropped)


def _noted(line: dict[str, Any], key: str) -> dict[str, Any]:
    return {
        "id": line["id"],
        "url": line["url"],
        "page_key": key,
        "surt": surt(line["url"]) or "",
        "archive": archive_name(line["cc_segment"]),
        "digest": line["digest"],
        "date": timestamp_of(line["date_download"]),
    }


def archive_name(path: str) -> str:
    """The common part of the names of one crawled batch's archives of pages, links and texts.

    >>> archive_name("crawl-data/x/wet/CC-MAIN-7.warc.wet.gz"), archive_name("y/warc/CC-MAIN-7.warc.gz"), archive_name("")
    ('CC-MAIN-7', 'CC-MAIN-7', '')
    """
    return path.rpartition("/")[2].partition(".warc")[0]


def is_in(keys: list[str], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
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


@contextlib.contextmanager
def working_table(folder: Path, what: str, number: int, schema: pa.Schema) -> Iterator[TableWriter]:
    """A table to write into a version's workings; see `tables_in`."""
    path = folder / SCRATCH / what / f"{number:06d}.parquet"
    with publish(path) as draft, contextlib.closing(TableWriter(draft, schema)) as table:
        yield table
