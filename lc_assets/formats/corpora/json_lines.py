"""Lines of JSON as documents: a record's text, id and other fields, whatever types they have.

A line is split once into its fields, which stay undecoded except the text and the few that every
caller needs. For a caller that names all other fields that it reads, a record is decoded at once,
which takes half as long; what this refuses is read as any other. Documents are made of many records
together, a column after the other.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import msgspec

from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.batches import Batch
from lc_assets.formats.corpora.containers import (
    MAX_DOCUMENT_BYTES,
    NO_FIELDS,
    ReadingOptions,
    Unread,
    as_float,
    name_of_places,
    plain_bytes,
)
from lc_assets.formats.redpajama.lines import bounded_lines, decode_json
from lc_assets.text.texts import together

TEXT_FIELDS = ("raw_content", "text", "content")
ID_FIELDS = ("id", "doc_id")

BLANK = "blank"
"""Of a line: it is no document."""

MAX_NESTED = 256
"""Maximum nesting of lists and objects. Deeper records are not read, because a later decoder
may have less stack.
"""

BATCH_BYTES = 1 << 18
"""Of lines whose documents are made together."""

PLAIN_BYTES = 1 << 20
"""Length of the longest line that is decoded at once: lists may take 20 times as many bytes."""

PLAIN_NESTED = 4
"""Maximum nesting of a field in such a line; each more doubles the time in which the decoder is
made.
"""

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|[\]}]', re.DOTALL)
_FAR = re.compile(rb"\d(?:[eE]\+?\d{3}|\d{299})")
_QUOTE = ord('"')
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(Any)
_VALUES = msgspec.json.Decoder(dict[str, Any])
_ENCODER = msgspec.json.Encoder()


def _record(depth: int) -> Any:
    """The type of an object in whose fields lists and objects are nested at most so deeply."""
    scalar: Any = None | bool | int | float | str
    value: Any = scalar
    for _ in range(depth):
        value = scalar | list[value] | dict[str, value]
    return dict[str, value]


_PLAIN: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(_record(PLAIN_NESTED))


def read_json_lines(path: Path, options: ReadingOptions) -> Iterator[Batch]:
    """Yield the documents of a file of JSON lines, blank ones skipped; see
    `lc_assets.formats.corpora.reading.read_batches`.
    """
    part = f"#bytes={options.lines[0]}-{options.lines[1]}" if options.lines else ""
    places, where = f"{name_of_places(path)}{part}", f"{path}{part}, line"
    with plain_bytes(path, options.lines) as stream:
        lines, begin = bounded_lines(stream, options.max_document_bytes), 0
        for some in together(lines, _n_bytes, most=BATCH_BYTES):
            n_lines = len(some)
            yield batch_of(_records(some, options), begin, places, where, options.id_field)
            begin += n_lines


def _n_bytes(line: bytes | None) -> int:
    return 0 if line is None else len(line)


def text_lengths(path: Path, text_field: str | None) -> Iterator[int]:
    """Characters of each text in a file of JSON lines, as `read_json_lines` finds them, without
    decoding any other field; -1 for a line without one.
    """
    names = [text_field] if text_field else TEXT_FIELDS
    ours = [f"text{number}" for number in range(len(names))]
    texts = msgspec.defstruct(
        "Texts", [(our, Any, None) for our in ours], rename=dict(zip(ours, names, strict=True))
    )
    decoder = msgspec.json.Decoder(texts)
    with plain_bytes(path) as stream:
        yield from map(partial(_text_length, decoder), bounded_lines(stream, MAX_DOCUMENT_BYTES))


def _text_length(decoder: msgspec.json.Decoder[Any], line: bytes | None) -> int:
    try:
        found = msgspec.structs.astuple(decoder.decode(line or b""))
    except (msgspec.DecodeError, RecursionError):
        return -1
    return next((len(text) for text in found if isinstance(text, str)), -1)


_KINDS: dict[str, frozenset[type]] = {
    **dict.fromkeys(
        ("id", "doc_id", "url", "language", "source_domain"), frozenset({str, NoneType})
    ),
    "perplexity": frozenset({int, float, bool, NoneType}),
}
"""Fields that every caller needs, and the types that they should have."""

KNOWN = (*_KINDS, "date_download", "date")


class Record(NamedTuple):
    """What is read of a record.

    Attributes:
        text: the document's text.
        text_field: the field that held it.
        rest: as `CorpusDocument` has it.
        fields: the values of at least those that every caller needs, and the id.
    """

    text: str
    text_field: str
    rest: msgspec.Raw
    fields: Mapping[str, Any]


def batch_of(
    records: Sequence[Record | str],
    begin: int,
    places: str,
    where: str,
    id_field: str | None = None,
) -> Batch:
    """The documents of some records of a file.

    Args:
        records: each, or the reason why it cannot be read; blank lines are no documents.
        begin: number of the first.
        places: before its number, the id of a document that has no other.
        where: before its number, what a message calls it.
        id_field: where a record's id is; by default ``id`` or ``doc_id``.

    >>> record = Record("Hello", "text", msgspec.Raw(b"{}"), {"doc_id": 7, "perplexity": "?"})
    >>> batch = batch_of([record, "not JSON"], 0, "x", "x.jsonl, line")
    >>> [document.id for document in batch.documents()]
    ['7', 'x/1']
    """
    numbered = [(number, it) for number, it in enumerate(records, begin) if it != BLANK]
    unread = {
        at: Unread(id=f"{places}/{number}", where=f"{where} {number}", why=it)
        for at, (number, it) in enumerate(numbered)
        if isinstance(it, str)
    }
    sound = [(number, it) for number, it in numbered if isinstance(it, Record)]
    columns = _columns([it for _, it in sound], id_field)
    own_ids, numbers = columns["own_id"], (number for number, _ in sound)
    columns["id"] = [
        own or f"{places}/{number}" for own, number in zip(own_ids, numbers, strict=True)
    ]
    return Batch(columns=columns, unread=unread)


def _columns(records: Sequence[Record], id_field: str | None) -> dict[str, list[Any]]:
    """All columns but the ids; 0 is an id of a record's own, an empty string is not."""
    fields = [record.fields for record in records]
    named = set[str]().union(*fields)
    known = {
        name: [its.get(name) for its in fields]
        for name in named.intersection((*KNOWN, id_field or "id"))
    }
    odd: list[tuple[str, ...]] = [()] * len(records)
    for name, kinds in _KINDS.items():
        if not kinds.issuperset(map(type, known.get(name, ()))):
            wrong = (type(value) not in kinds for value in known[name])
            odd = [(*names, name) if it else names for names, it in zip(odd, wrong, strict=True)]
    none = [None] * len(records)
    own = [known[name] for name in ([id_field] if id_field else ID_FIELDS) if name in known]
    return {
        "text": [record.text for record in records],
        "url": _texts(none, known.get("url")),
        "language": _texts(none, known.get("language")),
        "source_domain": _texts(none, known.get("source_domain")),
        "date": _texts(none, known.get("date_download"), known.get("date")),
        "perplexity": [it if it is None else as_float(it) for it in known.get("perplexity", none)],
        "rest": [record.rest for record in records],
        "text_field": [record.text_field for record in records],
        "own_id": _ids(none, *own),
        "odd": odd,
    }


