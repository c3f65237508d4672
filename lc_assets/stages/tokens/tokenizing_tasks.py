"""Tasks of tokenizing: a shard of documents, and how its text becomes ids."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    DocumentsTask,
    documents_files,
)
from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.tables import TOKENIZED
from lc_assets.formats.tokenizers.golden import golden_page
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.formats.tokenizers.sentences import model_digest
from lc_assets.records import record
from lc_assets.tokens.dtypes import stored_dtype

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
