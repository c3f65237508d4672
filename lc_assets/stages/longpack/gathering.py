"""From a plan to packed documents: every text is read once, sent to the groups that need it, and
placed.

::

    claims ─▶ plan ─▶ send, per file of documents ─▶ gather, per group of files ─▶ documents, spans

Memory is bounded by a slice of the plan, or by one document. A file of documents is read once for
its children and once for its roots; a group reads of every file only what was sent to it.
"""

import contextlib
import itertools
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from lc_assets.build.checks import DOCUMENTS_SUFFIX, REST_SUFFIX
from lc_assets.build.tables import FILTERED, TableWriter, read_lines, read_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.execution.exchange import BucketWriter, read_bucket
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.lake.staging import once
from lc_assets.packing.longpack import PackedDocument, Part, Placed, written
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.links.link_tables import SPANS
from lc_assets.stages.longpack.pages import stem_of
from lc_assets.stages.longpack.placing import Packing, plan_parts

SPANS_SUFFIX: Final = ".spans.parquet"

TEXTS: Final = pa.schema(
    {
        "part": "int64",
        "url": "string",
        "text": "string",
    }
)
"""Texts in transit, by group of the roots that need them."""
SPAN_FIELDS: Final = ("role", "depth", "url", "keys", "cluster", "start", "stop", "n_tokens")
SENT_CHARS: Final = 1 << 20
LINES_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTask:
    """One file of documents whose texts are sent where they are ``wanted`` (`Packing.wanted`)."""

    documents: Path
    folder: Path
    wanted: Path
    path: Path

    @property
    def name(self) -> str:
        """Its memo's name."""
        return f"send-{stem_of(self.documents)}"

    def __str__(self) -> str:
        return str(self.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherTask:
    """One group of files of roots whose documents are packed into ``folder``.

    Attributes:
        documents: the files of roots.
        files: their numbers.
        folder: output folder of documents and spans.
        group: number of the group.
        parts: its parts.
        texts: the sent texts of every file.
        paper_exact: how documents are written.
        wanted: of each file, `Packing.wanted`.
        removed: of each file, ids of excluded documents; empty if documents outside packed ones are
            not written.
    """

    documents: tuple[Path, ...]
    files: tuple[int, ...]
    folder: Path
    group: int
    parts: Path
    texts: tuple[Path, ...]
    paper_exact: bool
    wanted: tuple[Path, ...]
    removed: tuple[frozenset[str], ...]

    @property
    def name(self) -> str:
        """Its memo's name."""
        return f"gather-{self.group:06d}"

    def __str__(self) -> str:
        return f"{self.documents[0].name} to {self.documents[-1].name}"


def pack_documents(packing: Packing) -> Counts:
    """Write packed documents, in the columns of `FILTERED`, and their spans; each counts as a
    document seen and kept.

    Raises:
        Mismatch: when a claimed document is missing.
    """
    if not packing.documents:
        return Counts()
    shutil.rmtree(packing.work / "duckdb", ignore_errors=True)
    with queries(packing.work / "duckdb", packing.memory) as asked:
        groups = plan_parts(packing, asked)
    send = [
        SendTask(
            documents=path,
            folder=packing.folder,
            wanted=packing.wanted(n),
            path=packing.work / "texts" / f"{n:06d}.parquet",
        )
        for n, path in enumerate(packing.documents)
    ]
    sent = packing.run(send_texts, send, what="send texts")
    gather = [
        GatherTask(
            documents=tuple(packing.documents[n] for n in files),
            files=tuple(files),
            folder=packing.folder,
            group=group,
            parts=packing.parts(group),
            texts=tuple(task.path for task in send),
            paper_exact=packing.paper_exact,
            wanted=tuple(packing.wanted(n) for n in files),
            removed=()
            if packing.removed is None
            else tuple(
                frozenset(packing.removed.get(stem_of(packing.documents[n]), ())) for n in files
            ),
        )
        for group, files in enumerate(groups)
    ]
    return sent + packing.run(gather_documents, gather, what="pack documents")


@once
def send_texts(task: SendTask) -> Counts:
    """Send the texts of one file's documents to the groups that need them."""
    wanted: dict[int, list[tuple[int, int]]] = {}
    for line, group, part in read_npy(task.wanted).T.tolist():
        wanted.setdefault(line, []).append((group, part))
    counts: Counter[str] = Counter()
    with publish(task.path) as draft, BucketWriter(draft, TEXTS) as writer:
        lines: list[dict[str, Any]] = []
        groups: list[int] = []
        n_waiting = 0

        def send() -> None:
            writer.send(pa.Table.from_pylist(lines, TEXTS), np.array(groups, np.int32))
            lines.clear()
            groups.clear()

        documents = read_lines(task.documents, ["url", "raw_content"], batch_lines=16)
        for line, document in enumerate(documents if wanted else ()):
            text = document["raw_content"]
            for group, part in wanted.get(line, ()):
                lines.append({"part": part, "url": document["url"] or "", "text": text})
                groups.append(group)
                n_waiting += len(text)
                counts.update({"texts sent": 1, "characters sent": len(text)})
            if n_waiting > SENT_CHARS:
                send()
                n_waiting = 0
        send()
    return Counts(extra={"texts sent": 0, "characters sent": 0} | counts)


@once
def gather_documents(task: GatherTask) -> Counts:
    """Pack the documents of one group of files."""
    counted = Counts()
    texts = _Texts(task)
    parts = _by_root(read_lines(task.parts))
    following = next(parts, [])
    for number, (file, path) in enumerate(zip(task.files, task.documents, strict=True)):
        gone = task.removed[number] if task.removed else None
        children = set(read_npy(task.wanted[number])[0].tolist()) if task.removed else set()
        with _Output.publishing(task.folder, stem_of(path), rest=gone is not None) as output:
            for line, document in enumerate(read_lines(path, FILTERED.names, batch_lines=16)):
                here = bool(following) and following[0]["file"] == file
                if here and following[0]["line"] == line:
                    packed = _packed(document, following, texts, paper_exact=task.paper_exact)
                    output.add(document, packed, following)
                    following = next(parts, [])
                elif gone is not None and line not in children and document["id"] not in gone:
                    output.leave(document)
                elif not here and gone is None:
                    break
        if following and following[0]["file"] == file:
            raise Mismatch(
                f"{path}: line {following[0]['line']:,} is claimed and not there; make the claims "
                "again"
            )
        counted += output.counts
    return counted


def packed_documents_of(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
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


def _by_root(parts: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Parts of one root at a time."""
    some: list[dict[str, Any]] = []
    for part in parts:
        if some and (part["file"], part["line"]) != (some[0]["file"], some[0]["line"]):
            yield some
            some = []
        some.append(part)
    if some:
        yield some


def _packed(
    document: dict[str, Any], parts: Sequence[dict[str, Any]], texts: "_Texts", *, paper_exact: bool
) -> PackedDocument:
    def page(part: dict[str, Any]) -> Part:
        url, text = texts.of(part["slice"], part["part"])
        return Part(url=url, text=text, cluster=part["cluster"], n_tokens=part["n_tokens"])

    root = Part(
        url=document["url"] or "", text=document["raw_content"], n_tokens=parts[0]["root_tokens"]
    )
    children = (Placed(page=page(part), keys=part["keys"], depth=part["depth"]) for part in parts)
    return written(root, children, paper_exact=paper_exact)


class _Texts:
    """The texts that were sent to a group, a slice of them in memory; those of several slices are
    first sent on to a bucket each.
    """

    def __init__(self, task: GatherTask) -> None:
        self._task, self._number = task, -1
        self._texts: dict[int, tuple[str, str]] = {}
        table = read_table(task.parts, ["part", "slice"])
        parts, slices = (table[name].to_numpy() for name in ("part", "slice"))
        self._is_sliced = bool(len(slices) and slices[-1])
        self._sliced = task.parts.with_name(f"{task.parts.stem}.texts")
        if self._is_sliced:
            with publish(self._sliced) as draft, BucketWriter(draft, TEXTS) as writer:
                for batch in read_bucket(task.texts, task.group, lines_at_once=LINES_AT_ONCE):
                    places = np.searchsorted(parts, batch["part"].to_numpy())
                    writer.send(pa.Table.from_batches([batch]), slices[places].astype(np.int32))

    def of(self, number: int, part: int) -> tuple[str, str]:
        """Address and text of a part, which is in slice ``number``."""
        if number != self._number:
            self._texts, self._number = {}, number
            paths, bucket = (
                ((self._sliced,), number)
                if self._is_sliced
                else (self._task.texts, self._task.group)
            )
            for batch in read_bucket(paths, bucket, lines_at_once=LINES_AT_ONCE):
                parts, urls, texts = (column.to_pylist() for column in batch.columns)
                self._texts |= dict(zip(parts, zip(urls, texts, strict=True), strict=True))
        if part not in self._texts:
            raise Mismatch(
                f"{self._task.parts}: the text of part {part:,} was not sent; remove the "
                "version's folder and run it again"
            )
        return self._texts[part]


class _Output:
    """The files of one file of roots."""

    def __init__(self, documents: TableWriter, spans: TableWriter, *rest: TableWriter) -> None:
        self._documents, self._spans, self._rest = documents, spans, rest
        self._n_rest = 0
        self._n_docs = self._n_parts = self._n_tokens = self._n_chars = 0

    @classmethod
    @contextlib.contextmanager
    def publishing(cls, folder: Path, stem: str, *, rest: bool) -> Iterator[Self]:
        """Open them; they are published when the block ends well."""
        tables = {DOCUMENTS_SUFFIX: FILTERED, SPANS_SUFFIX: SPANS}
        with contextlib.ExitStack() as stack:
            yield cls(
                *(
                    stack.enter_context(
                        contextlib.closing(
                            TableWriter(
                                stack.enter_context(publish(folder / f"{stem}{suffix}")), schema
                            )
                        )
                    )
                    for suffix, schema in (
                        tables | ({REST_SUFFIX: FILTERED} if rest else {})
                    ).items()
                )
            )

    def add(
        self, document: dict[str, Any], packed: PackedDocument, parts: Sequence[dict[str, Any]]
    ) -> None:
        """Add a packed document; ``document`` is its root's."""
        self._documents.add(document | {"raw_content": packed.text}, n_bytes=4 * len(packed.text))
        ids = [*(part["child_id"] for part in parts), document["id"]]
        for number, (span, name) in enumerate(zip(packed.spans, ids, strict=True)):
            fields = {field: getattr(span, field) for field in SPAN_FIELDS}
            self._spans.add({"id": document["id"], "part": number, "child_id": name, **fields})
            self._n_tokens += span.n_tokens
        self._n_docs += 1
        self._n_parts += len(ids)
        self._n_chars += len(packed.text)

    def leave(self, document: dict[str, Any]) -> None:
        """Add a document that is in no packed one."""
        self._rest[0].add(document, n_bytes=4 * len(document["raw_content"]))
        self._n_rest += 1

    @property
    def counts(self) -> Counts:
        """What was written."""
        extra = {
            "parts": self._n_parts,
            "tokens of parts": self._n_tokens,
            "characters": self._n_chars,
        } | ({"documents in none": self._n_rest} if self._rest else {})
        return Counts(seen=self._n_docs, kept=self._n_docs, extra=extra)
