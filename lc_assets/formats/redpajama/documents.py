"""Documents of one shard: ``documents/{tag}.json.gz``, one record per line; and their ids,
``{snapshot}/{shard}/{language}_{bucket}.json.gz/{line}``.

The package's docstring lists the fields and their pitfalls. `decode_document` takes a line as
`lines.read_lines` yields it.

The duplicates of a shard are in ``duplicates/{tag}.duplicates.parquet``:

========  ======  ==========================================================
column    type    content
========  ======  ==========================================================
shard_id  string  ``2023-06/0000/en_head.json.gz``
doc_id    string  ``2023-06/0000/en_head.json.gz/17``
digest    string  SHA-1 of the WET record in base32, without ``sha1:``
========  ======  ==========================================================

One row per document whose digest was seen before, in this snapshot or a newer one; the first
occurrence has none.
Source: ``app/src/bloomfilter.py`` of togethercomputer/RedPajama-Data.
"""

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.opening import guarded
from lc_assets.formats.redpajama.lines import decode_json, write_json_lines
from lc_assets.vocabulary import Shard

# What a float64 holds exactly: the same numbers are published as floating point signals.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One document as CCNet wrote it; only the text is required, and a missing number is None.

    Attributes:
        url: address of the page.
        date_download: when it was fetched, as ISO 8601 text.
        digest: ``sha1:`` and base32, of the whole WET record, so two equal texts may differ in it.
        length: characters of ``raw_content``.
        nlines: lines of ``raw_content``, a last empty one included.
        source_domain: host of the url.
        title: first line of the page; not part of ``raw_content``.
        raw_content: the text.
        cc_segment: path of the WET file in the crawl.
        original_nlines: lines before CCNet removed repeated ones, without the title.
        original_length: bytes of the WET record, title included.
        line_ids: which lines of the page were kept.
        language: language code.
        language_score: certainty of it, 0 to 1.
        perplexity: under CCNet's language model of Wikipedia.
        bucket: ``head``, ``middle`` or ``tail`` by perplexity.
    """

    url: str = ""
    date_download: str = ""
    digest: str = ""
    length: Count | None = None
    nlines: Count | None = None
    source_domain: str = ""
    title: str = ""
    raw_content: str
    cc_segment: str = ""
    original_nlines: Count | None = None
    original_length: Count | None = None
    line_ids: list[Count] = []
    language: str = ""
    language_score: float | None = None
    perplexity: float | None = None
    bucket: str = ""


_DECODER = msgspec.json.Decoder(DocumentRecord)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OF_FIELD = {
    field.name: (
        msgspec.json.Decoder(field.type),
        msgspec.json.Decoder(field.type, strict=False),
    )
    for field in msgspec.structs.fields(DocumentRecord)
}
_TEXT = "raw_content"
_NUMBERS = [f.name for f in msgspec.structs.fields(DocumentRecord) if f.default is None]
"""Fields that are None where they are null, or missing."""


def decode_document(line: bytes, *, where: str, odd: Counter[str] | None = None) -> DocumentRecord:
    r"""Read one line of a documents file; other fields are ignored.

    A number may be in a string. A field other than the text that is null or of another type is as
    if it were missing.

    >>> odd = Counter[str]()
    >>> line = b'{"raw_content": "Hello", "nlines": "1", "perplexity": null, "url": 5}'
    >>> record = decode_document(line, where="line 0", odd=odd)
    >>> (record.nlines, record.perplexity, record.url), sorted(odd)
    ((1, None, ''), ['nlines', 'perplexity', 'url'])

    Args:
        line: JSON.
        where: for messages.
        odd: counts such fields by name.

    Raises:
        CorruptFile: when it is not a document: not JSON, or no text; states ``where``, the field
            and why.
    """
    with contextlib.suppress(CorruptFile):
        record = decode_json(line, _DECODER, where=where)
        if all(getattr(record, name) is not None for name in _NUMBERS):
            return record  # no field is null
        del record
    fields = decode_json(line, _FIELDS, where=where)
    if _TEXT not in fields:
        raise CorruptFile(f"{where}: has no field {_TEXT}")
    found: dict[str, Any] = {}
    for name in fields.keys() & _OF_FIELD.keys():
        raw, (strict, lenient) = bytes(fields[name]), _OF_FIELD[name]
        at = f"{where}, field {name}"
        is_right = raw != b"null"
        try:
            found[name] = decode_json(raw, strict, where=at)
        except CorruptFile:
            if name == _TEXT:
                raise
            is_right = False
            with contextlib.suppress(CorruptFile):
                found[name] = decode_json(raw, lenient, where=at)
        if odd is not None and not is_right:
            odd[name] += 1
    return DocumentRecord(**found)


_DIGEST = re.compile(rb'"digest"\s*:\s*"([^"\\\x80-\xff]*)"')


def digest_in(line: bytes) -> str:
    r"""The page's digest in an undecoded line of a documents file; empty when there is none. Quotes
    within texts are escaped, so the name of the field is found only as one.

    >>> digest_in(b'{"url": "http://a.org", "digest": "sha1:AB", "raw_content": "\\"digest\\""}')
    'sha1:AB'
    """
    found = _DIGEST.search(line)
    return found[1].decode() if found else ""


def write_documents(path: Path, records: Iterable[DocumentRecord]) -> None:
    """Write a shard's documents, every field of each, into an existing folder."""
    write_json_lines(path, records)


