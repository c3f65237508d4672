"""The text of a document as it is tokenized, and its digest.

Personal data are replaced first, where ``[token_documents.privacy]`` names kinds. Duplicates are
looked for among these texts.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Booleans, Bytes, Int64s
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.table_writer import GROUP_BYTES
from lc_assets.builds.tables import in_utf8, opened_table, require_columns
from lc_assets.execution.containment import at_documents
from lc_assets.formats.parquet.opening import BYTES_TOGETHER, batches_of, rows_of
from lc_assets.formats.unpacking import require_small
from lc_assets.text.privacy.replacing import Replaced, replace_personal


def tokenized_text(line: Mapping[str, Any], privacy: PrivacySettings) -> Replaced:
    """A document's text with personal data replaced, and the number of replacements by kind.

    Args:
        line: has ``raw_content`` and, where something is replaced, ``language``.
        privacy: what is replaced.
    """
    if not privacy.replace:
        return Replaced(text=line["raw_content"], counts={})
    return replace_personal(
        line["raw_content"],
        privacy.replace,
        style=privacy.style,
        seed=privacy.seed,
        language=line["language"],
        region=privacy.phone_region,
    )


def tokenized_utf8(
    line: Mapping[str, Any], privacy: PrivacySettings
) -> tuple[bytes, Mapping[str, int]]:
    """The same, of a text in UTF-8 and in UTF-8; nothing is decoded where nothing is replaced."""
    if not privacy.replace:
        return line["raw_content"], {}
    found = tokenized_text({**line, "raw_content": line["raw_content"].decode()}, privacy)
    return found.text.encode(), found.counts


class SomeTexts(NamedTuple):
    """Some documents of a table, with texts of some `BYTES_TOGETHER`, or one with a longer text.

    Attributes:
        lines: the columns that were asked for.
        raw: the UTF-8 of their texts, one behind the other, and after the last byte of each, int64.
        tokenized: the same as the texts are tokenized; the same object where nothing is replaced.
    """

    lines: pa.RecordBatch
    raw: tuple[Bytes, Int64s]
    tokenized: tuple[Bytes, Int64s]


def read_texts(
    path: Path,
    columns: Sequence[str],
    privacy: PrivacySettings,
    only: Booleans | None = None,
) -> Iterator[SomeTexts]:
    """Read a table of filtered documents, some at a time.

    Args:
        path: the table.
        columns: those that are wanted beside the texts.
        privacy: what is replaced in a text before it is tokenized.
        only: ``(lines,)``, which of the documents are wanted; by default all. Only pages that hold
            one are decompressed.

    Raises:
        CorruptFile: as `lc_assets.builds.tables.read_lines`.
    """
    with opened_table(path) as file:
        read = list(dict.fromkeys([*columns, *text_columns(privacy)]))
        require_columns(file.schema_arrow, read, path)
        for places, lines in _lines_of(path, file, read, only):
            yield from _texts_of(lines, places, columns, privacy)


def texts_in(
    table: pa.Table, columns: Sequence[str], privacy: PrivacySettings
) -> Iterator[SomeTexts]:
    """The same of a table in memory."""
    read = dict.fromkeys([*columns, *text_columns(privacy)])
    for lines in table.select(list(read)).to_batches():
        yield from _texts_of(lines, np.full(lines.num_rows, -1), columns, privacy)


def _texts_of(
    lines: pa.RecordBatch, places: Int64s, columns: Sequence[str], privacy: PrivacySettings
) -> Iterator[SomeTexts]:
    column = in_utf8(lines.select(["raw_content"]), "raw_content")["raw_content"]
    for start, stop in ranges_together(_utf8_of(column)[1]):
        for some in at_documents(places[start:stop].tolist()):
            found = lines[start:stop][some]
            raw = _utf8_of(column[start:stop][some])
            tokenized = _tokenized(found, privacy) if privacy.replace else raw
            yield SomeTexts(found.select(list(columns)), raw, tokenized)


def _lines_of(
    path: Path, file: pq.ParquetFile, columns: Sequence[str], only: Booleans | None
) -> Iterator[tuple[Int64s, pa.RecordBatch]]:
    """Lines of an open table, some at a time, and their numbers."""
    number = 0
    for group in range(file.num_row_groups):
        facts = file.metadata.row_group(group)
        require_small(facts.total_byte_size - GROUP_BYTES)
        places = np.arange(number, number := number + facts.num_rows)
        if only is None:
            for batch in batches_of(file, group, None, columns):
                yield places[: batch.num_rows], batch
                places = places[batch.num_rows :]
        elif only[places].any():
            rows = np.flatnonzero(only[places])
            texts_last = sorted(columns, key="raw_content".__eq__)
            yield places[rows], rows_of(path, file, group, rows.tolist(), texts_last)


def _utf8_of(texts: pa.Array) -> tuple[Bytes, Int64s]:
    if not len(texts):
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    _, offsets, content = texts.buffers()
    places = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
    return np.frombuffer(content or b"", np.uint8)[places[0] : places[-1]], places[1:] - places[0]


def ranges_together(ends: Int64s) -> Iterator[tuple[int, int]]:
    """Ranges of texts of some `BYTES_TOGETHER`, or of one, by where each text ends."""
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BYTES_TOGETHER, "right")))
        yield start, stop
        start = stop


def _tokenized(lines: pa.RecordBatch, privacy: PrivacySettings) -> tuple[Bytes, Int64s]:
    columns = in_utf8(lines.select(text_columns(privacy)), "raw_content")
    texts = [tokenized_utf8(line, privacy)[0] for line in columns.to_pylist()]
    ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))
    return np.frombuffer(texts[0] if len(texts) == 1 else b"".join(texts), np.uint8), ends


def text_columns(privacy: PrivacySettings) -> list[str]:
    """The columns of a document that `tokenized_text` reads."""
    return ["raw_content", *(["language"] if privacy.replace else [])]


def privacy_params(recipe: Recipe) -> dict[str, Any]:
    """The settings of `tokenized_text`, where it replaces anything, for a fingerprint."""
    privacy = recipe.token_documents.privacy
    return {"privacy": plain(privacy)} if privacy.replace else {}


def privacy_of(params: Mapping[str, Any]) -> PrivacySettings:
    """The settings of `tokenized_text`, of a fingerprint with `privacy_params`."""
    return msgspec.convert(params.get("privacy", {}), PrivacySettings)


def text_digest(text: bytes | memoryview) -> str:
    """Digest of a text's UTF-8, as lists of withdrawals name it.

    >>> text_digest(b"")[:20]
    'sha256:e3b0c44298fc1'
    """
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def are_held_out(recipe: Recipe) -> bool:
    """Whether any documents are held out."""
    return recipe.token_grid.heldout_fraction > 0
