"""Samples: small crawl snapshots of real text, written as RedPajama-V2 is laid out.

Here: `write_sample`. Not here: where pages come from (`prose`, `folder_texts`), which copies are
added where (`plan`), what a record says (`records`), the format (`formats.redpajama`), the crawl
that the documents would be of (`crawl`).

A sample's folder also holds ``sample.json``, its `SampleReport`. It is written twice: before
everything else, so that an interrupted sample is known for what it is, and with ``finished`` set
when all is there. The same pages and settings give the same bytes, on any number of workers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.redpajama.documents import DocumentRecord, write_documents
from lc_assets.formats.redpajama.duplicates import write_duplicates
from lc_assets.formats.redpajama.listings import (
    documents_path,
    duplicates_path,
    listing_path,
    signals_path,
    write_listing,
)
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.lake.receipts import decode_json, encode_json
from lc_assets.publishing import STAGING_PREFIX, publish, publish_bytes, remove_staging_files
from lc_assets.sample.crawl import CrawlTask, crawl_of_shards
from lc_assets.sample.page import Texts
from lc_assets.sample.plan import Document, Kind, newest_first, plan_sample
from lc_assets.sample.records import record_of
from lc_assets.sample.spool import SPOOL, ShardTask, Spooled, pages_of, write_spool
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard, parse_snapshot

REPORT = "sample.json"
CRAWL = "crawl"
"""The folder of the crawls, beside the snapshots: what ``LC_CRAWL`` is set to."""

DEFAULT_SEED = 7
DEFAULT_SNAPSHOTS = ("2023-06", "2022-49")

PAGES_PER_PLANT = 10
"""By default one exact copy and one excerpt are planted for every ten pages, rounded up."""


class SampleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a sample's bytes."""

    texts_sha256: str
    snapshots: list[str]
    seed: int
    shards_per_bucket: int
    n_duplicates: int
    n_excerpts: int


class SampleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sample is made of.

    Attributes:
        settings: what determines its bytes.
        finished: whether everything was written.
        documents: number of documents by kind: pages as they were found, planted duplicates,
            planted excerpts.
        listed_duplicates: documents that the duplicates files name: the planted ones and those that
            were in the texts.
        shards: number of documents by tag.
        sources: what the pages are made of: versions of packages, digests of files.
        skipped: what was not used, by reason.
        crawled: number of pages in each snapshot's crawl: the documents' and those that only lead
            to others.
    """

    settings: SampleSettings
    finished: bool
    documents: dict[str, int]
    listed_duplicates: int
    shards: dict[str, int]
    sources: dict[str, str]
    skipped: dict[str, list[str]]
    crawled: dict[str, int] = {}

    @property
    def n_documents(self) -> int:
        """Number of documents of all kinds."""
        return sum(self.documents.values())


def write_sample(
    target: Path,
    *,
    texts: Texts,
    executor: Executor,
    snapshots: Sequence[str] = DEFAULT_SNAPSHOTS,
    seed: int = DEFAULT_SEED,
    shards_per_bucket: int = 2,
    n_duplicates: int | None = None,
    n_excerpts: int | None = None,
) -> SampleReport:
    """Write crawl snapshots made of ``texts`` into the folder ``target``.

    Args:
        target: absent, empty, or the same sample of an earlier run, which is then written again.
        texts: the pages.
        executor: where signals are computed, one shard per task.
        snapshots: names of the crawls; by name, the last is the newest.
        seed: of everything that is drawn.
        shards_per_bucket: shards of one snapshot, language and bucket, at most.
        n_duplicates: exact copies to plant at other addresses; by default one per `PAGES_PER_PLANT`
            pages.
        n_excerpts: passages of long pages to plant as short documents; by default one per
            `PAGES_PER_PLANT` pages.

    Raises:
        BadInput: when ``target`` holds something else, there are no pages, or a setting cannot be
            meant.
        CorruptFile: when the ``sample.json`` of an earlier run cannot be read.
        StorageFull: when the disk is full.
    """
    names = [parse_snapshot(name) for name in snapshots]
    _refuse_strangers(target)
    spool = target / SPOOL
    try:
        with os_errors_as_lc_errors(spool):
            pages, digest = write_spool(spool, texts)
        planted = -(-len(pages) // PAGES_PER_PLANT)
        settings = SampleSettings(
            texts_sha256=digest,
            snapshots=sorted(names),
            seed=seed,
            shards_per_bucket=shards_per_bucket,
            n_duplicates=planted if n_duplicates is None else n_duplicates,
            n_excerpts=planted if n_excerpts is None else n_excerpts,
        )
        return _write(target, texts, executor, settings, pages)
    finally:
        remove_staging_files(target)


def _write(
    target: Path,
    texts: Texts,
    executor: Executor,
    settings: SampleSettings,
    pages: Sequence[Spooled],
) -> SampleReport:
    if not pages:
        raise BadInput(
            f"no pages to write into {target}: every text was skipped ({_counted(texts.skipped)})"
        )
    _refuse_others(target, settings)
    plan = plan_sample(
        [page.fact for page in pages],
        snapshots=[parse_snapshot(name) for name in settings.snapshots],
        seed=settings.seed,
        shards_per_bucket=settings.shards_per_bucket,
        n_duplicates=settings.n_duplicates,
        n_excerpts=settings.n_excerpts,
    )
    report = _report(settings, plan, texts)
    publish_bytes(target / REPORT, encode_json(report))
    tasks = [
        _task(target, shard, settings.seed, documents, pages) for shard, documents in plan.items()
    ]
    digests = {
        task.shard: found
        for task, found in executor.run(_write_shard, tasks, what="write a sample")
    }
    n_listed = _write_duplicates(target, digests)
    _write_listings(target, settings.snapshots, list(plan))
    crawls = [
        CrawlTask(
            target / CRAWL / snapshot,
            snapshot,
            tuple(task for task in tasks if task.shard.snapshot == snapshot),
        )
        for snapshot in map(parse_snapshot, settings.snapshots)
    ]
    crawled: dict[str, int] = {
        task.snapshot: n_pages
        for task, n_pages in executor.run(crawl_of_shards, crawls, what="write its crawl")
    }
    report = msgspec.structs.replace(
        report, finished=True, listed_duplicates=n_listed, crawled=dict(sorted(crawled.items()))
    )
    publish_bytes(target / REPORT, encode_json(report))
    return report


def _report(
    settings: SampleSettings, plan: Mapping[Shard, Sequence[Document]], texts: Texts
) -> SampleReport:
    kinds = Counter(document.kind for documents in plan.values() for document in documents)
    return SampleReport(
        settings=settings,
        finished=False,
        documents={kind.value: kinds[kind] for kind in Kind},
        listed_duplicates=0,
        shards={shard.tag: len(plan[shard]) for shard in sorted(plan)},
        sources=dict(texts.sources),
        skipped={reason: list(names) for reason, names in texts.skipped.items()},
    )


def _refuse_strangers(target: Path) -> None:
    """Refuse a place that holds anything, unless it is a sample."""
    if target.exists() and not target.is_dir():
        raise BadInput(f"{target}: is a file; wanted a new folder for the sample")
    target.mkdir(parents=True, exist_ok=True)
    found = sorted(
        path.name for path in target.iterdir() if not path.name.startswith(STAGING_PREFIX)
    )
    if found and REPORT not in found:
        raise BadInput(
            f"{target}: holds {', '.join(found[:5])} and no {REPORT}, so it is not a sample; "
            "choose a new or empty folder"
        )


def _refuse_others(target: Path, settings: SampleSettings) -> None:
    """Refuse a folder that holds another sample."""
    path = target / REPORT
    if not path.exists():
        return
    old = msgspec.to_builtins(decode_json(path, SampleReport).settings)
    changes = [
        f"{name} {old[name]} → {value}"
        for name, value in msgspec.to_builtins(settings).items()
        if old[name] != value
    ]
    if changes:
        raise BadInput(
            f"{target}: holds another sample ({'; '.join(changes)}); choose a new folder, or "
            "remove this one"
        )


def _task(
    target: Path, shard: Shard, seed: int, documents: Sequence[Document], pages: Sequence[Spooled]
) -> ShardTask:
    used = [pages[document.page] for document in documents]
    return ShardTask(
        target, shard, seed, tuple(documents), tuple((page.offset, page.n_bytes) for page in used)
    )


def _write_shard(task: ShardTask) -> list[str]:
    """Write documents and signals of one shard; return the documents' digests by line."""
    with publish(task.target / documents_path(task.shard)) as draft:
        write_documents(draft, _records(task))
    with publish(task.target / signals_path(task.shard)) as draft:
        write_signals(
            draft,
            task.shard,
            (
                (line, record, signals_of(record.raw_content))
                for line, record in enumerate(_records(task))
            ),
        )
    return [record.digest for record in _records(task)]


def _records(task: ShardTask) -> Iterator[DocumentRecord]:
    return (record_of(page, task.shard, seed=task.seed) for page in pages_of(task))


def _write_duplicates(target: Path, digests: Mapping[Shard, Sequence[str]]) -> int:
    """List every document whose digest was seen before, from the newest snapshot to the oldest;
    return how many.
    """
    seen: set[str] = set()
    n_listed = 0
    for shard in newest_first(list(digests)):
        rows = []
        for line, digest in enumerate(digests[shard]):
            if digest in seen:
                rows.append((line, digest))
            seen.add(digest)
        n_listed += len(rows)
        with publish(target / duplicates_path(shard)) as draft:
            write_duplicates(draft, shard, rows)
    return n_listed


def _write_listings(target: Path, snapshots: Sequence[str], shards: Sequence[Shard]) -> None:
    for language in sorted({shard.language for shard in shards}):
        for snapshot in map(parse_snapshot, snapshots):
            listed = sorted(
                shard
                for shard in shards
                if (shard.snapshot, shard.language) == (snapshot, language)
            )
            with publish(target / listing_path(snapshot, language)) as draft:
                write_listing(draft, listed)


def _counted(skipped: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{len(names):,} {reason}" for reason, names in skipped.items()) or "nothing"
