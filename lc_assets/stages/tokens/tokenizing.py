"""Tokenizing a shard of documents: one Megatron ``.bin`` and ``.idx``, one sequence per document,
and a table of the documents.

Texts are encoded by the fast tokenizer; the reference tokenizer (tiktoken, tokenizers or
sentencepiece) also encodes the beginnings of some documents of every shard. If any ids differ, the
whole shard is tokenized by the reference, so the ids are the reference's in any case. Personal data
are replaced before that when ``[token_documents.privacy]`` names kinds, and counted by kind.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    DocumentsTask,
    documents_files,
)
from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.stage import CheckInput, CheckResult
from lc_assets.builds.tables import (
    DROPPED,
    IDENTITY,
    TOKENIZED,
    read_lines,
    read_table,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.tokenizers.named import tokenizer_of, vocabulary_of
from lc_assets.formats.tokenizers.sentences import model_digest, sentences_of
from lc_assets.records import record
from lc_assets.stages.documents.dropping import dropped_line
from lc_assets.stages.tokens.tokenized_text import text_digest, tokenized_utf8
from lc_assets.tokens.dtypes import memory_dtype, stored_dtype
from lc_assets.tokens.tokenizers import (
    Tokenizer,
    disagreement,
    escaped_utf8,
    first_ids,
    n_characters,
)

SUFFIXES = (".bin", ".bin.crc32", ".idx", DOCUMENTS_SUFFIX, DROPPED_SUFFIX)
"""Files of a tokenized shard."""

TOO_SHORT = "too few tokens"
TOO_FEW_BYTES = "too few bytes"
"""A token covers at least one byte, so a document of fewer bytes than the minimum need not be
tokenized.
"""
GAVE_UP = "tokenizer gave up"
"""tiktoken panics at a run of about a million spaces; the fast tokenizer does not."""
REPLACED = "personal data replaced"
BY_REFERENCE = "files tokenized by the reference tokenizer"
UNCHECKED = "files not checked by a reference tokenizer"

IDS_AT_ONCE = 1 << 20
"""Ids that a check reads at a time."""

CHECKED_FIRST = 4
"""Documents at the beginning of a shard that are all checked."""
CHECKED_CHARS = 20_000
"""Length of a beginning: it costs the reference about 2 ms."""

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
    """

    settings: TokenizingSettings
    removed: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    fields: tuple[str, ...] = ()
    terms: bool = False
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The shard's name, behind its label."""
        return self.label + self.documents.name.removesuffix(DOCUMENTS_SUFFIX)


def tasks_of(
    source: Path,
    folder: Path,
    removed: Mapping[str, Mapping[str, str]],
    digests: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    **settings: Any,
) -> list[TokenizeTask]:
    """A task per shard of documents in ``source``; ``removed`` has reasons, and ``digests`` the
    digests that decide the side of the split, by shard and id.
    """
    return [
        TokenizeTask(
            documents=path,
            folder=folder,
            removed=removed.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            digests=digests.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            **settings,
        )
        for path in documents_files(source)
    ]


def table_of(fields: tuple[str, ...], *, terms: bool) -> pa.Schema:
    """Columns of a table of tokenized documents."""
    more = [pa.field(name, pa.string()) for name in fields]
    return pa.schema([*TOKENIZED, *more, *(TERMS if terms else ())])


def tokenize_shard(task: TokenizeTask) -> Counts:
    """Tokenize one shard with the fast tokenizer if the reference tokenizer agrees, else with the
    latter.

    Raises:
        BadInput: when neither tokenizer is available.
    """
    setting = task.settings.tokenizer
    fast, reference = (available_tokenizer(setting, fast=fast) for fast in (True, False))
    if fast is not None:
        with contextlib.suppress(_TokenizersDiffer):
            counts = _tokenize(task, fast, reference)
            return counts + Counts(extra={BY_REFERENCE: 0, UNCHECKED: int(reference is None)})
    if reference is None:
        reference = tokenizer_of(setting, fast=False)
    counts = _tokenize(task, reference, None)
    return counts + Counts(extra={BY_REFERENCE: 1, UNCHECKED: 0})


def available_tokenizer(setting: str, *, fast: bool) -> Tokenizer | None:
    """A tokenizer, or None: the fast one does not read every kind of file, and the package of the
    reference may be missing.
    """
    try:
        return tokenizer_of(setting, fast=fast)
    except BadInput:
        return None


class _TokenizersDiffer(Exception):
    """The two tokenizers gave different ids; the shard's output is discarded."""


def _is_checked(number: int) -> bool:
    """Whether a document of a shard, counted from 0, is compared: the first `CHECKED_FIRST`, and
    then every one whose number is a power of two.
    """
    return number < CHECKED_FIRST or number & (number - 1) == 0


def _require_agreement(fast: Tokenizer, reference: Tokenizer, content: bytes) -> None:
    """Compare the ids of the beginning of a text in UTF-8.

    Raises:
        _TokenizersDiffer: when they differ.
    """
    beginning = content[: 4 * CHECKED_CHARS].decode("utf-8", "ignore")[:CHECKED_CHARS]
    try:
        differs = disagreement(fast, reference, [beginning]) is not None
    except BadInput:  # one of them fails on this text: nothing to compare
        return
    if differs:
        raise _TokenizersDiffer


