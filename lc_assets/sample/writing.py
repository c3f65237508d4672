"""Writing a sample: small crawl snapshots of real text in RedPajama-V2's layout.

Besides the pages it contains exact copies and excerpts of some. A record's fields are CCNet's,
except that some are drawn instead of measured: ``bucket`` is assigned; ``perplexity`` is drawn
between the percentiles of cc_net's ``cutoff.csv`` that bound the bucket; ``language_score`` is
drawn from 0.90 to 0.99 and ``date_download`` from the ten days that begin with the snapshot's week;
``cc_segment`` begins with ``crawl-data/LC-SAMPLE-``. All draws are keyed by the document's address,
so the same pages and settings give the same bytes on any number of workers.

``sample.json`` is the sample's `SampleReport`. It is written before everything else, so that an
interrupted sample is recognised, and again with ``finished`` set.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.redpajama.documents import DocumentRecord, write_documents, write_duplicates
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.lake.receipts import decode_json, encode_json
from lc_assets.publishing import STAGING_PREFIX, publish, publish_bytes, writing_in
from lc_assets.records import frozen
from lc_assets.sample.pages import (
    EXCERPTS,
    MIRROR,
    PERPLEXITIES,
    Page,
    Texts,
    drawn_order,
    fraction,
    plan_sample,
)
from lc_assets.sample.prose import page_signals
from lc_assets.sample.web import fetched_pages, write_crawl
from lc_assets.sources.redpajama_v2 import (
    listing_path,
    part_path,
    write_listing,
)
from lc_assets.vocabulary import Shard, SnapshotId, parse_snapshot

REPORT = "sample.json"
CRAWL = "crawl"
"""The folder of the crawls, beside the snapshots: the value of ``LC_CRAWL``."""

DEFAULT_SEED = 7
DEFAULT_SNAPSHOTS = ("2023-06", "2022-49")
_DATED = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


class SampleReport(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a sample.

    Attributes:
        texts_sha256: of all pages.
        snapshots: names of the crawls.
        seed: of all draws.
        documents: how many pages, duplicates and excerpts it has.
        listed_duplicates: how many documents the duplicates files name: copies, and pages with the
            same text.
        sources: digests of the pages, by file or address.
        skipped: unused sources, by reason.
        finished: whether everything was written.
    """

    texts_sha256: str
    snapshots: list[str]
    seed: int
    documents: dict[str, int]
    listed_duplicates: int
    sources: dict[str, str]
    skipped: dict[str, list[str]]
    finished: bool = False

    @property
    def n_documents(self) -> int:
        """Number of documents of all kinds."""
        return sum(self.documents.values())


Listed = Mapping[Shard, Sequence[tuple[int, str]]]
"""Lines and digests of each shard's duplicates."""


@frozen
class SnapshotTask:
    """The shards and the crawl of a snapshot, to be written below ``target``."""

    target: Path
    snapshot: SnapshotId
    seed: int
    pages: Mapping[Shard, Sequence[Page]]
    listed: Listed

    def __str__(self) -> str:
        return self.snapshot


def write_sample(
    target: Path,
    *,
    texts: Texts,
    executor: Executor,
    snapshots: Sequence[str] = DEFAULT_SNAPSHOTS,
    seed: int = DEFAULT_SEED,
) -> SampleReport:
    """Write crawl snapshots made of ``texts`` into the folder ``target``.

    Args:
        target: absent, empty, or the same sample of an earlier run, which is then written again.
        texts: the pages.
        executor: writes the snapshots, one per task.
        snapshots: names of the crawls; by name, the last is the newest.
        seed: of all draws.

    Raises:
        BadInput: when ``target`` holds something else, there are no pages, or a snapshot is not
            acceptable.
        CorruptFile: when the ``sample.json`` of an earlier run cannot be read.
        StorageFull: when the disk is full.
    """
    names = sorted(map(parse_snapshot, snapshots))
    if not texts.pages:
        skipped = ", ".join(f"{len(found):,} {why}" for why, found in texts.skipped.items())
        raise BadInput(f"no pages to write into {target}: every text was skipped ({skipped})")
    plan = plan_sample(texts.pages, snapshots=names, seed=seed)
    listed = _duplicates(plan)
    encoded = msgspec.json.Encoder().encode_lines(texts.pages)
    report = SampleReport(
        texts_sha256=hashlib.sha256(encoded).hexdigest(),
        snapshots=list(names),
        seed=seed,
        documents=_kinds(plan),
        listed_duplicates=sum(map(len, listed.values())),
        sources=dict(texts.sources),
        skipped={reason: list(found) for reason, found in texts.skipped.items()},
    )
    _require_own(target, report)
    tasks = []
    for name in names:
        pages = {shard: plan[shard] for shard in sorted(plan) if shard.snapshot == name}
        tasks.append(
            SnapshotTask(target, name, seed, pages, {shard: listed[shard] for shard in pages})
        )
    with writing_in(target, below=True):
        publish_bytes(target / REPORT, encode_json(report))
        for _ in executor.run(_write_snapshot, tasks, what="write a sample"):
            pass
        report = msgspec.structs.replace(report, finished=True)
        publish_bytes(target / REPORT, encode_json(report))
    return report


