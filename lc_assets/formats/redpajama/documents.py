"""Documents of one shard: ``documents/{tag}.json.gz``, one record per line.

The fields and their traps are in the package's docstring. `decode_document` takes a line as
`lines.read_lines` yields it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec

from lc_assets.formats.redpajama.lines import decode_json, write_json_lines

# What a float64 holds exactly: the same numbers are published as floating point signals.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One document as CCNet left it; only the text must be there.

    Attributes:
        url: where the page was fetched.
        date_download: when, as ISO 8601 text.
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
    length: Count = 0
    nlines: Count = 0
    source_domain: str = ""
    title: str = ""
    raw_content: str
    cc_segment: str = ""
    original_nlines: Count = 0
    original_length: Count = 0
    line_ids: list[Count] = []
    language: str = ""
    language_score: float = 0.0
    perplexity: float = 0.0
    bucket: str = ""


_DECODER: Final = msgspec.json.Decoder(DocumentRecord)


def decode_document(line: bytes, *, where: str) -> DocumentRecord:
    r"""Read one line of a documents file; fields not named above are passed over.

    >>> decode_document(b'{"raw_content": "Hello", "nlines": 1}', where="line 0").raw_content
    'Hello'

    Raises:
        CorruptFile: when it is no document: not JSON, no text, a field of another type; says
            ``where`` and why.
    """
    return decode_json(line, _DECODER, where=where)


def write_documents(path: Path, records: Iterable[DocumentRecord]) -> None:
    """Write a shard's documents, every field of each; its folder must be there."""
    write_json_lines(path, records)
