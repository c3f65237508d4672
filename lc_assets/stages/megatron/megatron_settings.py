"""How a corpus is to be written for Megatron: what a person asks for, and the same looked up, found
possible and named.

Here: values alone. Not here: the work (`lc_assets.stages.megatron.megatron_writing`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import MAX_DOCUMENT_BYTES
from lc_assets.formats.tokenizers.files import Vocabulary
from lc_assets.formats.tokenizers.named import located, vocabulary_of
from lc_assets.stages.megatron.megatron_receipts import Ids
from lc_assets.tokens.dtypes import header_warning, stored_dtype

HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a corpus is to be written.

    Attributes:
        tokenizer: a name, a file, a folder or a model of the hub
            (`lc_assets.formats.tokenizers.named.located`).
        append_eod: end every document with the tokenizer's end of text.
        dtype: ``auto``, ``uint16`` or ``int32`` (`lc_assets.tokens.dtypes`).
        text_field: where a record's text is; by default ``raw_content``, ``text`` or ``content``.
        batch_size: documents that are written at once; memory, not bytes, depends on it.
        max_document_bytes: a longer document is dropped and counted.
    """

    tokenizer: str
    append_eod: bool = False
    dtype: str = "auto"
    text_field: str | None = None
    batch_size: int = 1000
    max_document_bytes: int = MAX_DOCUMENT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The same, looked up and found possible.

    Attributes:
        setting: of the tokenizer, with every file on this machine.
        ids: what the ids mean.
        writing: what was asked for.
        warnings: what the person who asked should know.
    """

    setting: str
    ids: Ids
    writing: Writing
    warnings: tuple[str, ...]

    @property
    def label(self) -> str:
        """Everything that determines a part's bytes beside its file."""
        chosen = (
            self.ids.tokenizer_sha256,
            self.ids.eod,
            self.ids.dtype,
            self.writing.text_field,
            self.writing.max_document_bytes,
        )
        return msgspec.json.encode(chosen).decode()


def settle(writing: Writing) -> Settled:
    """Look up the tokenizer and choose the dtype.

    Raises:
        BadInput: when there is no such tokenizer or dtype, the vocabulary does not fit the dtype,
            or no document fits a batch.
        Unreachable: when a vocabulary has to be fetched and cannot.
    """
    if writing.batch_size < 1:
        raise BadInput(
            f"batch_size is a number of documents, at least 1, got {writing.batch_size:,}"
        )
    setting = located(writing.tokenizer)
    vocabulary = vocabulary_of(setting)
    dtype = stored_dtype(vocabulary.n_ids, writing.dtype)
    warnings = [trap] if (trap := header_warning(vocabulary.n_ids, dtype)) else []
    if writing.append_eod and vocabulary.eot is None:
        warnings.append(
            f"{vocabulary.name} has no end of text, so none is appended to the documents, though "
            "it was asked for"
        )
    return Settled(
        setting=setting,
        ids=_ids(vocabulary, writing, dtype),
        writing=writing,
        warnings=tuple(warnings),
    )


def _ids(vocabulary: Vocabulary, writing: Writing, dtype: np.dtype[Any]) -> Ids:
    return Ids(
        tokenizer=vocabulary.name,
        tokenizer_sha256=vocabulary.sha256,
        n_ids=vocabulary.n_ids,
        eod=vocabulary.eot if writing.append_eod else None,
        dtype=dtype.name,
    )


def part_name(sources: Sequence[str], task: str) -> str:
    """Name of a part, from the names of its sources: Curator's ``get_deterministic_hash``.

    >>> part_name(["b.jsonl", "a.jsonl"], "7") == part_name(["a.jsonl", "b.jsonl"], "7")
    True
    """
    return hashlib.sha256(
        f"{'|'.join(sorted(sources))}|{task}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:HASH_DIGITS]