def _ids(none: list[None], *columns: list[Any]) -> list[str]:
    """The first of some values that is neither null nor an empty string, as text."""
    if not columns:
        return [""] * len(none)
    if len(columns) > 1:
        pairs = zip(*columns, strict=True)
        return [
            "" if it is None else str(it) for it in (b if a in (None, "") else a for a, b in pairs)
        ]
    return ["" if it is None else str(it) for it in columns[0]]


def _texts(none: list[None], *columns: list[Any] | None) -> list[str]:
    """The first of some values that is not empty, as text."""
    found = [column for column in columns if column is not None]
    if not found:
        return [""] * len(none)
    if len(found) > 1:
        return [str(a or b or "") for a, b in zip(*found, strict=True)]
    return [str(it or "") for it in found[0]]


def text_field_of(names: Any, text_field: str | None) -> str:
    """Which field of a record holds its text.

    >>> (
    ...     text_field_of({"text": 0, "raw_content": 0}, None),
    ...     text_field_of({}, None),
    ...     text_field_of({}, "body"),
    ... )
    ('raw_content', 'raw_content', 'body')
    """
    return text_field or next((name for name in TEXT_FIELDS if name in names), TEXT_FIELDS[0])


def _records(lines: list[bytes | None], options: ReadingOptions) -> list[Record | str]:
    """The records on some lines, which are taken out of the list, or the reasons for none."""
    found = ["line too long" if line is None else _any_record(line, options) for line in lines]
    lines.clear()
    return found


