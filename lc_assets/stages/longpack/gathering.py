"""From a plan to packed documents: every text is read once, sent to the groups that need it, and
placed.

::

    claims ─▶ plan ─▶ send, per file of documents ─▶ gather, per group of files ─▶ documents, spans

Memory is bounded by a bucket, or by one document. A file of documents is read once for
its children and once for its roots; a group reads of every file only what was sent to its
buckets.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, REST_SUFFIX, SPANS_SUFFIX
from lc_assets.builds.tables import (
    FILTERED,
    Line,
    opened_table,
    read_lines,
    read_table,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.execution.exchange import BucketWriter, read_bucket
from lc_assets.lake.receipts import SCRATCH
from lc_assets.packing.longpack import PackedDocument, Part, Placed, written
from lc_assets.publishing import publish
from lc_assets.records import record
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.links.link_tables import SPANS
from lc_assets.stages.longpack.pages import Run
from lc_assets.stages.longpack.placing import SENT, Packing, SendTask, plan_parts

TEXTS = pa.schema({"part": "int64", "url": "string", "text": "string"})
"""Texts in transit, by bucket of the roots that need them."""
SPAN_FIELDS = ("role", "depth", "url", "keys", "cluster", "start", "stop", "n_tokens")
LINES_AT_ONCE = 64
END: tuple[tuple[int, int], Iterator[Any]] = ((-1, -1), iter(()))


@record
class GatherTask:
    """One group of files of roots, whose documents are packed.

    Attributes:
        packing: what is packed.
        files: numbers of the files.
        group: number of the group.
        removed: of each file, ids of excluded documents; empty if documents outside packed ones are
            not written.
    """

    packing: Packing
    files: tuple[int, ...]
    group: int
    removed: tuple[frozenset[str], ...]

    @property
    def folder(self) -> Path:
        """Output folder of documents and spans."""
        return self.packing.folder

    @property
    def name(self) -> str:
        """Its memo's name."""
        return f"gather-{self.group:06d}"

    def __str__(self) -> str:
        paths = self.packing.documents
        return f"{paths[self.files[0]].name} to {paths[self.files[-1]].name}"


def pack_documents(
    packing: Packing, run: Run, removed: Mapping[str, Collection[str]] | None = None
) -> Counts:
    """Write packed documents, in the columns of `FILTERED`, and their spans; each counts as a
    document seen and kept.

    Args:
        packing: what is packed.
        run: runs the tasks.
        removed: ids of excluded documents, by shard; if given, the documents that are in no packed
            one are written too.

    Raises:
        Mismatch: when a claimed document is missing.
    """
    if not packing.documents:
        return Counts()
    with queries(packing.folder / SCRATCH / "duckdb") as database:
        groups = plan_parts(packing, database)
    gone = [
        frozenset(() if removed is None else removed.get(stem_of(path), ()))
        for path in packing.documents
    ]
    gather = [
        GatherTask(
            packing=packing,
            files=tuple(files),
            group=group,
            removed=() if removed is None else tuple(gone[n] for n in files),
        )
        for group, files in enumerate(groups)
    ]
    sent = run(send_texts, packing.send, what="send texts")
    return sent + run(gather_documents, gather, what="pack documents")


def stem_of(documents: Path) -> str:
    """The shard's name."""
    return documents.name.removesuffix(DOCUMENTS_SUFFIX)


def send_texts(task: SendTask) -> Counts:
    """Send the texts of one file's documents to the buckets that need them."""
    sent = read_table(task.sent)
    lines, buckets, parts = (sent[name].to_numpy() for name in SENT.names)
    first = n_chars = 0
    with (
        publish(task.path) as draft,
        BucketWriter(draft, TEXTS) as writer,
        opened_table(task.documents) as documents,
    ):
        for batch in documents.iter_batches(LINES_AT_ONCE, columns=["url", "raw_content"]):
            low, high = np.searchsorted(lines, [first, first + batch.num_rows]).tolist()
            for start in range(low, high, LINES_AT_ONCE):
                some = slice(start, min(start + LINES_AT_ONCE, high))
                found = batch.take(pa.array(lines[some] - first))
                urls, texts = pc.fill_null(found["url"], ""), found["raw_content"]
                n_chars += pc.sum(pc.utf8_length(texts)).as_py()
                writer.send(pa.table([parts[some], urls, texts], schema=TEXTS), buckets[some])
            first += batch.num_rows
    return Counts(extra={"texts sent": len(lines), "characters sent": n_chars})


