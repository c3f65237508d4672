"""The document of a record, made field by field."""

from collections.abc import Mapping
from typing import Any

from lc_assets.formats.corpora.containers import CorpusDocument, as_float

TEXTS = ("id", "doc_id", "url", "language", "source_domain")


def document_of(
    fields: Mapping[str, Any], text: str, *, place: str, id_field: str | None = None
) -> CorpusDocument:
    """The document of a record's other fields, which is to be written without any."""
    own = fields.get(id_field or "id")
    if not id_field and own in (None, ""):
        own = fields.get("doc_id")
    own_id = "" if own is None else str(own)
    odd = [name for name in TEXTS if not isinstance(fields.get(name), str | None)]
    if not isinstance(fields.get("perplexity"), int | float | None):
        odd.append("perplexity")
    return CorpusDocument(
        id=own_id or place,
        own_id=own_id,
        text=text,
        url=str(fields.get("url") or ""),
        language=str(fields.get("language") or ""),
        source_domain=str(fields.get("source_domain") or ""),
        date=str(fields.get("date_download") or fields.get("date") or ""),
        perplexity=as_float(fields.get("perplexity")),
        odd=tuple(odd),
    )