def _kinds(plan: dict[Shard, list[Page]]) -> dict[str, int]:
    hosts = [urlsplit(page.url).hostname for pages in plan.values() for page in pages]
    counts = {"duplicate": hosts.count(MIRROR), "excerpt": hosts.count(EXCERPTS)}
    return {"page": len(hosts) - sum(counts.values())} | counts


def _duplicates(plan: Mapping[Shard, Sequence[Page]]) -> Listed:
    """Documents whose digest was seen before, from the newest snapshot to the oldest."""
    seen: set[str] = set()
    found: dict[Shard, list[tuple[int, str]]] = {}
    for shard in sorted(sorted(plan), key=lambda shard: shard.snapshot, reverse=True):
        found[shard] = []
        for line, page in enumerate(plan[shard]):
            if page.digest in seen:
                found[shard].append((line, page.digest))
            seen.add(page.digest)
    return found


def _require_own(target: Path, report: SampleReport) -> None:
    """Make the folder; reject one with anything other than this sample."""
    if target.exists() and not target.is_dir():
        raise BadInput(f"{target}: is a file; expected a new folder for the sample")
    target.mkdir(parents=True, exist_ok=True)
    names = (path.name for path in target.iterdir())
    found = sorted(name for name in names if not name.startswith(STAGING_PREFIX))
    if not found:
        return
    if REPORT not in found:
        raise BadInput(
            f"{target}: holds {', '.join(found[:5])} and no {REPORT}, so it is not a sample; "
            "choose a new or empty folder"
        )
    old = decode_json(target / REPORT, SampleReport)
    changes = [
        f"{name} {getattr(old, name)} → {getattr(report, name)}"
        for name in ("texts_sha256", "snapshots", "seed")
        if getattr(old, name) != getattr(report, name)
    ]
    if changes:
        raise BadInput(
            f"{target}: holds another sample ({'; '.join(changes)}); choose a new folder, or "
            "remove this one"
        )


def _write_snapshot(task: SnapshotTask) -> None:
    """Write listing, documents, signals, duplicates and crawl of one snapshot."""
    with publish(task.target / listing_path(task.snapshot, "en")) as staging:
        write_listing(staging, list(task.pages))
    for shard, pages in task.pages.items():
        records = [record_of(page, shard, seed=task.seed) for page in pages]
        with publish(task.target / part_path("documents", shard)) as staging:
            write_documents(staging, records)
        with publish(task.target / part_path("signals", shard)) as staging:
            signals = map(page_signals, pages)
            rows = zip(count(), records, signals, strict=False)
            write_signals(staging, shard, rows)
        with publish(task.target / part_path("duplicates", shard)) as staging:
            write_duplicates(staging, shard, task.listed[shard])
    every = [page for pages in task.pages.values() for page in pages]
    urls = [page.url for page in every]
    popular = [urls[number] for number in drawn_order("popular", task.seed, urls)]
    dated = ((page, _date(page.url, task.snapshot, task.seed)) for page in every)
    fetched = fetched_pages(dated, urls=popular, seed=task.seed)
    write_crawl(task.target / CRAWL / task.snapshot, fetched)


def record_of(page: Page, shard: Shard, *, seed: int) -> DocumentRecord:
    """The record of a page in a shard."""
    low, high = PERPLEXITIES[shard.bucket]
    perplexity = low + (high - low) * fraction("perplexity", seed=seed, key=page.url)
    content, number = page.content, shard.number
    return DocumentRecord(
        url=page.url,
        date_download=_date(page.url, shard.snapshot, seed),
        digest=page.digest,
        length=len(content),
        nlines=len(page.lines),
        source_domain=urlsplit(page.url).hostname or "",
        title=page.title,
        raw_content=content,
        cc_segment=(
            f"crawl-data/LC-SAMPLE-{shard.snapshot}/segments/{number:04d}/wet/"
            f"LC-SAMPLE-{number:05d}.warc.wet.gz"
        ),
        original_nlines=len(page.lines),
        original_length=len(page.record),
        line_ids=list(range(len(page.lines))),
        language="en",
        language_score=(90 + int(10 * fraction("language score", seed=seed, key=page.url))) / 100,
        perplexity=int(10 * perplexity) / 10,
        bucket=shard.bucket,
    )


def _date(url: str, snapshot: SnapshotId, seed: int) -> str:
    """When the page at an address was crawled, ISO 8601."""
    dated = _DATED.fullmatch(snapshot)
    begin = _UNDATED
    if dated and dated[1] != "0000":
        weeks = (int(dated[2]) - 1) % 53
        begin = datetime(int(dated[1]), 1, 1, tzinfo=UTC) + timedelta(weeks=weeks)
    seconds = int(10 * 86_400 * fraction("date", seed=seed, key=url))
    return (begin + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