def _any_record(line: bytes, options: ReadingOptions) -> Record | str:
    if options.fields is not None and len(line) <= PLAIN_BYTES:
        found = _plain(line, options, options.fields)
        if found is not None:
            return found
    return _of_any_fields(line, options)


def _of_any_fields(line: bytes, options: ReadingOptions) -> Record | str:
    """Any record, with all its fields, or the reason for none."""
    if not line or line.isspace():
        return BLANK
    try:
        fields = _fields(line.removeprefix(BOM_UTF8))
        field = options.text_field or _text_field(fields)
        text = _VALUE.decode(fields.pop(field, b"null"))
        rest = _ENCODER.encode(fields)
        if len(rest) > MAX_NESTED and _is_deep(rest):
            return "nested too deeply"
        if _FAR.search(rest):
            _VALUES.decode(rest)  # later decoders could not read a number beyond float64
        rest.decode()  # what is skipped is not looked at, and what is no text must not be written
        needed = (name for name in {*KNOWN, options.id_field} if name in fields)
        known = {name: _VALUE.decode(fields[name]) for name in needed}
    except (CorruptFile, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "not JSON"
    return Record(text, field, msgspec.Raw(rest), known) if isinstance(text, str) else "no text"


def _plain(line: bytes, options: ReadingOptions, fields: frozenset[str]) -> Record | None:
    """A record that is decoded at once, with some fields; None where this takes more care."""
    try:
        record = _PLAIN.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for field in (options.text_field,) if options.text_field else TEXT_FIELDS:
        if isinstance(record.get(field), str):
            break
    else:
        return None
    text, rest = record.pop(field), NO_FIELDS
    if not fields.isdisjoint(record):
        kept = {name: value for name, value in record.items() if name in fields}
        rest = msgspec.Raw(_ENCODER.encode(kept))
    return Record(text, field, rest, record)


def _text_field(fields: Mapping[str, Any]) -> str:
    """The first of a record's fields for texts that holds one, or is there."""
    for name in TEXT_FIELDS:
        if name in fields and memoryview(fields[name])[0] == _QUOTE:
            return name
    return text_field_of(fields, None)


def _fields(line: bytes) -> dict[str, Any]:
    """A record's fields, undecoded; lone surrogates in any of them are U+FFFD."""
    try:
        return _FIELDS.decode(line)
    except (msgspec.DecodeError, RecursionError):
        values = decode_json(line, _VALUES, where="")  # an object, or `CorruptFile`
        return {name: msgspec.Raw(_ENCODER.encode(value)) for name, value in values.items()}


def _is_deep(rest: bytes) -> bool:
    """Whether lists and objects are nested deeper than `MAX_NESTED`; few records have enough
    brackets to need the check.
    """
    if rest.count(b"[") + rest.count(b"{") <= MAX_NESTED:
        return False
    depth = deepest = 0
    for found in _STRUCTURE.finditer(rest):
        if found.lastindex:
            depth += 1
            deepest = max(deepest, depth)
        elif not found.group().startswith(b'"'):
            depth -= 1
    return deepest > MAX_NESTED
