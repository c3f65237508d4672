"""A document of any corpus, and what takes its place when it cannot be read."""

import msgspec


class CorpusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a plain corpus.

    Attributes:
        id: the record's own ``id`` or ``doc_id``; else `lc_assets.vocabulary.Shard.document_id` where the file lies in
            RedPajama-V2's layout; else ``file name/line`` from 0. Unique in a corpus.
        text: what is judged.
        url: of the page, or empty.
        language: two letters, or empty.
        source_domain: host of the page, or empty.
        date: when it was crawled, ISO 8601 text, or empty.
        perplexity: as published with it; None when it was not.
        rest: every other field of the record, undecoded JSON of an object: written back as it came.
    """

    id: str
    text: str
    url: str = ""
    language: str = ""
    source_domain: str = ""
    date: str = ""
    perplexity: float | None = None
    rest: msgspec.Raw = msgspec.Raw(b"{}")


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a corpus where a document should be.

    Attributes:
        id: what the document's id would have been, by its place.
        where: file and line, for people.
        why: one of a few short reasons, to be counted by; such as ``not JSON``, ``no text``, ``line too long``.
    """

    id: str
    where: str
    why: str
