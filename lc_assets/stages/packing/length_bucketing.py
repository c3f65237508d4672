"""Documents of a plain corpus, each into the folder of its length in tokens.

::

    OUT/4K-8K/{stem}.jsonl.gz …    the documents of one bucket, as they came
    OUT/summary.json               what was counted

A task per file; memory: one document. Here: files. Not here: the buckets
(`lc_assets.packing.lengths`).
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import numpy as np

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.containers import json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.packing.lengths import EDGES, BucketCount, bucket_names, bucket_of
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.packing.spooling import GAVE_UP, fastest

SUMMARY_FILE: Final = "summary.json"
DOCUMENTS, TOKENS = "documents: ", "tokens: "


class Bucketed(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``summary.json``: documents met, those in buckets, the others by reason, and each
    bucket.
    """

    seen: int
    kept: int
    dropped: dict[str, int]
    buckets: tuple[BucketCount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTask:
    """One file, to be parted into ``OUT/{bucket}/{stem}.jsonl.gz``."""

    file: Path
    out: Path
    stem: str
    edges: tuple[int, ...]
    tokenizer: str
    text_field: str | None

    def __str__(self) -> str:
        return str(self.file)


def bucket_corpus(
    sources: Sequence[Path],
    out: Path,
    *,
    edges: Sequence[int] = EDGES,
    tokenizer: str = "gpt2",
    text_field: str | None = None,
    executor: Executor,
) -> Bucketed:
    """Part a corpus by the length of its documents, and write the results below ``out``.

    Raises:
        BadInput: when the sources, the tokenizer or the edges cannot be meant.
        CorruptFile: when a file is damaged.
    """
    names = bucket_names(edges)
    fastest(tokenizer)

    def task_of(file: Path, stem: Path) -> BucketTask:
        return BucketTask(
            file=file,
            out=out,
            stem=stem.relative_to(out).as_posix(),
            edges=tuple(edges),
            tokenizer=tokenizer,
            text_field=text_field,
        )

    counts = over_corpus(
        sources, out, task_of, bucket_file, executor=executor, what="part by length"
    )
    total = max(sum(counts.extra.get(f"{TOKENS}{name}", 0) for name in names), 1)
    buckets = tuple(
        BucketCount(
            name=name,
            n_docs=counts.extra.get(f"{DOCUMENTS}{name}", 0),
            n_tokens=n_tokens,
            share=n_tokens / total,
        )
        for name in names
        for n_tokens in [counts.extra.get(f"{TOKENS}{name}", 0)]
    )
    bucketed = Bucketed(seen=counts.seen, kept=counts.kept, dropped=counts.dropped, buckets=buckets)
    publish_bytes(
        out / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(bucketed), indent=1) + b"\n"
    )
    return bucketed


def bucket_file(task: BucketTask) -> Counts:
    """Part one file; a bucket that none of its documents is in has no file of it."""
    names = bucket_names(task.edges)
    dropped, extra = Counter[str](), Counter[str]()
    with contextlib.ExitStack() as stack:
        opened = dict[str, BinaryIO]()
        for document in read_corpus(task.file, text_field=task.text_field):
            if isinstance(document, Unread):
                dropped[document.why] += 1
                continue
            n_tokens = _n_tokens(document.text, task.tokenizer)
            if n_tokens is None:
                dropped[GAVE_UP] += 1
                continue
            name = names[int(bucket_of(np.array([n_tokens]), task.edges)[0])]
            if name not in opened:
                opened[name] = stack.enter_context(
                    gzipped(stack.enter_context(publish(task.out / name / f"{task.stem}.jsonl.gz")))
                )
            opened[name].write(json_line(document))
            extra.update({f"{DOCUMENTS}{name}": 1, f"{TOKENS}{name}": n_tokens})
    n_kept = sum(count for name, count in extra.items() if name.startswith(DOCUMENTS))
    return Counts(
        seen=n_kept + dropped.total(), kept=n_kept, dropped=dict(dropped), extra=dict(extra)
    )


def _n_tokens(text: str, tokenizer: str) -> int | None:
    try:
        return len(fastest(tokenizer).encode(text))
    except BadInput:
        return None
