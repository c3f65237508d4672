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

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.containers import json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.formats.gzipping import gzipped
from lc_assets.formats.npy import read_npy
from lc_assets.publishing import publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.decontamination.evidence import (
    CONTAMINATED,
    EVIDENCE,
    document_counts,
    ignored_grams,
    index_of,
    lines_of,
    read_finds,
    write_common,
    write_finds,
    write_items,
)
from lc_assets.stages.settings import DecontaminationSettings
from lc_assets.stages.tables import TableWriter, count_lines
from lc_assets.text.contamination import ContaminationRule, Weigher, spans_of, without_spans
from lc_assets.text.gram_scan import Finds

CUT, REMOVED = "documents cut", "characters cut"
TOUCHED, SEARCHED = "documents with any n-gram", "characters"
IGNORED = "ignored.npy"


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

    def path(self, kind: str, suffix: str) -> Path:
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
    documents = document_counts([task.path("finds", ".parquet") for task in tasks], index.n_grams)
    ignored = ignored_grams(index, settings, documents)
    with publish(out / "index" / IGNORED) as staging, staging.open("wb") as file:
        np.save(file, ignored)
    write_common(out / "common.parquet", index, documents, ignored)
    counts = Counts.total(counts for _, counts in executor.run(sort_file, tasks, what="sort"))
    evidence = [task.path("evidence", ".parquet") for task in tasks]
    lines = write_items(out / "items.parquet", index, ignored, evidence)
    verdicts = [line["verdict"] for line in lines]
    return Decontaminated(
        counts=counts,
        items={verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        n_grams=index.n_grams,
        index_bytes=index.n_bytes,
        ignored=len(ignored),
        worst=[line for line in lines if line["documents"]],
    )


def scan_file(task: FileTask) -> Counts:
    """Publish what the documents of one file hold of the items."""
    n_seen = n_chars = 0

    def documents() -> Iterator[tuple[int, str, str]]:
        nonlocal n_seen, n_chars
        for number, document in enumerate(read_corpus(task.source, text_field=task.text_field)):
            n_seen += 1
            if isinstance(document, CorpusDocument):
                n_chars += len(document.text)
                yield number, document.id, document.text

    finds = task.path("finds", ".parquet")
    write_finds(finds, documents(), open_index(task.out / "index"))
    return Counts(seen=n_seen, kept=n_seen, extra={TOUCHED: count_lines(finds), SEARCHED: n_chars})


def sort_file(task: FileTask) -> Counts:
    """Publish the documents of one file by what becomes of them, and the evidence."""
    remaining = read_finds(task.path("finds", ".parquet"))
    waiting = next(remaining, None)
    with contextlib.ExitStack() as stack:
        sorting = _Sorting(stack, task)
        for place, document in enumerate(read_corpus(task.source, text_field=task.text_field)):
            if isinstance(document, Unread):
                sorting.dropped[document.why] += 1
            elif waiting is None or waiting[0] != place:
                sorting.keep(document)
            else:
                if document.id != waiting[1]:
                    raise Mismatch(
                        f"{task.source}: document {place} was {waiting[1]} when it was scanned and "
                        f"is {document.id} now; run it again"
                    )
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
        self.kept, self.gone = (
            stack.enter_context(gzipped(stack.enter_context(publish(task.path(kind, ".jsonl.gz")))))
            for kind in ("kept", "cut" if self.cuts else "dropped")
        )
        draft = stack.enter_context(publish(task.path("evidence", ".parquet")))
        self.table = stack.enter_context(contextlib.closing(TableWriter(draft, EVIDENCE)))
        self.n_kept, self.dropped, self.extra = 0, Counter[str](), Counter[str]()

    @property
    def cuts(self) -> bool:
        """Whether what was found is cut out of a document instead of dropping it."""
        return self.settings.action == "cut"

    def keep(self, document: CorpusDocument) -> None:
        self.n_kept += 1
        self.kept.write(json_line(document))

    def judge(self, document: CorpusDocument, finds: Finds) -> None:
        overlaps = self.weigher.overlaps_of(finds)
        for line in lines_of(document.id, overlaps, self.index, self.rule.condemns):
            self.table.add(line)
        condemning = [overlap.item for overlap in overlaps if self.rule.condemns(overlap)]
        if not condemning:
            self.keep(document)
            return
        self.gone.write(json_line(document))
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