_LINE = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


def line_reader(shard: Shard) -> Callable[[str, str], int]:
    """Make the function that takes ``(id, where)`` to the 0-based line within ``shard``.

    The function raises `CorruptFile` at an id of another shard, or none at all: the file is not
    this shard's.

    >>> line_reader(Shard.parse("2023-06/0000/en_head"))("2023-06/0000/en_head.json.gz/17", "here")
    17
    """
    prefix = f"{shard.tag}.json.gz/"

    def line_of(document_id: str, where: str) -> int:
        number = document_id.removeprefix(prefix)
        if number == document_id or not _LINE.fullmatch(number):
            raise CorruptFile(
                f"{where}: found id {document_id[:80]!r}, expected ids such as {prefix}17; is this "
                "another shard's file?"
            )
        return int(number)

    return line_of


def id_int(document_id: str) -> int:
    """The first 8 bytes of the id's SHA-1, little-endian, unsigned.

    >>> id_int("2018-43/0000/en_head.json.gz/0")
    7972430436813205988
    """
    return int.from_bytes(
        hashlib.sha1(document_id.encode(), usedforsecurity=False).digest()[:8], "little"
    )


COLUMNS = ("shard_id", "doc_id", "digest")
BATCH_ROWS = 65_536


def read_duplicates(source: BinaryIO | Path, *, shard: Shard, where: str) -> frozenset[int]:
    """Read which 0-based lines of a shard's documents file are duplicates.

    Raises:
        CorruptFile: when the file is not Parquet, is damaged, has other columns, or names a
            document of another shard.
    """
    line_of = line_reader(shard)
    with (
        library_errors_as_corrupt_file(where),
        guarded(source, where=where, rows_at_once=BATCH_ROWS) as file,
    ):
        _check_columns(file.file.schema_arrow, where)
        batches = file.batches(BATCH_ROWS, ["doc_id"])
        return frozenset(
            line_of(doc_id or "", where)
            for batch in batches
            for doc_id in batch["doc_id"].to_pylist()
        )


def write_duplicates(path: Path, shard: Shard, rows: Iterable[tuple[int, str]]) -> None:
    """Write a shard's duplicates into an existing folder: ``(line, digest)`` for each; a leading
    ``sha1:`` is left out.
    """
    rows = list(rows)
    columns = {
        "shard_id": [f"{shard.tag}.json.gz"] * len(rows),
        "doc_id": [shard.document_id(line) for line, _ in rows],
        "digest": [digest.removeprefix("sha1:") for _, digest in rows],
    }
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    pq.write_table(pa.table(columns, schema=schema), path, compression="snappy")


def _check_columns(schema: pa.Schema, where: str) -> None:
    strings = (pa.string(), pa.large_string())
    if tuple(schema.names) != COLUMNS or any(field.type not in strings for field in schema):
        found = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise CorruptFile(
            f"{where}: columns are ({found[:200]}), expected strings named {', '.join(COLUMNS)}"
        )
