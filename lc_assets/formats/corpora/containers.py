"""Containers of documents: which names mean which kind, plain bytes out of compressed files, and
writing documents as JSON lines.

Memory is bounded whatever sizes a file states: gzip and zstd are read in pieces, and a zstd window
of more than 128 MiB is refused, and so is a file of zstd that unpacks to more than it may
(`lc_assets.formats.unpacking`). A document is written with all its original fields, its text in the
original field; one without an id gets ``id``. The same documents give the same bytes, whatever the
clock and the file's name.
"""

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast

import msgspec
import pyarrow as pa
from isal import igzip

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file
from lc_assets.formats.unpacking import Allowance
from lc_assets.line_ranges import LinesOfRange, Range
from lc_assets.publishing import gzipped
from lc_assets.vocabulary import Shard

Quality: TypeAlias = Literal["fast", "high"]


NO_FIELDS = msgspec.Raw(b"{}")
"""An object of JSON without fields."""


class CorpusDocument(msgspec.Struct, frozen=True):
    """A document of a plain corpus.

    Attributes:
        id: the record's own ``id`` or ``doc_id``, or ``WARC-Record-ID``; else
            `lc_assets.vocabulary.Shard.document_id` if the file is in RedPajama-V2's layout;
            else ``file name/number`` from 0.
        text: the document's text.
        url: address of the page, or empty.
        language: as stated by the record (two letters, or ``eng,deu`` in a crawl), or empty.
        source_domain: host of the page, or empty.
        date: when it was crawled, ISO 8601 text, or empty.
        perplexity: the published one; None without one.
        rest: every field of the record but its text, undecoded JSON of an object: written back
            unchanged. Where it was read for some fields only (`ReadingOptions`), it may lack the
            others.
        text_field: name of the text's field.
        own_id: the record's own id; empty when it has none.
        odd: names of the fields used that have another type than they should.
    """

    id: str
    text: str
    url: str = ""
    language: str = ""
    source_domain: str = ""
    date: str = ""
    perplexity: float | None = None
    rest: msgspec.Raw = NO_FIELDS
    text_field: str = "text"
    own_id: str = ""
    odd: tuple[str, ...] = ()


def release_text(document: msgspec.Struct) -> None:
    """Empty the text of a document, or of a `DocumentRecord`, which the generators that yielded it
    may hold still.
    """
    name = "text" if isinstance(document, CorpusDocument) else "raw_content"
    msgspec.structs.force_setattr(document, name, "")


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """Yielded in place of a document that cannot be read.

    Attributes:
        id: what the document's id would have been.
        where: file and line, row or record, for messages.
        why: one of a few short reasons, for counts; such as ``not JSON``, ``no text``, ``line
            too long``.
    """

    id: str
    where: str
    why: str


def as_float(value: object) -> float | None:
    """A number of a record as float64, also one in a string; None for anything else, and for
    numbers beyond float64.

    >>> as_float(7), as_float("7.5"), as_float(True), as_float("seven"), as_float(10**400)
    (7.0, 7.5, None, None, None)
    """
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return found if isfinite(found := float(value)) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, int) and abs(value) > sys.float_info.max else float(value)


PLAIN_JSON_LINES = (".jsonl", ".json")
JSON_LINES = (".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst", *PLAIN_JSON_LINES)
PARQUET = (".parquet",)
WET = (".wet.gz", ".wet")
WARC = (".warc.gz", ".warc")
SUFFIXES = (*JSON_LINES, *PARQUET, *WET, *WARC)
TEXT = (".txt",)
"""Kinds that are read when a file is named, or when a folder holds no others."""

MAX_DOCUMENT_BYTES = 256 << 20
"""Default limit for documents."""


