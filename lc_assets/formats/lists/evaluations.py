"""Evaluation sets as files: their examples as items whose n-grams can be searched for.

=========================================  =========================================================
file                                       an item is
=========================================  =========================================================
``.jsonl``, ``.json``, ``.gz``, ``.zst``   a line with an object; in a ``.json`` that is one array,
                                           an object of it
``.parquet``                               a row
``.txt``                                   a line that is not blank
any other corpus                           a document (`lc_assets.formats.corpora`)
=========================================  =========================================================

The fields of an object that hold questions and answers are taken: all of `FIELDS` that it has, or
those that the caller names; of lists and objects, the strings in them. A line that cannot be read
is an error, because items missing from the index are never found. A held-out corpus is an
evaluation set like any other.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import (
    JSON_LINES,
    PARQUET,
    SUFFIXES,
    TEXT,
    Unread,
    plain_bytes,
)
from lc_assets.formats.corpora.parquet import parquet_rows
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.redpajama.lines import bounded_lines, decode_json
from lc_assets.text.contamination.grams import Item

FIELDS = (
    "question",
    "problem",
    "prompt",
    "query",
    "instruction",
    "input",
    "text",
    "raw_content",
    "content",
    "sentence",
    "premise",
    "hypothesis",
    "goal",
    "choices",
    "options",
    "endings",
    "answer",
    "answers",
    "solution",
    "canonical_solution",
    "target",
    "completion",
)
"""Names of questions and answers in evaluation sets. Passages (``context``, ``passage``) are public
texts, and are taken only when named.
"""
KNOWN = (*SUFFIXES, *TEXT)
MAX_LINE_BYTES = 256 << 20

_OBJECT = msgspec.json.Decoder(dict[str, Any])
_ARRAY = msgspec.json.Decoder(list[dict[str, Any]])


def evaluation_files(sources: Iterable[Path]) -> list[Path]:
    """The files of evaluation sets; see `lc_assets.formats.corpora.reading.corpus_files`."""
    return corpus_files(sources, suffixes=KNOWN)


def read_items(path: Path, fields: Sequence[str] = ()) -> Iterator[Item]:
    """Yield the items of one file in order; one that has none of the fields has no parts.

    Args:
        path: the file.
        fields: which fields are taken; by default all of `FIELDS` that a record has.

    Raises:
        BadInput: when a line does not have the format of the file's suffix; names it.
    """
    if path.name.endswith(TEXT):
        yield from _lines(path)
    elif path.name.endswith((*JSON_LINES, *PARQUET)):
        for number, record in enumerate(_records(path)):
            own = record.get("id", record.get("task_id", number))
            yield Item(
                id=f"{path.name}#{own}",
                parts=tuple(
                    _strings([record[name] for name in fields or FIELDS if name in record])
                ),
            )
    else:
        for document in read_corpus(path, text_field=fields[0] if fields else None):
            if isinstance(document, Unread):
                raise BadInput(
                    f"{document.where}: {document.why}; an evaluation set must be readable to its "
                    "end"
                )
            yield Item(id=f"{path.name}#{document.id}", parts=(document.text,))


def _lines(path: Path) -> Iterator[Item]:
    with path.open("rb") as file:
        for number, line in enumerate(file):
            try:
                text = line.decode("utf-8-sig" if number == 0 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file, for "
                    "instance with iconv"
                ) from error
            if text:
                yield Item(id=f"{path.name}#{number}", parts=(text,))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.name.endswith(PARQUET):
            for number, row in enumerate(parquet_rows(path)):
                if isinstance(row, str):
                    raise BadInput(
                        f"{path}, row {number}: {row}; an evaluation set must be readable to its "
                        "end"
                    )
                yield row
        elif path.name.endswith(".json") and _begins_with_bracket(path):
            yield from decode_json(path.read_bytes(), _ARRAY, where=str(path))
        else:
            yield from _json_lines(path)
    except CorruptFile as error:
        raise BadInput(
            f"{path}: {error}; an evaluation set must be readable and in UTF-8"
        ) from error


def _begins_with_bracket(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"[")


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with plain_bytes(path) as stream:
        for number, line in enumerate(bounded_lines(stream, MAX_LINE_BYTES)):
            if line is None:
                raise BadInput(f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes")
            if line.strip():
                yield decode_json(line, _OBJECT, where=f"line {number}")


def _strings(value: Any) -> Iterator[str]:
    """The strings in a value, in order, at any depth; numbers and field names are excluded."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            waiting.extend(reversed(list(value.values() if isinstance(value, dict) else value)))
