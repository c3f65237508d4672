"""Reading a corpus: which files it is, and the documents of one of them.

A file is recognised by the end of its name. Memory is bounded by one document, or a batch of rows.
A plain text file is one document, whose id is the file's name; it is read only when named itself.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.batches import Batch, one_by_one
from lc_assets.formats.corpora.containers import (
    JSON_LINES,
    PARQUET,
    SUFFIXES,
    TEXT,
    WARC,
    WET,
    CorpusDocument,
    ReadingOptions,
    Unread,
)
from lc_assets.formats.corpora.json_lines import read_json_lines


def corpus_files(sources: Iterable[Path], *, suffixes: tuple[str, ...] = SUFFIXES) -> list[Path]:
    """The files of a corpus: those named, and those with one of the suffixes in the folders named
    and below them, sorted; plain texts of a folder that holds nothing else that is read. Hidden
    files are left out.

    Raises:
        BadInput: when a source does not exist, or a folder holds no such file.
    """
    return sorted({file for source in sources for file in _files_of(source, suffixes)})


def read_corpus(path: Path, **options: Any) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of one file in order, or an `Unread` for one that cannot be read; the
    options are those of `ReadingOptions`. Errors as of `read_batches`.
    """
    batches = read_batches(path, ReadingOptions(**options))
    return chain.from_iterable(batch.documents() for batch in batches)


def read_batches(path: Path, options: ReadingOptions) -> Iterator[Batch]:
    """Yield the documents of one file in order, some at a time.

    Raises:
        BadInput: when the file's kind is not known.
        CorruptFile: when its container is damaged.
    """
    if path.name.endswith(JSON_LINES):
        return read_json_lines(path, options)
    if path.name.endswith(TEXT):
        return one_by_one(read_plain_text(path, options))
    # Slow imports that most corpora do not need.
    if path.name.endswith(PARQUET):
        from lc_assets.formats.corpora.parquet import read_parquet

        return read_parquet(path, options)
    if path.name.endswith((*WET, *WARC)):
        from lc_assets.formats.corpora.crawls import read_crawl

        return one_by_one(read_crawl(path, options))
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


def read_plain_text(path: Path, options: ReadingOptions) -> Iterator[CorpusDocument | Unread]:
    """Yield the one document of a file; see `read_batches`."""
    with path.open("rb") as file:
        content = file.read(options.max_document_bytes + 1)
    if len(content) > options.max_document_bytes:
        yield Unread(id=path.name, where=str(path), why="text too long")
        return
    try:
        yield CorpusDocument(id=path.name, text=content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        yield Unread(id=path.name, where=str(path), why="not UTF-8")
