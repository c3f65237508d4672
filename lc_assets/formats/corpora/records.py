"""A document of any corpus, and its replacement when it cannot be read."""

import sys

import msgspec


class CorpusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a plain corpus.

    Attributes:
        id: the record's own ``id`` or ``doc_id``, or ``WARC-Record-ID``; else
            `lc_assets.vocabulary.Shard.document_id` where the file lies in RedPajama-V2's layout;
            else ``file name/number`` from 0.
        text: of the document.
        url: of the page, or empty.
        language: as the record has it (two letters, or ``eng,deu`` in a crawl), or empty.
        source_domain: host of the page, or empty.
        date: when it was crawled, ISO 8601 text, or empty.
        perplexity: as published with it; None when it was not.
        rest: every field of the record but its text, undecoded JSON of an object: written back as
            it came.
        text_field: where the text was.
        own_id: the id that the record itself has; empty when it has none.
    """

    id: str
    text: str
    url: str = ""
    language: str = ""
    source_domain: str = ""
    date: str = ""
    perplexity: float | None = None
    rest: msgspec.Raw = msgspec.Raw(b"{}")
    text_field: str = "text"
    own_id: str = ""


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
    """A number of a record as float64; None for anything else, and for numbers beyond float64.

    >>> as_float(7), as_float(True), as_float("7"), as_float(10**400)
    (7.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, int) and abs(value) > sys.float_info.max else float(value)
