"""LongPack outside of a lake: archives and cleaned pages in, packed documents out, by the same
steps as the stages.

::

    out/
      documents/00000-….jsonl.gz   packed documents: id, url, n_tokens, text, spans (see docs/longpack.md)
      rest/00000-….jsonl.gz        on request: pages that are in none of them
      spans.parquet                `lc_assets.stages.links.link_tables.SPANS`
      claims.parquet               `lc_assets.stages.links.link_tables.LINK_CLAIMS`
      summary.json                 settings and counts; written last, so what has one is whole

A packed document's id is its root's page key. A run that was killed is run again from its
beginning.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from lc_assets.build.checks import documents_files
from lc_assets.build.settings.longpack import LongPackSettings
from lc_assets.build.tables import read_all
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.containers import WARC
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.packing.lengths import BucketCount, Growth, bucket_counts
from lc_assets.publishing import finished, publish_bytes
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.longpack.claiming import Claims, claim_links
from lc_assets.stages.longpack.crawl_pages import (
    REPEATED,
    CleanTask,
    LinksTask,
    clean_pages,
    documents_path,
    drop_repeated,
    find_links,
    publish_links,
)
from lc_assets.stages.longpack.gathering import SPANS_SUFFIX, Packing, pack_documents
from lc_assets.stages.longpack.growing import lengths_of, roots_tried
from lc_assets.stages.longpack.json_lines import (
    JSON_SUFFIX,
    join_spans,
    lines_tasks,
    rest_tasks,
    write_lines,
    write_rest,
)
from lc_assets.stages.longpack.pages import FACTS, Draws
from lc_assets.text.html.page_text import Quality
from lc_assets.text.links.links import Extractor

WORK: Final = ".longpack"
DOCUMENTS, REST = "documents", "rest"
SPANS_FILE, CLAIMS_FILE, SUMMARY_FILE = "spans.parquet", "claims.parquet", "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """Pages to be packed along their links.

    Attributes:
        archives: WARC files, or folders of them.
        pages: files of cleaned pages, with addresses; none means that texts are taken out of the
            archives.
        out: folder of what comes of it.
        settings: how pages are packed.
        executor: runs what is done per file.
        extractor: how links are read; the paper's way resolves no relative addresses.
        quality: of texts that are taken out of archives.
        tokenizer: what counts tokens.
        text_field: where a page's text is.
        rest: whether pages that are in no packed document are written too.
    """

    archives: Sequence[Path]
    pages: Sequence[Path]
    out: Path
    settings: LongPackSettings
    executor: Executor
    extractor: Extractor = "html5"
    quality: Quality = "fast"
    tokenizer: str = "gpt2"
    text_field: str | None = None
    rest: bool = False

    @property
    def work(self) -> Path:
        """Folder of what is needed on the way."""
        return self.out / WORK

    def run(self, function: Callable[[Any], Counts], tasks: Sequence[Any], *, what: str) -> Counts:
        """Run a function over tasks and add up what it counted."""
        return Counts.total(counts for _, counts in self.executor.run(function, tasks, what=what))


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        settings: how pages were packed.
        pages: documents that were read; kept are pages.
        archives: records that were read; kept are pages whose links are known.
        links: links between pages; kept are those whose page is in a document for them.
        packed: documents that were written.
        growth: how roots grew.
        before: pages by length.
        after: packed documents by length.
        together: packed documents, and pages that are in none, by length.
    """

    settings: LongPackSettings
    pages: Counts
    archives: Counts
    links: Counts
    packed: Counts
    growth: Growth
    before: tuple[BucketCount, ...]
    after: tuple[BucketCount, ...]
    together: tuple[BucketCount, ...]


def pack_crawl(crawl: Crawl) -> Outcome:
    """Pack the pages of a crawl.

    Raises:
        BadInput: when sources cannot be meant, or there is no archive among them.
        CorruptFile: when an archive or a file of pages is damaged.
    """
    archives = [path for path in corpus_files(crawl.archives) if path.name.endswith(WARC)]
    if not archives:
        raise BadInput(
            "links are read out of archives: name WARC files, such as --warc crawl.warc.gz"
        )
    with os_errors_as_lc_errors(crawl.out):
        crawl.out.mkdir(parents=True, exist_ok=True)
        (crawl.out / SUMMARY_FILE).unlink(missing_ok=True)
        shutil.rmtree(crawl.work, ignore_errors=True)
        try:
            outcome = _pack(crawl, archives)
        finally:
            shutil.rmtree(crawl.work, ignore_errors=True)
        publish_bytes(
            crawl.out / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(outcome)) + b"\n"
        )
    return outcome


