"""Documents that were made of several: one text, and a span for every part of it.

::

    {"id": …, "url": …, "n_tokens": …, "text": …,
     "spans": [{"role": "child", "url": …, "keys": …, "start": 0, "stop": 120, "depth": 1,
     "child_id": …, "n_tokens": …}, …]}

A document has one root, whose id and address are its own; every other part is a child. Spans touch,
and together are the whole text; ``start`` and ``stop`` count characters.

Here: parts to lines, and files of them. Not here: which parts stand together (`lc_assets.packing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.execution.executor import Executor
from lc_assets.formats.gzipping import gzipped
from lc_assets.packing.lengths import BucketCount, bucket_counts
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.packing.spooling import SpooledText, read_texts

PART_END: Final = "\n\n"
PART_TOKENS: Final = 2
"""Set aside per part: where two meet, tokens fall otherwise than in either alone, one more of
GPT-2's.
"""
DOCUMENTS_PER_FILE: Final = 1000
DOCUMENTS: Final = "documents"
SUFFIX: Final = ".jsonl.gz"
SUMMARY_FILE: Final = "summary.json"


class JoinedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One part: ``text[start:stop]``, with the line before it and the blank line after it."""

    role: Literal["root", "child"]
    url: str
    keys: str
    start: int
    stop: int
    depth: int
    child_id: str
    n_tokens: int


class JoinedText(msgspec.Struct, frozen=True, kw_only=True):
    """One document and its parts."""

    id: str
    url: str
    n_tokens: int
    text: str
    spans: tuple[JoinedSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Where a part's text is, and what is said of it: ``keys`` on a line before it, and ``depth``,
    0 for the root.
    """

    text: SpooledText
    keys: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningTask:
    """Documents to be written to one file: the parts of each, in order, and which of them is the
    root.
    """

    path: Path
    spool: Path
    documents: tuple[tuple[Part, ...], ...]
    root: Literal["first", "last"]

    def __str__(self) -> str:
        return str(self.path)


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``summary.json``: what became of the parts.

    Attributes:
        seen: documents met; ``kept``: that are parts of packs; ``dropped``: the others, by reason.
        packs: how many there are; ``alone``: of one part; ``too_long``: of one part that is longer
            than ``max_tokens``.
        max_tokens: the limit.
        before: documents and tokens by length, as they came; ``after``: packs.
        also: further counts.
    """

    seen: int
    kept: int
    dropped: dict[str, int]
    packs: int
    alone: int
    too_long: int
    max_tokens: int
    before: tuple[BucketCount, ...]
    after: tuple[BucketCount, ...]
    extra: dict[str, int] = {}


def publish_packed(
    out: Path,
    spool: Path,
    documents: Sequence[tuple[Part, ...]],
    read: Counts,
    *,
    root: Literal["first", "last"],
    max_tokens: int,
    executor: Executor,
) -> Packed:
    """Write packs into files of `DOCUMENTS_PER_FILE`, ``OUT/documents/00000.jsonl.gz`` and so on,
    and what was counted.

    Args:
        out: folder; files of packs that stand there and are not written again are removed.
        spool: where the texts are.
        documents: parts of each, in order.
        read: what was counted of the parts.
        root: which part is the root.
        max_tokens: of a pack.
        executor: runs a task per file.

    Raises:
        Mismatch: when not every part that was kept is in one pack.
        StorageFull, NotWritable: when the place cannot be written to.
    """
    before = np.array([part.text.n_tokens for parts in documents for part in parts], np.int64)
    if len(before) != read.kept:
        raise Mismatch(f"{read.kept:,} parts were kept, and packs hold {len(before):,}")
    after = np.array([sum(part.text.n_tokens for part in parts) for parts in documents], np.int64)
    alone = np.array([len(parts) == 1 for parts in documents], np.bool_)
    tasks = [
        JoiningTask(
            path=out / DOCUMENTS / f"{number:05}{SUFFIX}",
            spool=spool,
            documents=tuple(documents[begin : begin + DOCUMENTS_PER_FILE]),
            root=root,
        )
        for number, begin in enumerate(range(0, len(documents), DOCUMENTS_PER_FILE))
    ]
    for _ in executor.run(write_joined, tasks, what="write packs"):
        pass
    for path in set((out / DOCUMENTS).glob(f"*{SUFFIX}")) - {task.path for task in tasks}:
        path.unlink()
    packed = Packed(
        seen=read.seen,
        kept=read.kept,
        dropped=read.dropped,
        packs=len(documents),
        alone=int(alone.sum()),
        too_long=int((after[alone] > max_tokens).sum()),
        max_tokens=max_tokens,
        before=tuple(bucket_counts(before)),
        after=tuple(bucket_counts(after)),
        extra=read.extra,
    )
    publish_bytes(
        out / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(packed), indent=1) + b"\n"
    )
    return packed


def write_joined(task: JoiningTask) -> Counts:
    """Write the documents of one file."""
    with publish(task.path) as draft, gzipped(draft) as out:
        for parts in task.documents:
            out.write(
                msgspec.json.encode(
                    joined(
                        parts, read_texts(task.spool, [part.text for part in parts]), root=task.root
                    )
                )
                + b"\n"
            )
    return Counts(seen=len(task.documents), kept=len(task.documents))


def joined(
    parts: Sequence[Part], texts: Sequence[str], *, root: Literal["first", "last"]
) -> JoinedText:
    r"""Put parts together.

    Args:
        parts: in order.
        texts: of each, as written, with `PART_END` behind it; the document ends without.
        root: which part is the root.

    >>> parts = [Part(text=SpooledText(id=name, url="", file=0, start=0, n_bytes=0, n_tokens=3)) for name in "ab"]
    >>> document = joined(parts, ["Bees fly.\n\n", "Wasps too.\n\n"], root="first")
    >>> document.id, document.text, [document.text[span.start : span.stop] for span in document.spans]
    ('a', 'Bees fly.\n\nWasps too.', ['Bees fly.\n\n', 'Wasps too.'])
    """
    written = [*texts[:-1], texts[-1].removesuffix(PART_END)]
    at_root = 0 if root == "first" else len(parts) - 1
    places = pairwise(accumulate(map(len, written), initial=0))
    spans = tuple(
        JoinedSpan(
            role="root" if number == at_root else "child",
            url=part.text.url,
            keys=part.keys,
            start=start,
            stop=stop,
            depth=part.depth,
            child_id=part.text.id,
            n_tokens=part.text.n_tokens,
        )
        for number, (part, (start, stop)) in enumerate(zip(parts, places, strict=True))
    )
    chosen = parts[at_root].text
    return JoinedText(
        id=chosen.id,
        url=chosen.url,
        n_tokens=sum(span.n_tokens for span in spans),
        text="".join(written),
        spans=spans,
    )
