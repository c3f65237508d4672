"""The characters that a token was made from, in its document as the source has it.

Texts are edited before they are tokenized: rules edit their lines, personal data are replaced, in
several passes, and the text is escaped. The document is read again from the version that was
tokenized, edited and tokenized in the same way; the token's characters are then followed back
through the edits. A token of a replacement has all characters of what was replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.columns import PLACES
from lc_assets.builds.lookups import lines_where
from lc_assets.builds.recipe_files import read_recipe, recorded_recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.errors import Mismatch, NotPublished
from lc_assets.formats.tokenizers.named import GPT2_NAMES, TIKTOKEN, token_spans, vocabulary_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.spans import Span
from lc_assets.stages.lineage.whereabouts import pages_within
from lc_assets.stages.tokens.packing_tokens import LABEL
from lc_assets.text.privacy.replacing import regions_of, replaced_in_rounds
from lc_assets.tokens.tokenizers import TextEncoding, escape
from lc_assets.vocabulary import parse_document_id

Edit = tuple[int, int, int]
"""Characters from, to, and the number of those that replace them."""


class Characters(NamedTuple):
    """Characters ``begin`` to ``end`` of a document, and their text: that of all ``parts``, in
    order, each from, to; there are several if rules removed something between them.
    """

    id: str
    begin: int
    end: int
    text: str
    parts: tuple[tuple[int, int], ...]


def characters_of(lake: Lake, span: Span, column: int) -> Characters | None:
    """The characters of the token in a column of a row, in its document; of a LongPack document, in
    its page, or, if LongPack wrote them, in the document under its id with `LABEL` before it. None
    for an end of text.

    Raises:
        BadInput: if the column belongs to another document or to padding, or the tokenizer fails.
        NotPublished: if the tokens or their documents are gone from the lake.
        Mismatch: if the tokens were made by a tokenizer that the lake's recipe does not name.
    """
    token = span.token_at(column)
    stage = "packing_tokens" if span.is_packed else "token_documents"
    tokens = lake.require_input(span.published, stage)
    document = _document_of(lake, tokens, span)
    text, language = document["raw_content"], document["language"]
    params = tokens.params
    privacy = msgspec.convert(params.get("privacy", {}), PrivacySettings)
    regions, style = regions_of(language, privacy.phone_region), privacy.style
    edits, edited = list[list[Edit]](), text
    for personal, values, after in replaced_in_rounds(
        text, privacy.replace, regions, style=style, seed=privacy.seed
    ):
        pairs = zip(personal, values, strict=True)
        edits.append([(one.start, one.end, len(value)) for one, value in pairs])
        edited = after
    encoding: TextEncoding = params["text_encoding"]
    edits.append(list(_escaped(edited, encoding)))
    spans = token_spans(tokenizer_of(lake, params["tokenizer"]), escape(edited, encoding))
    if token >= len(spans):
        return None
    begin, end = spans[token].tolist()
    for made in reversed(edits):
        begin, end = origin(made, begin)[0], origin(made, end - 1)[1]
    for part in pages_within(lake, span):
        if part["start"] <= begin and end <= part["stop"]:
            page = _page_of(lake, tokens, part["id"])
            # A page stands at the end of its part, behind a line and before white space.
            written, own = text[: part["stop"]].rstrip(), page["raw_content"]
            first = len(written) - len(own.rstrip())
            if first <= begin and own[begin - first : end - first] == text[begin:end]:
                return _in_source(page, begin - first, end - first)
    found = _in_source(document, begin, end)
    return found._replace(id=f"{LABEL}{span.id}") if span.token_shard.startswith(LABEL) else found


def _in_source(document: Mapping[str, Any], begin: int, end: int) -> Characters:
    """Some characters of a filtered document, as its source has them."""
    text: str = document["raw_content"]
    places, at, parts = document.get(PLACES.name) or (0, len(text)), 0, list[tuple[int, int]]()
    for start, stop in zip(places[::2], places[1::2], strict=True):
        low, high = max(begin - at, 0), min(end - at, stop - start)
        if low < high:
            parts.append((start + low, start + high))
        at += stop - start
    return Characters(document["id"], parts[0][0], parts[-1][1], text[begin:end], tuple(parts))


def origin(edits: Sequence[Edit], character: int) -> tuple[int, int]:
    """The characters of a text that one of the edited text was made from: of a replacement, all
    that it replaced.

    >>> [origin([(2, 6, 1)], character) for character in range(4)]
    [(0, 1), (1, 2), (2, 6), (6, 7)]
    """
    moved = 0
    for start, stop, length in edits:
        if character + moved < start:
            break
        if character + moved < start + length:
            return start, stop
        moved += stop - start - length
    return character + moved, character + moved + 1


def _document_of(lake: Lake, tokens: Published, span: Span) -> dict[str, Any]:
    """A document as it was tokenized."""
    is_longpack = span.token_shard.startswith(LABEL)
    stage = "longpack_documents" if is_longpack else "filtered_documents"
    return _line_of(lake.require_input(tokens, stage), span.id)


def _page_of(lake: Lake, tokens: Published, identity: str) -> dict[str, Any]:
    """A page of a LongPack document as it was filtered."""
    longpack = lake.require_input(tokens, "longpack_documents")
    for filtered in lake.inputs_of(longpack, "filtered_documents"):
        if filtered.key == parse_document_id(identity)[0].snapshot:
            return _line_of(filtered, identity)
    raise NotPublished(f"{longpack.where}: the page {identity} is gone from the lake")


def _line_of(documents: Published, identity: str) -> dict[str, Any]:
    name = f"{parse_document_id(identity)[0].name}{DOCUMENTS_SUFFIX}"
    path = documents.only(name) / name
    for line in lines_where(path, pc.field("id") == identity):
        return line
    raise NotPublished(f"{path}: has no document {identity}")


def _escaped(text: str, encoding: TextEncoding) -> Iterator[Edit]:
    for place, character in enumerate(text if encoding != "plain" else ""):
        if (length := len(escape(character, encoding))) != 1:
            yield place, place + 1, length


def tokenizer_of(lake: Lake, name: str) -> str:
    """The setting of a tokenizer that receipts name: of a file, as the lake's recipe has it.

    Raises:
        Mismatch: if the recipe names another.
    """
    if name in GPT2_NAMES or name in TIKTOKEN:
        return name
    setting = read_recipe(recorded_recipe(lake.url)).token_documents.tokenizer
    if vocabulary_of(setting).name != name:
        raise Mismatch(f"{lake.url}: its recipe names {setting}, its rows are tokens of {name}")
    return setting
