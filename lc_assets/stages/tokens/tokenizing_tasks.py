"""Tasks of tokenizing: a shard of documents, how its text becomes ids, and reading it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    DocumentsTask,
    documents_files,
)
from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.tables import IDENTITY, TOKENIZED, read_columns
from lc_assets.formats.parquet.opening import BYTES_TOGETHER
from lc_assets.formats.tokenizers.golden import golden_page
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.formats.tokenizers.sentences import model_digest
from lc_assets.records import record
from lc_assets.stages.tokens.tokenized_text import ranges_together, text_digest, tokenized_utf8
from lc_assets.tokens.dtypes import stored_dtype
from lc_assets.tokens.tokenizers import escaped_utf8, n_characters

SUFFIXES = (".bin", ".bin.crc32", ".idx", DOCUMENTS_SUFFIX, DROPPED_SUFFIX)
"""Files of a tokenized shard."""

TERMS = pa.schema(dict.fromkeys(("terms", "counts"), pa.list_(pa.int32())))
"""Words of a document, as `lc_assets.text.duplicates.keys.term_counts` numbers them."""


@record
class TokenizeTask(DocumentsTask):
    """One shard of documents to be tokenized into ``folder``.

    Attributes:
        settings: how text becomes ids.
        removed: reason of each skipped document, by id.
        label: prefix of the file names, if shards of several stages with equal names go into one
            folder.
        fields: additional columns of the documents to keep in the table.
        terms: whether to include each document's words, see `TERMS`.
        digests: of the texts of documents that are on the side of another text, by id.
        page: digest of the golden page's ids where the build began
            (`lc_assets.formats.tokenizers.golden`).
        also: tasks that make of the same documents the token ids of other vocabularies.
    """

    settings: TokenizingSettings
    removed: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    fields: tuple[str, ...] = ()
    terms: bool = False
    digests: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    also: tuple["TokenizeTask", ...] = ()

    @property
    def name(self) -> str:
        """The shard's name, behind its label."""
        return self.label + self.documents.name.removesuffix(DOCUMENTS_SUFFIX)


def tasks_of(
    source: Path,
    folder: Path,
    removed: Mapping[str, Mapping[str, str]],
    digests: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    *,
    settings: TokenizingSettings,
    **more: Any,
) -> list[TokenizeTask]:
    """A task per shard of documents in ``source``; ``removed`` has reasons, and ``digests`` the
    digests that decide the side of the split, by shard and id.

    Raises:
        BadInput: when there is no such tokenizer.
        Mismatch: when its program gives wrong ids of the golden page.
    """
    page = golden_page(settings.tokenizer)
    return [
        TokenizeTask(
            documents=path,
            folder=folder,
            removed=removed.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            digests=digests.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            settings=settings,
            page=page,
            **more,
        )
        for path in documents_files(source)
    ]


def table_of(fields: tuple[str, ...], *, terms: bool) -> pa.Schema:
    """Columns of a table of tokenized documents."""
    more = [pa.field(name, pa.string()) for name in fields]
    return pa.schema([*TOKENIZED, *more, *(TERMS if terms else ())])


def params_of(settings: TokenizingSettings) -> dict[str, Any]:
    """The settings that affect the bytes; the tokenizer is identified by content, not by path.

    Raises:
        BadInput: when there is no such tokenizer, or its ids do not fit the dtype.
    """
    vocabulary = vocabulary_of(settings.tokenizer)
    stored_dtype(vocabulary.n_ids, settings.dtype)
    found = plain(settings) | {
        "tokenizer": vocabulary.name,
        "n_ids": vocabulary.n_ids,
        "eot": vocabulary.eot,
        "tokenizer_sha256": vocabulary.sha256,
    }
    default = {"append_eod": False, "dtype": "auto", "split_sentences": "", "keep_newlines": False}
    idle = {name for name, value in default.items() if found[name] == value}
    if settings.split_sentences:
        found["sentence_model"] = model_digest(settings.split_sentences)
    idle |= set() if settings.privacy.replace else {"privacy"}
    return {name: value for name, value in found.items() if name not in idle}


class Documents(NamedTuple):
    """Some documents that are read once for all tokenizers.

    Attributes:
        columns: what all tables have of them.
        places: in the table, from 0.
        numbers: of those that are not removed, from 0; -1 of a removed one.
        reasons: why each is removed, if it is.
        contents: the texts to be tokenized, in UTF-8; empty where they are removed.
        escaped: the same, escaped.
        replaced: replacements of personal data, by kind; none at all where none are wanted.
    """

    columns: dict[str, list[Any]]
    places: Sequence[int]
    numbers: list[int]
    reasons: list[str]
    contents: list[bytes]
    escaped: list[bytes]
    replaced: list[Mapping[str, int]]

    def of(self, some: slice) -> "Documents":
        """Some of them."""
        columns = {name: column[some] for name, column in self.columns.items()}
        others: list[Any] = [column[some] for column in self[1:]]
        return Documents(columns, *others)


def documents_of(task: TokenizeTask) -> Iterator[Documents]:
    """The documents of a shard, some at a time.

    Raises:
        CorruptFile: as `lc_assets.builds.tables.read_table`.
    """
    numbers, first = count(), 0
    # One by one where sentences are found, so that all tokenizers use the same.
    least = BYTES_TOGETHER if task.settings.split_sentences else 0
    names = list(dict.fromkeys([*IDENTITY, *task.fields, "raw_content"]))
    for columns in read_columns(task.documents, names, utf8="raw_content"):
        texts = columns["raw_content"]
        for start, stop in ranges_together(np.cumsum([max(len(text), least) for text in texts])):
            found = {name: column[start:stop] for name, column in columns.items()}
            texts[start:stop] = [b""] * (stop - start)  # held by the caller only
            yield _read(task, found, range(first + start, first + stop), numbers)
        first += len(texts)


def _read(
    task: TokenizeTask, columns: dict[str, list[Any]], places: range, numbers: Iterator[int]
) -> Documents:
    """Some documents, with what the tables have of their texts."""
    privacy, mode, ids = task.settings.privacy, task.settings.text_encoding, columns["id"]
    reasons = [task.removed.get(name, "") for name in ids]
    raw = zip(columns.pop("raw_content"), reasons, strict=True)
    contents = [b"" if reason else text for text, reason in raw]
    replaced = list[Mapping[str, int]]()
    if privacy.replace:
        for at, (text, language) in enumerate(zip(contents, columns["language"], strict=True)):
            line = {"raw_content": text, "language": language}
            contents[at], counts = tokenized_utf8(line, privacy)
            replaced.append(counts)
    columns["n_chars"] = list(map(n_characters, contents))
    columns["n_bytes"] = list(map(len, contents))
    digested = zip(ids, contents, strict=True)
    columns["tokenized_digest"] = [task.digests.get(i) or text_digest(text) for i, text in digested]
    return Documents(
        columns=columns,
        places=places,
        numbers=[-1 if reason else next(numbers) for reason in reasons],
        reasons=reasons,
        contents=contents,
        escaped=[escaped_utf8(text, mode) for text in contents],
        replaced=replaced,
    )
