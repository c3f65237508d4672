"""Lists of links of plain WARC files, as JSON lines: what `lc links` does, a file after the other.

A line is a page: its ``url``, and under the extractor's name (``html5`` or ``paper_regex``) its links in their order, ``[address, text]``
each, as they are written; or, with ``targets``, the pages that they lead to, each once. Pages without links have their line, too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.engines.local import Engine
from lc_assets.errors import BadInput
from lc_assets.formats.archives.pages import MAX_PAGE_BYTES, html_pages
from lc_assets.formats.corpora.containers import WARC
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.corpora.writing import gzipped
from lc_assets.publishing import publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.page_linking import LEFT_OUT, LINKS, TARGETS
from lc_assets.tally import Tally
from lc_assets.text.links import Extractor, page_links
from lc_assets.text.targets import targets_of

FIELDS: Final[dict[Extractor, str]] = {"html5": "html5", "paper": "paper_regex"}
"""Under which name a line holds its links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingTask:
    """One archive, and where its list goes."""

    source: Path
    out: Path
    extractor: Extractor
    targets: bool
    max_page_bytes: int

    def __str__(self) -> str:
        return str(self.source)


def list_links(
    sources: Sequence[Path],
    out: Path,
    *,
    engine: Engine,
    extractor: Extractor = "html5",
    targets: bool = False,
    max_page_bytes: int = MAX_PAGE_BYTES,
) -> Tally:
    """Publish ``NAME.links.jsonl.gz`` for each WARC file.

    Raises:
        BadInput: when a source is none.
        CorruptFile: when an archive is damaged or cut short.
    """

    def task_of(source: Path, stem: Path) -> ListingTask:
        if not source.name.endswith(WARC):
            raise BadInput(f"{source}: links are read out of WARC files, whose names end in {' or '.join(WARC)}")
        place = stem.with_name(f"{stem.name}.links.jsonl.gz")
        return ListingTask(source=source, out=place, extractor=extractor, targets=targets, max_page_bytes=max_page_bytes)

    return over_corpus(sources, out, task_of, list_archive, engine=engine, what="links")


def list_archive(task: ListingTask) -> Tally:
    """Publish the list of one archive."""
    dropped, also, n_pages = Counter[str](), Counter[str](), 0
    with publish(task.out) as draft, gzipped(draft) as out:
        for page in html_pages(task.source, max_page_bytes=task.max_page_bytes):
            if isinstance(page, Unread):
                dropped[page.why] += 1
                continue
            found = page_links(page.html, task.extractor)
            if found.unread:
                dropped[found.unread] += 1
                continue
            resolved = targets_of(found.links, page.url, base=found.base, resolve=task.extractor == "html5")
            line: dict[str, Any] = {"url": page.url}
            line |= (
                {"targets": resolved.found} if task.targets else {FIELDS[task.extractor]: [(link.href, link.text) for link in found.links]}
            )
            out.write(msgspec.json.encode(line) + b"\n")
            n_pages += 1
            also.update({LINKS: len(found.links), TARGETS: len(resolved.found)})
            also.update({f"{LEFT_OUT}{reason}": count for reason, count in resolved.left_out.items()})
    return Tally(seen=n_pages + dropped.total(), kept=n_pages, dropped=dict(dropped), complaints=dict(dropped), also=dict(also))
