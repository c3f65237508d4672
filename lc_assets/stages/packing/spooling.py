"""Texts of a corpus laid down plainly, so that any of them can be read again: a corpus is a stream,
and packs take from all over it.

::

    {number}.texts       texts as they are to be written, UTF-8, one behind the other
    {number}.parquet     a line per text: who it is, where it lies, its tokens, and what was found of it

A task per file of the corpus. The folder stands beside the output, takes as much room as the texts,
and is removed at the end. Memory is bounded by one document. Here: writing and reading it. Not
here: what is looked for in texts (`similar_packing`).
"""

import contextlib
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from lc_assets.build.tables import TableWriter, read_lines
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.publishing import STAGING_PREFIX, finished, publish
from lc_assets.tokens.tokenizers import Tokenizer, without_surrogates

SPOOLED: Final = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("content", pa.string()),
        ("start", pa.int64()),
        ("n_bytes", pa.int64()),
        ("n_tokens", pa.int64()),
    ]
)
"""Of each text; ``content`` is BLAKE2b of what it says, 16 bytes in hexadecimal digits."""
GAVE_UP: Final = "tokenizer gave up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found of a document: its text as it is to be written, and further columns."""

    text: str
    columns: dict[str, Any]


Look = Callable[[CorpusDocument], Looked | str]
"""Looks at a document; a string says why it is left out."""
Source = Callable[[], Iterator[CorpusDocument | Unread]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolTask:
    """One file, or folder, to be laid down.

    Attributes:
        read: yields its documents; a module's function, perhaps with arguments.
        where: for people.
        folder: of the spool; ``number``: of this part.
        look: what is looked for; a module's function.
        columns: further ones that it finds.
        tokenizer: that counts tokens.
    """

    read: Source
    where: str
    folder: Path
    number: int
    look: Look
    columns: pa.Schema
    tokenizer: str

    def __str__(self) -> str:
        return self.where


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledText:
    """One text: who it is, and where it lies."""

    id: str
    url: str
    file: int
    start: int
    n_bytes: int
    n_tokens: int


@contextlib.contextmanager
def spool_beside(out: Path) -> Iterator[Path]:
    """A folder for a spool, beside ``out``, that is gone afterwards; what a killed run left there
    is gone before.

    Raises:
        StorageFull, NotWritable: when it cannot be written to.
    """
    folder = out.with_name(f"{STAGING_PREFIX}spool-{out.name}")
    with os_errors_as_lc_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def spool(tasks: Sequence[SpoolTask], *, executor: Executor) -> Counts:
    """Lay all parts down; returns what was counted.

    Raises:
        BadInput: when there is no such tokenizer.
        CorruptFile: when a container is damaged.
    """
    return Counts.total(counts for _, counts in executor.run(spool_file, tasks, what="read"))


def spool_file(task: SpoolTask) -> Counts:
    """Lay one part down.

    Raises:
        BadInput: when there is no such tokenizer.
        CorruptFile: when its container is damaged.
    """
    tokenizer = fastest(task.tokenizer)
    dropped, n_kept, n_tokens, start = Counter[str](), 0, 0, 0
    with contextlib.ExitStack() as stack:
        texts, table = (
            stack.enter_context(publish(path)) for path in places(task.folder, task.number)
        )
        out = stack.enter_context(texts.open("wb"))
        lines = stack.enter_context(
            contextlib.closing(TableWriter(table, pa.schema([*SPOOLED, *task.columns])))
        )
        for document in task.read():
            found = _looked_at(document, task.look, tokenizer)
            if isinstance(found, str):
                dropped[found] += 1
                continue
            data = found.text.encode()
            out.write(data)
            content = hashlib.blake2b(data, digest_size=16).hexdigest()
            place = {
                "content": content,
                "start": start,
                "n_bytes": len(data),
                "n_tokens": found.n_tokens,
            }
            lines.add({"id": document.id, "url": found.url, **place, **found.columns}, n_bytes=1024)
            start, n_kept, n_tokens = start + len(data), n_kept + 1, n_tokens + found.n_tokens
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        extra={"tokens": n_tokens, "bytes": start},
    )


def places(folder: Path, number: int) -> tuple[Path, Path]:
    """Files of one part: its texts, and its table."""
    return folder / f"{number:06}.texts", folder / f"{number:06}.parquet"


def tables(folder: Path) -> list[Path]:
    """The tables of a spool, in the order of its parts."""
    return finished(folder.glob("*.parquet"))


def read_spooled(
    folder: Path, columns: Iterable[str] = ()
) -> Iterator[tuple[SpooledText, dict[str, Any]]]:
    """Every text of a spool, with its ``content`` and some further columns."""
    wanted = [*SPOOLED.names, *columns]
    for number, path in enumerate(tables(folder)):
        for line in read_lines(path, wanted, batch_lines=4096):
            own = {name: line.pop(name) for name in ("id", "url", "start", "n_bytes", "n_tokens")}
            yield SpooledText(file=number, **own), line


def read_texts(folder: Path, texts: Iterable[SpooledText]) -> list[str]:
    """Some texts of a spool, in the order asked for."""
    found = []
    for text in texts:
        with places(folder, text.file)[0].open("rb") as file:
            file.seek(text.start)
            found.append(file.read(text.n_bytes).decode("utf-8"))
    return found


class _Found(NamedTuple):
    url: str
    text: str
    n_tokens: int
    columns: dict[str, Any]


def _looked_at(document: CorpusDocument | Unread, look: Look, tokenizer: Tokenizer) -> _Found | str:
    """What was found of a document, or why it is left out."""
    if isinstance(document, Unread):
        return document.why
    looked = look(msgspec.structs.replace(document, text=without_surrogates(document.text)))
    if isinstance(looked, str):
        return looked
    try:
        return _Found(document.url, looked.text, len(tokenizer.encode(looked.text)), looked.columns)
    except BadInput:
        return GAVE_UP


@cache
def fastest(setting: str) -> Tokenizer:
    """The fast tokenizer of a setting, or its twin where the fast one does not know its kind.

    Raises:
        BadInput: when there is no such tokenizer.
    """
    try:
        return tokenizer_of(setting)
    except BadInput:
        return tokenizer_of(setting, fast=False)
