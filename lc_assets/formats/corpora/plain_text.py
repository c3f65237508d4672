"""A plain text file as one document, its name the document's id. Only where it is named: a folder's
``.txt`` files are no corpus.
"""

from collections.abc import Iterator
from pathlib import Path

from lc_assets.formats.corpora.records import CorpusDocument, Unread


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
