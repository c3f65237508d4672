"""Lines of JSON as documents: a record's text, id and other fields, whatever types they have.

A line is split once into its fields, which stay undecoded except the text and the few that every
caller needs. For a caller that names all other fields that it reads, a record is decoded at once,
which takes half as long; what this refuses is read as any other.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.containers import (
    MAX_DOCUMENT_BYTES,
    CorpusDocument,
    ReadingOptions,
    Unread,
    as_float,
    name_of_places,
    plain_bytes,
)
from lc_assets.formats.redpajama.lines import bounded_lines, decode_json

TEXT_FIELDS = ("raw_content", "text", "content")
ID_FIELDS = ("id", "doc_id")

BLANK = "blank"
"""Of a line: it is no document."""

MAX_NESTED = 256
"""Maximum nesting of lists and objects. Deeper records are not read, because a later decoder
may have less stack.
"""

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
_NO_FIELDS = msgspec.Raw(b"{}")


def _record(depth: int) -> Any:
    """The type of an object in whose fields lists and objects are nested at most so deeply."""
    scalar: Any = None | bool | int | float | str
    value: Any = scalar
    for _ in range(depth):
        value = scalar | list[value] | dict[str, value]
    return dict[str, value]


_PLAIN: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(_record(PLAIN_NESTED))


def read_json_lines(path: Path, options: ReadingOptions) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of a file of JSON lines, blank ones skipped; see
    `lc_assets.formats.corpora.reading.read_corpus`.
    """
    part = f"#bytes={options.lines[0]}-{options.lines[1]}" if options.lines else ""
    places, where = f"{name_of_places(path)}{part}", f"{path}{part}"
    with plain_bytes(path, options.lines) as stream:
        lines = bounded_lines(stream, options.max_document_bytes)
        # Without a name here for the line, which would keep its bytes beside the document's.
        documents = map(_document, lines, count(), repeat(places), repeat(options))
        for number, found in enumerate(documents):
            if not isinstance(found, str):
                yield found
            elif found != BLANK:
                yield Unread(id=f"{places}/{number}", where=f"{where}, line {number}", why=found)


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


class Usual(msgspec.Struct):
    """The fields that every caller needs, of the types that they should have; dates of any."""

    id: str | None = None
    doc_id: str | None = None
    url: str | None = None
    language: str | None = None
    source_domain: str | None = None
    perplexity: int | float | None = None
    date_download: Any = None
    date: Any = None


KNOWN = Usual.__struct_fields__
_USUAL = msgspec.json.Decoder(Usual)
_KINDS = {of.name: of.type for of in msgspec.structs.fields(Usual) if of.type is not Any}


def document_of(
    fields: Mapping[str, Any],
    *,
    text: str,
    text_field: str,
    place: str,
    rest: msgspec.Raw,
    id_field: str | None = None,
) -> CorpusDocument:
    """Make a document of a record's decoded fields; 0 is an id, an empty string is not.

    >>> document_of(
    ...     {"doc_id": 7, "perplexity": "?"},
    ...     text="Hello",
    ...     text_field="text",
    ...     place="x/0",
    ...     rest=msgspec.Raw(b"{}"),
    ... ).id
    '7'
    """
    known, odd = _usual(fields)
    own = fields.get(id_field) if id_field else _own(known)
    return _document_of(known, own, odd, text=text, text_field=text_field, place=place, rest=rest)


def _usual(fields: Mapping[str, Any]) -> tuple[Usual, tuple[str, ...]]:
    """The fields that are needed, and the names of those that are of another type."""
    known = Usual(**{name: fields[name] for name in KNOWN if name in fields})
    odd = (name for name, kind in _KINDS.items() if not isinstance(getattr(known, name), kind))
    return known, tuple(odd)


def _own(known: Usual) -> Any:
    return known.doc_id if known.id in (None, "") else known.id


def _document_of(
    known: Usual,
    own: Any,
    odd: tuple[str, ...],
    *,
    text: str,
    text_field: str,
    place: str,
    rest: msgspec.Raw,
) -> CorpusDocument:
    own_id = "" if own is None else str(own)
    return CorpusDocument(
        id=own_id or place,
        own_id=own_id,
        text=text,
        url=str(known.url or ""),
        language=str(known.language or ""),
        source_domain=str(known.source_domain or ""),
        date=str(known.date_download or known.date or ""),
        perplexity=None if known.perplexity is None else as_float(known.perplexity),
        rest=rest,
        text_field=text_field,
        odd=odd,
    )


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


def _document(
    line: bytes | None, number: int, places: str, options: ReadingOptions
) -> CorpusDocument | str:
    """The document on a line, or the reason for none."""
    if line is None:
        return "line too long"
    place, found = f"{places}/{number}", None
    if options.fields is not None and len(line) <= PLAIN_BYTES:
        found = _plain(line, place, options, options.fields)
    return found or _of_any_fields(line, place, options)


def _of_any_fields(line: bytes, place: str, options: ReadingOptions) -> CorpusDocument | str:
    """The document of any record, with all its fields, or the reason for none."""
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
        known, odd = _known(rest, fields)
        own = _own(known)
        if options.id_field:
            own = _VALUE.decode(fields.get(options.id_field, b"null"))
    except (CorruptFile, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "not JSON"
    if not isinstance(text, str):
        return "no text"
    raw = msgspec.Raw(rest)
    return _document_of(known, own, odd, text=text, text_field=field, place=place, rest=raw)


def _plain(
    line: bytes, place: str, options: ReadingOptions, fields: frozenset[str]
) -> CorpusDocument | None:
    """The document of a record that is decoded at once, with some of its fields; None where this
    takes more care.
    """
    try:
        record = _PLAIN.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    names = (options.text_field,) if options.text_field else TEXT_FIELDS
    for field in names:
        if isinstance(text := record.get(field), str):
            break
    else:
        return None
    del record[field]
    odd: tuple[str, ...] = ()
    try:
        known = msgspec.convert(record, Usual)
    except msgspec.ValidationError:
        known, odd = _usual(record)
    own = record.get(options.id_field) if options.id_field else _own(known)
    rest = _NO_FIELDS
    if not fields.isdisjoint(record):
        kept = {name: value for name, value in record.items() if name in fields}
        rest = msgspec.Raw(_ENCODER.encode(kept))
    return _document_of(known, own, odd, text=text, text_field=field, place=place, rest=rest)


def _text_field(fields: Mapping[str, Any]) -> str:
    """The first of a record's fields for texts that holds one, or is there."""
    for name in TEXT_FIELDS:
        if name in fields and memoryview(fields[name])[0] == _QUOTE:
            return name
    return text_field_of(fields, None)


def _known(rest: bytes, fields: Mapping[str, Any]) -> tuple[Usual, tuple[str, ...]]:
    """The same as `_usual`, of fields that are not decoded."""
    try:
        return _USUAL.decode(rest), ()
    except msgspec.ValidationError:
        return _usual({name: _VALUE.decode(fields[name]) for name in KNOWN if name in fields})


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
