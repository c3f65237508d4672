"""Similarity packs of a plain corpus: pages without links, each beside those that it is most like.

::

    OUT/documents/00000.jsonl.gz …  packed documents with their spans (`joined_texts`); the root
    comes first
    OUT/summary.json                what was counted

Three passes: texts are laid down and their words counted, a task per file; pages are compared and
placed; packs are written, a task per file of packs. The result does not depend on files, their
order, or workers. A page whose id and text came before is left out. Memory: some 1.5 KB a page
while pages are placed (64 terms of it, twice; its place; its name), and one document; a hundred
thousand pages take 200 MB. Disk: the texts once more, until the end.

Here: reading and writing. Not here: who is like whom (`lc_assets.packing.similarity`).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.packing.similarity import Similarity, SimilarPacks, similar_packs
from lc_assets.packing.term_vectors import TermCounts, TermVectors, term_vectors
from lc_assets.stages.packing.joined_texts import (
    PART_END,
    PART_TOKENS,
    Packed,
    Part,
    publish_packed,
)
from lc_assets.stages.packing.spooling import (
    Looked,
    SpooledText,
    SpoolTask,
    read_spooled,
    spool,
    spool_beside,
    tables,
)
from lc_assets.text.duplicates.shingles import term_counts

COLUMNS: Final = pa.schema([("terms", pa.list_(pa.int32())), ("counts", pa.list_(pa.int32()))])
EMPTY: Final = "empty"
AGAIN: Final = "the same page again"
AT_ONCE: Final = 4096
"""Pages whose words are in memory at once."""


class SimilarSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How pages are packed.

    Attributes:
        max_tokens: of a pack; a longer page is a pack of its own.
        similarity: what a neighbour is.
        seed: of the order in which pages become roots.
        tokenizer: that counts tokens.
        text_field: where a record's text is.
    """

    max_tokens: int
    similarity: Similarity = Similarity()
    seed: int = 64
    tokenizer: str = "gpt2"
    text_field: str | None = None


def pack_similar(
    sources: Sequence[Path], out: Path, settings: SimilarSettings, *, executor: Executor
) -> Packed:
    """Pack a corpus and write the results below ``out``.

    Raises:
        BadInput: when the sources, the tokenizer or a number cannot be meant.
        CorruptFile: when a file is damaged.
        StorageFull, NotWritable: when the place cannot be written to.
    """
    with spool_beside(out) as folder:
        tasks = [
            SpoolTask(
                read=partial(read_corpus, file, text_field=settings.text_field),
                where=str(file),
                folder=folder,
                number=number,
                look=look,
                columns=COLUMNS,
                tokenizer=settings.tokenizer,
            )
            for number, file in enumerate(corpus_files(sources))
        ]
        counts = spool(tasks, executor=executor)
        pages, keys, kept = _pages(folder)
        vectors = read_vectors(folder, counts.kept).pages(kept)
        lengths = np.array([page.n_tokens + PART_TOKENS for page in pages], np.int64)
        placed = similar_packs(
            vectors,
            lengths,
            keys,
            max_tokens=settings.max_tokens,
            similarity=settings.similarity,
            seed=settings.seed,
        )
        again = {AGAIN: counts.kept - len(pages)} if counts.kept > len(pages) else {}
        read = Counts(
            seen=counts.seen, kept=len(pages), dropped=counts.dropped | again, extra=counts.extra
        )
        return publish_packed(
            out,
            folder,
            _documents(placed, pages),
            read,
            root="first",
            max_tokens=settings.max_tokens,
            executor=executor,
        )


def look(document: CorpusDocument) -> Looked | str:
    """A page as it is to be written, and its words."""
    text = document.text.strip()
    if not text:
        return EMPTY
    terms, counts = term_counts(text)
    return Looked(text=f"{text}{PART_END}", columns={"terms": terms, "counts": counts})


def read_vectors(folder: Path, n_pages: int) -> TermVectors:
    """Vectors of all pages of a spool, in its order; twice over its tables, some pages at a
    time.
    """
    pages_with = sum(
        (counts.pages_with() for counts in _counts(folder)), start=np.zeros(1, np.int64)
    )
    return TermVectors.joined(
        term_vectors(counts, pages_with, n_pages) for counts in _counts(folder)
    )


def _counts(folder: Path) -> Iterator[TermCounts]:
    for path in tables(folder):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(AT_ONCE, columns=COLUMNS.names):
                terms, counts = (batch.column(name) for name in COLUMNS.names)
                begins = np.asarray(terms.offsets, np.int64)
                yield TermCounts(
                    begins=begins - begins[0],
                    terms=np.asarray(terms.flatten()),
                    counts=np.asarray(counts.flatten()),
                )


def _pages(folder: Path) -> tuple[list[SpooledText], list[str], np.ndarray]:
    """The pages that differ, a key of each, and their places in the spool; of equal ones, any:
    nobody could tell which it was.
    """
    first: dict[str, tuple[int, SpooledText]] = {}
    for place, (page, said) in enumerate(read_spooled(folder)):
        first.setdefault(f"{page.id}\0{said['content']}", (place, page))
    return (
        [page for _, page in first.values()],
        list(first),
        np.array([place for place, _ in first.values()], np.int64),
    )


def _documents(placed: SimilarPacks, pages: Sequence[SpooledText]) -> list[tuple[Part, ...]]:
    depth = dict(zip(placed.order.tolist(), placed.depths().tolist(), strict=True))
    return [
        tuple(Part(text=pages[page], depth=depth[page]) for page in pack) for pack in placed.packs()
    ]
