"""The spool of a sample: all pages in one file, a line each, so that shards can be written side by
side and memory stays small.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from lc_assets.publishing import STAGING_PREFIX
from lc_assets.sample.page import Page, Texts
from lc_assets.sample.plan import Document, Kind, PageFact
from lc_assets.vocabulary import Shard

SPOOL: Final = f"{STAGING_PREFIX}00000000-pages.jsonl"
_PAGE: Final = msgspec.json.Decoder(Page)


@dataclass(frozen=True, slots=True)
class Spooled:
    """What is known of a page in the spool, and where it is."""

    fact: PageFact
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Documents of one shard, with the places of their pages in the spool."""

    target: Path
    shard: Shard
    seed: int
    documents: tuple[Document, ...]
    places: tuple[tuple[int, int], ...]
    """Offset and size in the spool of each document's page."""

    def __str__(self) -> str:
        return self.shard.tag


def write_spool(path: Path, texts: Texts) -> tuple[list[Spooled], str]:
    """Write the pages to a file; return what is known of each, and the digest of all."""
    hasher = hashlib.sha256()
    pages: list[Spooled] = []
    with path.open("wb") as out:
        for page in texts:
            line = msgspec.json.encode(page) + b"\n"
            pages.append(
                Spooled(PageFact(page.url, page.language, page.n_chars), out.tell(), len(line))
            )
            hasher.update(line)
            out.write(line)
    return pages, hasher.hexdigest()


def page_of(document: Document, spool: BinaryIO, offset: int, n_bytes: int) -> Page:
    """The page that a document is, made of the one that lies at a place of the spool."""
    spool.seek(offset)
    page = _PAGE.decode(spool.read(n_bytes))
    if document.kind is Kind.EXCERPT:
        return page.excerpt(document.url, start=document.start, n_chars=document.excerpt_chars)
    return page.copy_at(document.url)


def pages_of(task: ShardTask) -> Iterator[Page]:
    """The pages of a shard's documents."""
    with (task.target / SPOOL).open("rb") as spool:
        for document, place in zip(task.documents, task.places, strict=True):
            yield page_of(document, spool, *place)
