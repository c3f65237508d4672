"""Writing documents as JSON lines: each with all the fields that it came with, its text where it
was.

A document that brought no id gets ``id``, so that it can still be named where it goes. The same
documents give the same bytes, whatever the clock and the file's name. Not here: publishing whole
files (`lc_assets.publishing`).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.gzipping import gzipped

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER: Final = msgspec.json.Encoder()


def json_line(document: CorpusDocument) -> bytes:
    r"""One document as a line of JSON, with its newline.

    >>> json_line(CorpusDocument(id="x/0", text="Hello", rest=msgspec.Raw(b'{"n": 1}'), text_field="body"))
    b'{"id":"x/0","n":1,"body":"Hello"}\n'
    """
    fields = _FIELDS.decode(document.rest)
    named = (
        {}
        if "id" in fields or "doc_id" in fields
        else {"id": msgspec.Raw(_ENCODER.encode(document.id))}
    )
    return _ENCODER.encode({**named, **fields, document.text_field: document.text}) + b"\n"


def write_corpus(path: Path, documents: Iterable[CorpusDocument]) -> int:
    """Write documents to a ``.jsonl.gz`` file whose folder is there; returns how many."""
    n_docs = 0
    with gzipped(path) as out:
        for document in documents:
            out.write(json_line(document))
            n_docs += 1
    return n_docs