def _pack(crawl: Crawl, archives: Sequence[Path]) -> Outcome:
    sources = corpus_files(crawl.pages) if crawl.pages else archives
    documents = [
        documents_path(crawl.work / "pages", number, source)
        for number, source in enumerate(sources)
    ]
    clean = [
        CleanTask(source=source, path=path, quality=crawl.quality, text_field=crawl.text_field)
        for source, path in zip(sources, documents, strict=True)
    ]
    pages = crawl.run(clean_pages, clean, what="read pages")
    find = [
        LinksTask(
            source=source,
            path=crawl.work / "captured" / f"{number:05d}.parquet",
            extractor=crawl.extractor,
        )
        for number, source in enumerate(archives)
    ]
    found = crawl.run(find_links, find, what="find links")
    links = crawl.work / "links.parquet"
    with queries(crawl.work / "duckdb") as asked:
        n_repeated = drop_repeated(asked, documents)
        publish_links(asked, [task.path for task in find], links)
    claims = Claims(
        documents=documents,
        links=[links],
        removed=[],
        folder=crawl.work / "claims",
        out=crawl.out / CLAIMS_FILE,
        settings=crawl.settings,
        draws=Draws(seed=crawl.settings.seed, share=crawl.settings.roots, splits=()),
        tokenizer=crawl.tokenizer,
        text_encoding="plain",
        run=crawl.run,
        everything=True,
    )
    claimed = claim_links(claims)
    folder = crawl.work / "packed"
    packing = Packing(
        claims=claims.out,
        documents=documents,
        folder=folder,
        paper_exact=crawl.settings.paper_exact,
        run=crawl.run,
    )
    packed = pack_documents(packing)
    _write(crawl, folder, documents)
    lengths = lengths_of(finished(folder.glob(f"*{SPANS_SUFFIX}")), n_roots=roots_tried(claimed))
    facts = finished((claims.work / "facts").glob("*.parquet"))
    every = np.asarray(read_all(facts, FACTS, ["n_tokens"])["n_tokens"].fill_null(0), np.int64)
    repeated = {REPEATED: n_repeated} if n_repeated else {}
    return Outcome(
        settings=crawl.settings,
        pages=msgspec.structs.replace(
            pages, kept=pages.kept - n_repeated, dropped=pages.dropped | repeated
        ),
        archives=found,
        links=claimed,
        packed=packed,
        growth=lengths.growth,
        before=tuple(bucket_counts(every)),
        after=tuple(bucket_counts(lengths.packed)),
        together=tuple(together(every, lengths.pages, lengths.packed)),
    )


def together(pages: Any, in_documents: Any, packed: Any) -> list[BucketCount]:
    """Packed documents, and the pages that are in none, by length.

    >>> [(count.n_docs, count.n_tokens) for count in together(np.array([5, 6, 7]), np.array([5, 7]), np.array([9_000]))][:3]
    [(1, 6), (0, 0), (1, 9000)]
    """
    counts = zip(
        bucket_counts(pages), bucket_counts(in_documents), bucket_counts(packed), strict=True
    )
    found = [
        (
            every.name,
            every.n_docs - some.n_docs + packs.n_docs,
            every.n_tokens - some.n_tokens + packs.n_tokens,
        )
        for every, some, packs in counts
    ]
    total = max(sum(n_tokens for *_, n_tokens in found), 1)
    return [
        BucketCount(name=name, n_docs=n_docs, n_tokens=n_tokens, share=n_tokens / total)
        for name, n_docs, n_tokens in found
    ]


def _write(crawl: Crawl, folder: Path, documents: Sequence[Path]) -> None:
    for name in (DOCUMENTS, REST):
        for path in finished((crawl.out / name).glob(f"*{JSON_SUFFIX}")):
            path.unlink()
    spans = finished(folder.glob(f"*{SPANS_SUFFIX}"))
    crawl.run(
        write_lines,
        lines_tasks(documents_files(folder), crawl.out / DOCUMENTS),
        what="write documents",
    )
    join_spans(spans, crawl.out / SPANS_FILE)
    if crawl.rest:
        with queries(crawl.work / "duckdb") as asked:
            tasks = rest_tasks(asked, spans, documents, crawl.work / "taken", crawl.out / REST)
        crawl.run(write_rest, tasks, what="write the rest")