def gather_documents(task: GatherTask) -> Counts:
    """Pack the documents of one group of files."""
    counts, texts = Counts(), _Texts(task)
    parts_of_group = read_lines(task.packing.parts(task.group))
    roots = itertools.groupby(parts_of_group, key=lambda part: (part["file"], part["line"]))
    (file, place), parts = next(roots, END)
    for n, number in enumerate(task.files):
        path = task.packing.documents[number]
        gone = task.removed[n] if task.removed else frozenset()
        children = set(read_table(task.packing.send[number].sent)["line"].to_pylist())
        with contextlib.ExitStack() as stack:
            output = _Output(task, stem_of(path), stack)
            for line, document in enumerate(read_lines(path, FILTERED.names, batch_lines=16)):
                if (file, place) == (number, line):
                    own = list(parts)
                    packed = _packed(document, own, texts, paper_exact=task.packing.paper_exact)
                    output.add(document, packed, own)
                    (file, place), parts = next(roots, END)
                elif task.removed and line not in children and document["id"] not in gone:
                    output.leave(document)
                elif file != number and not task.removed:
                    break
        if file == number:
            raise Mismatch(
                f"{path}: line {place:,} is claimed and not there; make the claims again"
            )
        counts += output.counts
    return counts


def packed_documents_of(path: Path) -> Iterator[tuple[Line, list[Line]]]:
    """Every packed document of a file with its spans, read from the file beside it; an empty list
    if there are none.
    """
    spans = path.with_name(path.name.replace(DOCUMENTS_SUFFIX, SPANS_SUFFIX))
    found = itertools.groupby(
        read_lines(spans) if spans.is_file() else (), key=lambda span: span["id"]
    )
    ahead = next(found, None)
    for document in read_lines(path, ["id", "url", "raw_content"], batch_lines=4):
        own = list(ahead[1]) if ahead and ahead[0] == document["id"] else []
        yield document, own
        ahead = next(found, None) if own else ahead


def _packed(
    document: Line, parts: Sequence[Line], texts: "_Texts", *, paper_exact: bool
) -> PackedDocument:
    def page(part: Line) -> Part:
        url, text = texts.of(part["bucket"], part["part"])
        return Part(url=url, text=text, cluster=part["cluster"], n_tokens=part["n_tokens"])

    root = Part(
        url=document["url"] or "", text=document["raw_content"], n_tokens=parts[0]["root_tokens"]
    )
    children = (Placed(page=page(part), keys=part["keys"], depth=part["depth"]) for part in parts)
    return written(root, children, paper_exact=paper_exact)


class _Texts:
    """The texts that were sent to a bucket, one bucket at a time."""

    def __init__(self, task: GatherTask) -> None:
        self._paths = [send.path for send in task.packing.send]
        self._bucket = -1
        self._texts: dict[int, tuple[str, str]] = {}

    def of(self, bucket: int, part: int) -> tuple[str, str]:
        """Address and text of a part, which was sent to the bucket."""
        if bucket != self._bucket:
            self._texts, self._bucket = {}, bucket
            for batch in read_bucket(self._paths, bucket, lines_at_once=LINES_AT_ONCE):
                parts, urls, texts = (column.to_pylist() for column in batch.columns)
                self._texts |= zip(parts, zip(urls, texts, strict=True), strict=True)
        if part not in self._texts:
            raise Mismatch(
                f"{self._paths[0].parent}: the text of part {part:,} is missing; remove the "
                "version's folder and run it again"
            )
        return self._texts[part]


class _Output:
    """The files of one file of roots."""

    def __init__(self, task: GatherTask, stem: str, stack: contextlib.ExitStack) -> None:
        tables = {DOCUMENTS_SUFFIX: FILTERED, SPANS_SUFFIX: SPANS}
        tables |= {REST_SUFFIX: FILTERED} if task.removed else {}
        self._tables = {
            suffix: stack.enter_context(writing_table(task.folder / f"{stem}{suffix}", schema))
            for suffix, schema in tables.items()
        }
        self._n_docs = 0
        self._extra = {"parts": 0, "tokens of parts": 0, "characters": 0}
        self._extra |= {"documents in none": 0} if task.removed else {}

    def add(self, document: Line, packed: PackedDocument, parts: Sequence[Line]) -> None:
        """Add a packed document; ``document`` is its root's."""
        line = document | {"raw_content": packed.text}
        self._tables[DOCUMENTS_SUFFIX].add(line, n_bytes=4 * len(packed.text))
        ids = [*(part["child_id"] for part in parts), document["id"]]
        for number, (span, name) in enumerate(zip(packed.spans, ids, strict=True)):
            fields = {field: getattr(span, field) for field in SPAN_FIELDS}
            place = {"id": document["id"], "part": number, "child_id": name}
            self._tables[SPANS_SUFFIX].add(place | fields)
            self._extra["tokens of parts"] += span.n_tokens
        self._n_docs += 1
        self._extra["parts"] += len(ids)
        self._extra["characters"] += len(packed.text)

    def leave(self, document: Line) -> None:
        """Add a document that is in no packed one."""
        self._tables[REST_SUFFIX].add(document, n_bytes=4 * len(document["raw_content"]))
        self._extra["documents in none"] += 1

    @property
    def counts(self) -> Counts:
        """What was written."""
        return Counts(seen=self._n_docs, kept=self._n_docs, extra=self._extra)
