"""Values that were computed once and stored, so that thresholds can be changed without reading a
text again.

=================================  ==========================================================================================
file                               holds
=================================  ==========================================================================================
``*.signals.json.gz``              RedPajama-V2's published signals of one shard
Parquet of `values_schema`         ``id``, ``url``, and a float64 column per computed column: null where it was not computed,
                                   NaN where it was and there is no value; its metadata says how
                                   lines were edited
=================================  ==========================================================================================

Here: recognising such files, reading and describing them. Not here: judging (`judging`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from lc_assets.build.tables import read_lines as read_table_lines
from lc_assets.build.tables import read_schema
from lc_assets.errors import UNDECODABLE, BadInput
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.text.rules.rules import LineEdit, RuleSet
from lc_assets.text.signals.names import SCALARS
from lc_assets.vocabulary import Shard, parse_document_id

PUBLISHED: Final = ".signals.json.gz"
PARQUET: Final = ".parquet"
MARK: Final = b"lc_assets.edit"
"""Metadata of a table of values: JSON of the `LineEdit`, or ``null``."""

IDENTITY: Final = ("id", "url")
MAX_LINE_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class StoredValues:
    """What is stored of one document: ``values`` holds the computed columns alone, None where there
    is no value.
    """

    id: str
    url: str
    values: dict[str, float | None]


class _Named(msgspec.Struct, frozen=True):
    id: str


def values_schema(columns: Collection[str], edit: LineEdit | None) -> pa.Schema:
    """Columns of a table of values."""
    fields = [
        *((name, pa.string()) for name in IDENTITY),
        *((name, pa.float64()) for name in sorted(columns)),
    ]
    return pa.schema(fields, metadata={MARK: msgspec.json.encode(edit)})


def is_stored(path: Path) -> bool:
    """Whether a file holds stored values instead of texts.

    Raises:
        CorruptFile: when a Parquet file cannot be read.
    """
    if path.name.endswith(PUBLISHED):
        return True
    return path.name.endswith(PARQUET) and MARK in (read_schema(path).metadata or {})


def stored_columns(path: Path) -> list[str]:
    """The columns that a file of stored values has."""
    return (
        list(SCALARS)
        if path.name.endswith(PUBLISHED)
        else [name for name in read_schema(path).names if name not in IDENTITY]
    )


def require_stored(path: Path, rules: RuleSet) -> None:
    """Refuse rules that a file of stored values cannot serve.

    Raises:
        BadInput: when it has not the columns that the rules judge, or its texts' lines were edited
            otherwise.
    """
    missing = sorted(rules.columns - set(stored_columns(path)))
    if missing:
        raise BadInput(
            f"{path}: holds no {', '.join(missing)}, which rules {rules.name} judge; judge the "
            "texts instead"
        )
    found = (
        None
        if path.name.endswith(PUBLISHED)
        else msgspec.json.decode(read_schema(path).metadata[MARK], type=LineEdit | None)
    )
    if msgspec.to_builtins(found) != msgspec.to_builtins(rules.edit):
        raise BadInput(
            f"{path}: is of {_edited(found)}, but rules {rules.name} judge {_edited(rules.edit)}; "
            "judge the texts instead"
        )


def read_values(path: Path, columns: Collection[str]) -> Iterator[StoredValues]:
    """Yield what is stored of each document in the file's order; of a published file in the order
    of its lines' numbers.

    Raises:
        CorruptFile: when the file is damaged.
    """
    yield from (
        _published(path, columns)
        if path.name.endswith(PUBLISHED)
        else _table(path, sorted(columns))
    )


def _table(path: Path, columns: Sequence[str]) -> Iterator[StoredValues]:
    for line in read_table_lines(path, [*IDENTITY, *columns], batch_lines=4096):
        known = {name: value for name in columns if (value := line[name]) is not None}
        yield StoredValues(
            line["id"],
            line["url"],
            {name: None if isnan(value) else value for name, value in known.items()},
        )


def _published(path: Path, columns: Collection[str]) -> Iterator[StoredValues]:
    shard = _shard_of(path)
    if shard is None:
        return
    with path.open("rb") as stream:
        table = read_signals(
            stream, shard=shard, where=str(path), wanted=columns, max_line_bytes=MAX_LINE_BYTES
        )
    for row, line in enumerate(table.lines.tolist()):
        yield StoredValues(shard.document_id(line), table.urls[row], table.values_at(row))


def _shard_of(path: Path) -> Shard | None:
    """The shard that the first record's id names; None when no line is a record."""
    with path.open("rb") as stream:
        for _, line in read_lines(stream, where=str(path), max_line_bytes=MAX_LINE_BYTES):
            try:
                return parse_document_id(msgspec.json.decode(line or b"", type=_Named).id)[0]
            except (*UNDECODABLE, BadInput):
                continue
    return None


def _edited(edit: LineEdit | None) -> str:
    if edit is None:
        return "whole texts"
    settings = "".join(f", {name} = {value}" for name, value in edit.parameters.items())
    return f"texts with their lines edited ({edit.name}{settings})"