class ReadingOptions(NamedTuple):
    """How a file of documents is read.

    Attributes:
        text_field: where a record's text is; by default ``raw_content``, ``text`` or ``content``,
            the first that it has.
        id_field: where a record's id is; by default ``id`` or ``doc_id``.
        max_document_bytes: a longer one is not read.
        quality: of texts out of the pages of a WARC file.
        lines: of an uncompressed file of JSON lines, the range to read.
        fields: of ``rest``, those that the caller reads; None, if it may write the records. Lines
            of JSON are read faster when they are named.
    """

    text_field: str | None = None
    id_field: str | None = None
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    quality: Quality = "fast"
    lines: Range | None = None
    fields: frozenset[str] | None = None


_READ_BYTES = 1 << 18


def name_of_places(path: Path) -> str:
    """Prefix of the ids, ``{prefix}/{number}``, of documents that have none of their own:
    RedPajama-V2's, if the file is in its layout.

    >>> (
    ...     name_of_places(Path("documents/2023-06/0000/en_head.json.gz")),
    ...     name_of_places(Path("mine/part-1.parquet")),
    ... )
    ('2023-06/0000/en_head.json.gz', 'part-1.parquet')
    """
    tag = "/".join((*path.parts[-3:-1], path.name.removesuffix(".json.gz")))
    try:
        return f"{Shard.parse(tag).tag}.json.gz"
    except BadInput:
        return path.name


@contextlib.contextmanager
def plain_bytes(path: Path, lines: Range | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading, or a range of its lines; decompressed when its name ends in ``.gz``
    or ``.zst``.

    Raises:
        CorruptFile: when compressed bytes are damaged, truncated or missing, also while they are
            read.
    """
    with (
        library_errors_as_corrupt_file(path, DAMAGED),
        io.BufferedReader(path.open("rb", 0), _READ_BYTES) as file,
        contextlib.ExitStack() as stack,
    ):
        if lines is not None:
            yield io.BufferedReader(LinesOfRange(file, lines), _READ_BYTES)
            return
        if not path.name.endswith((".gz", ".zst")):
            yield file
            return
        if not file.peek(1):
            raise CorruptFile(f"{path}: the file is empty, not even a header; fetch it again")
        if path.name.endswith(".gz"):
            yield cast("BinaryIO", stack.enter_context(igzip.IGzipFile(fileobj=file, mode="rb")))
        else:
            # Arrow's reader reports a truncated stream; zstandard's does not.
            inner = stack.enter_context(
                pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
            )
            bounded = _Unpacked(inner, Allowance(path.stat().st_size, path))
            yield cast("BinaryIO", stack.enter_context(io.BufferedReader(bounded, _READ_BYTES)))


class _Unpacked(io.RawIOBase):
    """The bytes out of a zstd stream, whose number is limited."""

    def __init__(self, stream: pa.NativeFile, allowance: Allowance) -> None:
        self._stream, self._allowance = stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes: int = self._stream.readinto(buffer)
        self._allowance.spend(n_bytes)
        return n_bytes


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER = msgspec.json.Encoder()


def json_line(document: CorpusDocument) -> bytes:
    r"""One document as a line of JSON, with its newline.

    >>> json_line(
    ...     CorpusDocument(
    ...         id="x/0", text="Hello", rest=msgspec.Raw(b'{"n": 1}'), text_field="body"
    ...     )
    ... )
    b'{"id":"x/0","n":1,"body":"Hello"}\n'
    """
    fields = _FIELDS.decode(document.rest)
    named = (
        {}
        if "id" in fields or "doc_id" in fields
        else {"id": msgspec.Raw(_ENCODER.encode(document.id))}
    )
    # Not with a newline added: of a long text that would be one more copy.
    return _ENCODER.encode_lines([{**named, **fields, document.text_field: document.text}])


def write_corpus(path: Path, documents: Iterable[CorpusDocument]) -> int:
    """Write documents to a ``.jsonl.gz`` file in an existing folder; return how many."""
    n_docs = 0
    with gzipped(path) as out:
        for document in documents:
            out.write(json_line(document))
            n_docs += 1
    return n_docs
