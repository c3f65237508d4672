"""Decontamination of a plain corpus: scan every document, weigh what was found, let the
contaminated ones go.

::

    OUT/index/      the items' n-grams                       OUT/kept/       documents that go on
    OUT/finds/      every occurrence in every document       OUT/dropped/    documents that do not (or OUT/cut/: as they were)
    OUT/evidence/   document × item: how much, where         OUT/items.parquet, OUT/common.parquet

The corpus is read twice: how common an n-gram is, is known only after all of it was seen.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.evaluations import FIELDS, evaluation_files, read_items
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.formats.npy import read_npy
from lc_assets.publishing import publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.decontamination.contamination_files import (
    COMMON,
    EVIDENCE,
    ITEMS,
    DocumentFile,
    document_counts,
    item_lines,
    lines_of,
    read_finds,
    same_document,
    write_finds,
)
from lc_assets.stages.settings import DecontaminationSettings
from lc_assets.stages.tables import TableWriter, write_table
from lc_assets.text.contamination import (
    ContaminationRule,
    Weigher,
    in_many_items,
    postings,
    spans_of,
    without_spans,
)
from lc_assets.text.gram_scan import Finds, find_grams
from lc_assets.text.grams import GramIndex, GramSettings
from lc_assets.text.indexing import build_index

CONTAMINATED = "contaminated"
CUT, REMOVED = "documents cut", "characters cut"
TOUCHED, SEARCHED = "documents with any n-gram", "characters"
IGNORED = "ignored.npy"
MOST_COMMON = 1000
"""Common n-grams that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One file of the corpus: to be scanned, or to be sorted into what goes on and what does
    not.
    """

    source: Path
    out: Path
    stem: str
    text_field: str | None
    settings: DecontaminationSettings

    def __str__(self) -> str:
        return str(self.source)

    def place(self, kind: str, suffix: str) -> Path:
        """Where this file's part of one kind lies."""
        return self.out / kind / f"{self.stem}{suffix}"