def _tokenize(task: TokenizeTask, tokenizer: Tokenizer, reference: Tokenizer | None) -> Counts:
    dropped, replaced, n_kept, n_chars, n_read = Counter[str](), Counter[str](), 0, 0, 0
    settings, columns = task.settings, [*IDENTITY, "raw_content"]
    has_end = settings.append_eod and tokenizer.eot is not None
    end = np.array([tokenizer.eot] if has_end else [], memory_dtype(tokenizer.vocab_size))
    dtype = stored_dtype(tokenizer.vocab_size, settings.dtype)
    schema = table_of(task.fields, terms=task.terms)
    with contextlib.ExitStack() as stack:
        megatron = stack.enter_context(MegatronWriter.publishing(task.folder / task.name, dtype))
        kept = stack.enter_context(
            writing_table(task.folder / f"{task.name}{DOCUMENTS_SUFFIX}", schema)
        )
        others = stack.enter_context(
            writing_table(task.folder / f"{task.name}{DROPPED_SUFFIX}", DROPPED)
        )
        columns += task.fields
        for line in read_lines(task.documents, columns, utf8="raw_content"):
            reason, value = task.removed.get(line["id"]), None
            if reason is None:
                content, counts = tokenized_utf8(line, settings.privacy)
                del line["raw_content"]
                replaced.update(counts)
                escaped = escaped_utf8(content, settings.text_encoding)
                if reference is not None and _is_checked(n_read):
                    _require_agreement(tokenizer, reference, escaped)
                n_read += 1
                own_chars = n_characters(content)
                n_chars += own_chars
                sequences, reason, value = sequences_of(escaped, tokenizer, settings)
                del escaped
            if reason:
                dropped[reason] += 1
                others.add(dropped_line(line, reason, value))
                continue
            line["tokenized_digest"] = task.digests.get(line["id"]) or text_digest(content)
            if has_end:
                sequences[-1] = np.concatenate([sequences[-1], end])
            megatron.add_documents(sequences, [*map(len, sequences)], together=True)
            line |= {"document": n_kept, "n_tokens": sum(map(len, sequences))}
            line |= {"n_chars": own_chars, "n_bytes": len(content)}
            kept.add(line | (_terms(content) if task.terms else {}))
            del content
            n_kept += 1
    extra = {"tokens": megatron.n_tokens, "characters": n_chars, "shards": 1}
    extra |= {f"{REPLACED}: {kind}": n for kind, n in replaced.items()}
    return Counts.of(n_kept, dropped, extra)


def sequences_of(
    content: bytes, tokenizer: Tokenizer, settings: TokenizingSettings
) -> tuple[list[Array], str, int]:
    """Ids of a text in UTF-8, by sentence or together; and, if it is skipped, the reason and the
    number that is too small: a token covers at least one byte.
    """
    least = settings.min_tokens
    if len(content) < least:
        return [], TOO_FEW_BYTES, len(content)
    texts: Iterable[str | bytes] = [content]
    if settings.split_sentences:
        splitting = {"keep_newlines": settings.keep_newlines}
        texts = list(sentences_of(content.decode(), settings.split_sentences, **splitting))
    try:
        found = (
            [ids for ids in map(tokenizer.encode, texts) if len(ids)]
            if settings.first_tokens is None
            else [first_ids(tokenizer, content.decode(), settings.first_tokens)]
        )
    except BadInput:
        return [], GAVE_UP, n_characters(content)
    n_ids = sum(map(len, found))
    return found, "" if n_ids >= least else TOO_SHORT, n_ids


def _terms(content: bytes) -> dict[str, Any]:
    from lc_assets.text.duplicates.keys import term_counts

    return dict(zip(TERMS.names, term_counts(content), strict=True))


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


def the_ids_are_where_the_table_says(check_input: CheckInput) -> CheckResult:
    """Each shard's ``.idx`` is sound, its lengths are the table's token counts, and no id is
    outside the vocabulary.
    """
    found = by_workers(check_input, _ids_of, documents_files(check_input.folder))
    wrong = [words for complaints, _, _ in found for words in complaints]
    n_tokens = sum(n_ids for _, n_ids, _ in found)
    highest = max((most for _, _, most in found), default=-1)
    vocab_size = int(check_input.fingerprint.params["n_ids"])
    if highest >= vocab_size:
        wrong.append(f"id {highest:,} is outside the vocabulary of {vocab_size:,}")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong)
        or f"{n_tokens:,} tokens, highest id {highest:,} of {vocab_size:,}",
        values={"tokens": n_tokens, "highest id": highest},
    )


def _ids_of(documents: Path) -> tuple[list[str], int, int]:
    """Of a shard: what is wrong with its lengths, the number of ids, and the highest."""
    lengths = np.asarray(read_table(documents, ["n_tokens"])["n_tokens"])
    if not len(lengths):
        return [], 0, -1
    reader = MegatronReader(documents.with_name(documents.name.removesuffix(DOCUMENTS_SUFFIX)))
    parts = range(0, reader.n_tokens, IDS_AT_ONCE)
    highest = max(
        int(reader.between(first, min(first + IDS_AT_ONCE, reader.n_tokens)).max())
        for first in parts
    )
    found = np.add.reduceat(reader.lengths, reader.document_indices[:-1])
    same = np.array_equal(found, lengths)
    wrong = [] if same else [f"{documents.name}: the .idx has other lengths than the table"]
    return wrong, int(lengths.sum()), highest


def the_fast_tokenizer_agreed(check_input: CheckInput) -> CheckResult:
    """The fast tokenizer gave the reference's ids in every shard's spot check."""
    extra = check_input.counts.extra
    n_by_reference = extra.get(BY_REFERENCE, 0)
    return CheckResult(
        passed=n_by_reference == 0,
        message=f"{n_by_reference:,} of {extra.get('shards', 0):,} shards were tokenized by the "
        "reference tokenizer because the fast one differed",
        values={BY_REFERENCE: n_by_reference},
        severity="warning",
    )
