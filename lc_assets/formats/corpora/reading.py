"""Reading a corpus: which files it is, and the documents of one of them.

A file is recognised by the end of its name. Memory is bounded by one document.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.redpajama.lines import decode_json, read_lines
from lc_assets.vocabulary import Shard

MAX_DOCUMENT_BYTES: Final = 256 << 20
TEXT_FIELDS: Final = ("raw_content", "text", "content")
JSON_LINES: Final = (".jsonl.gz", ".json.gz", ".jsonl", ".json")
PARQUET: Final = (".parquet",)
SUFFIXES: Final = (*JSON_LINES, *PARQUET)

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def corpus_files(sources: Iterable[Path]) -> list[Path]:
    """The files of a corpus: those named, and those below the folders named, sorted; hidden ones are left out.

    Raises:
        BadInput: when a source is not there, is of no known kind, or a folder holds no file of a known kind.
    """
    return sorted({file for source in sources for file in _files_of(source)})


def read_corpus(
    path: Path, *, text_field: str | None = None, max_document_bytes: int = MAX_DOCUMENT_BYTES
) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of one file in order; in place of one that cannot be read, say why.

    Args:
        path: the file.
        text_field: where a record's text is; by default the first of `TEXT_FIELDS` that it has.
        max_document_bytes: a longer one is not read.

    Raises:
        BadInput: when the file's kind is not known.
        CorruptFile: when its container is damaged.
    """
    if path.name.endswith(PARQUET):
        yield from _parquet(path, text_field)
    elif path.name.endswith(JSON_LINES):
        yield from _json_lines(path, text_field, max_document_bytes)
    else:
        raise BadInput(f"{path}: of no known kind; known are {', '.join(SUFFIXES)}")


def _files_of(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    found = [path for path in source.rglob("*") if path.name.endswith(SUFFIXES) and not path.name.startswith(".")]
    if not found:
        raise BadInput(f"{source}: holds no file that ends in {', '.join(SUFFIXES)}" if source.is_dir() else f"{source}: is not there")
    return found


def _json_lines(path: Path, text_field: str | None, max_document_bytes: int) -> Iterator[CorpusDocument | Unread]:
    with path.open("rb") as stream:
        lines: Iterable[tuple[int, bytes | None]] = (
            read_lines(stream, where=str(path), max_line_bytes=max_document_bytes)
            if path.name.endswith(".gz")
            else ((number, line.rstrip(b"\n")) for number, line in enumerate(stream))
        )
        for number, line in lines:
            place = _id_by_place(path, number)
            where = f"{path}, line {number}"
            if line is None:
                yield Unread(id=place, where=where, why="line too long")
                continue
            try:
                record = decode_json(line, _OBJECT, where=where)
            except CorruptFile:
                yield Unread(id=place, where=where, why="not JSON")
                continue
            yield _document({name: msgspec.json.decode(raw) for name, raw in record.items()}, place, where, text_field)


def _parquet(path: Path, text_field: str | None) -> Iterator[CorpusDocument | Unread]:
    with pq.ParquetFile(path) as file:
        number = 0
        for batch in file.iter_batches(64):
            for record in batch.to_pylist():
                yield _document(record, _id_by_place(path, number), f"{path}, row {number}", text_field)
                number += 1


def _document(record: dict[str, Any], place: str, where: str, text_field: str | None) -> CorpusDocument | Unread:
    field = text_field or next((name for name in TEXT_FIELDS if name in record), TEXT_FIELDS[0])
    text = record.pop(field, None)
    if not isinstance(text, str):
        return Unread(id=place, where=where, why="no text")
    perplexity = record.get("perplexity")
    return CorpusDocument(
        id=str(record.get("id") or record.get("doc_id") or place),
        text=text,
        url=str(record.get("url") or ""),
        language=str(record.get("language") or ""),
        source_domain=str(record.get("source_domain") or ""),
        date=str(record.get("date_download") or record.get("date") or ""),
        perplexity=float(perplexity) if isinstance(perplexity, int | float) else None,
        rest=msgspec.Raw(msgspec.json.encode(record)),
    )


def _id_by_place(path: Path, number: int) -> str:
    tag = "/".join((*path.parts[-3:-1], path.name.removesuffix(".json.gz")))
    try:
        return Shard.parse(tag).document_id(number)
    except BadInput:
        return f"{path.name}/{number}"