class Decontaminated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        counts: documents, kept and dropped.
        items: number of items by verdict; they add up to all items.
        n_grams: distinct n-grams; ``index_bytes``: memory of the index; ``ignored``: n-grams that
            counted for nothing.
        worst: lines of ``items.parquet``, the most covered items first.
    """

    counts: Counts
    items: dict[str, int]
    n_grams: int
    index_bytes: int
    ignored: int
    worst: list[dict[str, Any]]


def decontaminate(
    sources: Sequence[Path],
    out: Path,
    settings: DecontaminationSettings,
    *,
    executor: Executor,
    text_field: str | None = None,
) -> Decontaminated:
    """Let go of the documents of a corpus that hold too much of evaluation items.

    Raises:
        BadInput: when an evaluation set cannot be read or holds nothing to look for, or ``out``
            lies in the corpus.
    """
    if any(out.resolve().is_relative_to(source.resolve()) for source in sources):
        raise BadInput(
            f"{out} lies in the corpus that is read; write elsewhere, or it would be read the "
            "next time"
        )
    index = index_of(settings)
    write_index(out / "index", index)
    tasks: list[FileTask] = []

    def scan_task(source: Path, stem: Path) -> FileTask:
        name = stem.relative_to(out / "finds").as_posix()
        tasks.append(
            FileTask(source=source, out=out, stem=name, text_field=text_field, settings=settings)
        )
        return tasks[-1]

    over_corpus(sources, out / "finds", scan_task, scan_file, executor=executor, what="scan")
    ignored = _ignore(
        out,
        index,
        document_counts([task.place("finds", ".parquet") for task in tasks], index.n_grams),
        settings,
    )
    counts = Counts.total(counts for _, counts in executor.run(sort_file, tasks, what="sort"))
    lines = item_lines(
        index,
        Weigher(index, ignored).item_grams,
        [task.place("evidence", ".parquet") for task in tasks],
    )
    write_table(out / "items.parquet", pa.Table.from_pylist(lines, schema=ITEMS))
    verdicts = [line["verdict"] for line in lines]
    return Decontaminated(
        counts=counts,
        items={verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        n_grams=index.n_grams,
        index_bytes=index.n_bytes,
        ignored=len(ignored),
        worst=[line for line in lines if line["documents"]],
    )


def index_of(settings: DecontaminationSettings) -> GramIndex:
    """The n-grams of the evaluation sets of some settings.

    Raises:
        BadInput: when a set cannot be read, or no item of any has enough words.
    """
    files = evaluation_files(Path(source) for source in settings.against)
    items = (item for file in files for item in read_items(file, settings.fields))
    grams = GramSettings(
        ngram=settings.ngram,
        min_words=min(settings.min_words, settings.ngram),
        sample=settings.sample,
    )
    index = build_index(items, grams)
    if not index.n_grams:
        n_empty = int((index.item_words == 0).sum())
        raise BadInput(
            f"{', '.join(map(str, settings.against))}: {len(index.item_ids):,} items, {n_empty:,} "
            "of them without text, none with "
            f"{grams.min_words} words; fields looked for: {', '.join(settings.fields or FIELDS)}; "
            "name others with --field"
        )
    return index


def scan_file(task: FileTask) -> Counts:
    """Publish what the documents of one file hold of the items."""
    index = open_index(task.out / "index")
    n_seen = n_touched = n_chars = 0

    def found() -> Iterator[tuple[int, str, Finds]]:
        nonlocal n_seen, n_touched, n_chars
        for place, document in enumerate(read_corpus(task.source, text_field=task.text_field)):
            n_seen += 1
            if isinstance(document, Unread):
                continue
            n_chars += len(document.text)
            finds = find_grams(document.text, index)
            if len(finds):
                n_touched += 1
                yield place, document.id, finds

    write_finds(task.place("finds", ".parquet"), found())
    return Counts(seen=n_seen, kept=n_seen, extra={TOUCHED: n_touched, SEARCHED: n_chars})


def sort_file(task: FileTask) -> Counts:
    """Publish the documents of one file by what becomes of them, and the evidence."""
    remaining = read_finds(task.place("finds", ".parquet"))
    waiting = next(remaining, None)
    with contextlib.ExitStack() as stack:
        sorting = _Sorting(stack, task)
        for place, document in enumerate(read_corpus(task.source, text_field=task.text_field)):
            if isinstance(document, Unread):
                sorting.dropped[document.why] += 1
            elif waiting is None or waiting[0] != place:
                sorting.keep(document)
            else:
                same_document(place, document.id, waiting[1], task.source)
                sorting.judge(document, waiting[2])
                waiting = next(remaining, None)
        return sorting.counts()


class _Sorting:
    """The files that the documents of one file go to, and how many went where."""

    def __init__(self, stack: contextlib.ExitStack, task: FileTask) -> None:
        self.settings = task.settings
        self.rule = ContaminationRule(mode=task.settings.mode, threshold=task.settings.threshold)
        self.index = open_index(task.out / "index")
        self.weigher = Weigher(self.index, read_npy(task.out / "index" / IGNORED).tolist())
        self.kept = DocumentFile(stack, task.place("kept", ".jsonl.gz"))
        self.gone = DocumentFile(stack, task.place("cut" if self.cuts else "dropped", ".jsonl.gz"))
        draft = stack.enter_context(publish(task.place("evidence", ".parquet")))
        self.table = stack.enter_context(contextlib.closing(TableWriter(draft, EVIDENCE)))
        self.n_kept, self.dropped, self.extra = 0, Counter[str](), Counter[str]()

    @property
    def cuts(self) -> bool:
        """Whether what was found is cut out of a document instead of dropping it."""
        return self.settings.action == "cut"

    def keep(self, document: CorpusDocument) -> None:
        self.n_kept += 1
        self.kept.add(document)

    def judge(self, document: CorpusDocument, finds: Finds) -> None:
        overlaps = self.weigher.overlaps_of(finds)
        for line in lines_of(document.id, overlaps, self.index, self.rule.condemns):
            self.table.add(line)
        condemning = [overlap.item for overlap in overlaps if self.rule.condemns(overlap)]
        if not condemning:
            self.keep(document)
            return
        self.gone.add(document)
        if not self.cuts:
            self.dropped[CONTAMINATED] += 1
            return
        text = without_spans(
            document.text,
            spans_of(finds, self.weigher.grams_of(finds, condemning)),
            self.settings.margin,
        )
        self.extra.update({CUT: 1, REMOVED: len(document.text) - len(text)})
        self.keep(msgspec.structs.replace(document, text=text))

    def counts(self) -> Counts:
        dropped = dict(self.dropped)
        return Counts(
            seen=self.n_kept + self.dropped.total(),
            kept=self.n_kept,
            dropped=dropped,
            failed_rules=dropped,
            extra=dict(self.extra),
        )


def _ignore(
    out: Path, index: GramIndex, documents: NDArray[np.int64], settings: DecontaminationSettings
) -> NDArray[np.int64]:
    """Decide which n-grams count for nothing, and list the common ones."""
    in_items = in_many_items(index, settings.max_items)
    in_documents = (
        np.zeros(0, np.int64)
        if settings.ignore_common is None
        else np.flatnonzero(documents > settings.ignore_common)
    )
    ignored = np.union1d(in_items, in_documents)
    with publish(out / "index" / IGNORED) as draft, draft.open("wb") as file:
        np.save(file, ignored)
    most = np.argsort(-documents, kind="stable")[:MOST_COMMON]
    listed = np.union1d(
        ignored[np.argsort(-documents[ignored], kind="stable")][:MOST_COMMON],
        most[documents[most] > 1],
    )
    lines = [
        {
            "gram": int(gram),
            "words": " ".join(index.words_of(gram)),
            "items": len(np.unique(postings(index, np.array([gram]))[0])),
            "documents": int(documents[gram]),
            "ignored": bool(np.isin(gram, ignored)),
        }
        for gram in listed[np.argsort(-documents[listed], kind="stable")].tolist()
    ]
    write_table(out / "common.parquet", pa.Table.from_pylist(lines, schema=COMMON))
    return ignored
