"""Reading a corpus: which files it is, the documents of one of them, and JSON lines.

A file is recognised by the end of its name. Memory is bounded by one document, or a batch of rows.
A plain text file is one document, whose id is the file's name; it is read only when named itself. A
line of JSON is split once into its fields, which stay undecoded except the text and the few that
every caller needs.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import (
    JSON_LINES,
    MAX_DOCUMENT_BYTES,
    PARQUET,
    SUFFIXES,
    TEXT,
    WARC,
    WET,
    CorpusDocument,
    Quality,
    ReadingOptions,
    Unread,
    as_float,
    name_of_places,
    plain_bytes,
)
from lc_assets.formats.redpajama.lines import bounded_lines, decode_json
from lc_assets.line_ranges import Range

TEXT_FIELDS = ("raw_content", "text", "content")
ID_FIELDS = ("id", "doc_id")

BLANK = "blank"
"""Of a line: it is no document."""

MAX_NESTED = 256
"""Maximum nesting of lists and objects. Deeper records are not read, because a later decoder
may have less stack.
"""

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|[\]}]', re.DOTALL)
_FAR = re.compile(rb"\d(?:[eE]\+?\d{3}|\d{299})")
_QUOTE = ord('"')
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(Any)
_VALUES = msgspec.json.Decoder(dict[str, Any])
_ENCODER = msgspec.json.Encoder()


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
            if found == BLANK:
                continue
            yield (
                Unread(id=f"{places}/{number}", where=f"{where}, line {number}", why=found)
                if isinstance(found, str)
                else found
            )


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
    place, raw = f"{places}/{number}", msgspec.Raw(rest)
    return _document_of(known, own, odd, text=text, text_field=field, place=place, rest=raw)


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


def corpus_files(sources: Iterable[Path], *, suffixes: tuple[str, ...] = SUFFIXES) -> list[Path]:
    """The files of a corpus: those named, and those with one of the suffixes in the folders named
    and below them, sorted; plain texts of a folder that holds nothing else that is read. Hidden
    files are left out.

    Raises:
        BadInput: when a source does not exist, or a folder holds no such file.
    """
    return sorted({file for source in sources for file in _files_of(source, suffixes)})


def read_corpus(
    path: Path,
    *,
    text_field: str | None = None,
    id_field: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    quality: Quality = "fast",
    lines: Range | None = None,
) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of one file in order, or an `Unread` for one that cannot be read.

    Args:
        path: the file.
        text_field: where a record's text is; by default ``raw_content``, ``text`` or ``content``,
            the first that it has.
        id_field: where a record's id is; by default ``id`` or ``doc_id``.
        max_document_bytes: a longer one is not read.
        quality: of texts out of the pages of a WARC file.
        lines: of an uncompressed file of JSON lines, the range to read.

    Raises:
        BadInput: when the file's kind is not known.
        CorruptFile: when its container is damaged.
    """
    options = ReadingOptions(text_field, id_field, max_document_bytes, quality, lines)
    if path.name.endswith(JSON_LINES):
        return read_json_lines(path, options)
    if path.name.endswith(TEXT):
        return read_plain_text(path, max_document_bytes=max_document_bytes)
    # Slow imports that most corpora do not need.
    if path.name.endswith(PARQUET):
        from lc_assets.formats.corpora.parquet import read_parquet

        return read_parquet(path, options)
    if path.name.endswith((*WET, *WARC)):
        from lc_assets.formats.corpora.crawls import read_crawl

        return read_crawl(path, options)
    raise BadInput(f"{path}: of no known kind; known are {', '.join((*SUFFIXES, *TEXT))}")


def _files_of(source: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if source.is_file():
        return [source]
    seen = [path for path in source.rglob("*") if not path.name.startswith(".")]
    found = [path for path in seen if path.name.endswith(suffixes)]
    if not found and suffixes == SUFFIXES:
        found = [path for path in seen if path.name.endswith(TEXT)]
    if not found:
        raise BadInput(
            f"{source}: holds no file that ends in {', '.join(suffixes)}"
            if source.is_dir()
            else f"{source}: does not exist"
        )
    return found


def read_plain_text(path: Path, *, max_document_bytes: int) -> Iterator[CorpusDocument | Unread]:
    """Yield the one document of a file; see `lc_assets.formats.corpora.reading.read_corpus`."""
    with path.open("rb") as file:
        content = file.read(max_document_bytes + 1)
    if len(content) > max_document_bytes:
        yield Unread(id=path.name, where=str(path), why="text too long")
        return
    try:
        yield CorpusDocument(id=path.name, text=content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        yield Unread(id=path.name, where=str(path), why="not UTF-8")
