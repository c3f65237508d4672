"""Tokenizing a shard of documents: one Megatron ``.bin`` and ``.idx``, one sequence per document,
and a table of the documents.

Texts are encoded by the fast tokenizer; the reference tokenizer (tiktoken, tokenizers or
sentencepiece) also encodes the beginnings of some documents of every shard. If any ids differ, the
whole shard is tokenized by the reference, so the ids are the reference's in any case. Personal data
are replaced before that when ``[token_documents.privacy]`` names kinds, and counted by kind. Some
documents are read, then encoded, then written: each step takes a third longer one by one.
"""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lc_assets.arrays import Array
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, DROPPED_SUFFIX
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.shard_runs import compute, is_finished
from lc_assets.builds.tables import DROPPED, IDENTITY, read_lines, writing_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, LcError, Mismatch
from lc_assets.execution.containment import at_document, at_documents
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.tokenizers.golden import page_digest
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.formats.tokenizers.sentences import sentences_of
from lc_assets.records import record
from lc_assets.stages.documents.dropping import dropped_line
from lc_assets.stages.tokens.tokenized_text import text_digest, tokenized_utf8
from lc_assets.stages.tokens.tokenizing_tasks import SUFFIXES, TERMS, TokenizeTask, table_of
from lc_assets.text.texts import CHARS_TOGETHER, together
from lc_assets.tokens.dtypes import memory_dtype, stored_dtype
from lc_assets.tokens.tokenizers import (
    Tokenizer,
    disagreement,
    escaped_utf8,
    first_ids,
    n_characters,
)

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
PAGE = "files by the golden page "
"""Before the digest of the page's ids (`lc_assets.formats.tokenizers.golden`)."""

Encoded = tuple[list[Array], str, int | None]
"""The ids of a document, see `sequences_of`."""
CHECKED_FIRST = 4
"""Documents at the beginning of a shard that are all checked."""
CHECKED_CHARS = 20_000
"""Length of a beginning: it costs the reference about 2 ms."""


def available_tokenizer(setting: str, *, fast: bool) -> Tokenizer | None:
    """A tokenizer, or None: the fast one does not read every kind of file, and the package of the
    reference may be missing.
    """
    try:
        return tokenizer_of(setting, fast=fast)
    except BadInput:
        return None


class _TokenizersDiffer(Exception):
    """The two tokenizers gave different ids; what was written by the fast one is discarded."""


@record
class Encoders:
    """The tokenizers of a task.

    Attributes:
        tokenizer: encodes the documents.
        reference: compared with it on the beginnings of some, if there is one.
        n_by_reference: 1 if the first is the reference itself, else 0.
    """

    tokenizer: Tokenizer
    reference: Tokenizer | None
    n_by_reference: int


def encoders_of(task: TokenizeTask) -> Encoders:
    """The fast tokenizer and its reference; the reference alone where the fast one is missing, or
    gives other ids of the golden page.

    Raises:
        BadInput: when neither is available.
        Mismatch: when the ids of the golden page are not those with which the build began.
    """
    setting = task.settings.tokenizer
    fast, reference = (available_tokenizer(setting, fast=fast) for fast in (True, False))
    if fast is not None and task.page in ("", page_digest(fast)):
        return Encoders(tokenizer=fast, reference=reference, n_by_reference=0)
    return _reference_of(task)


def _reference_of(task: TokenizeTask) -> Encoders:
    reference = tokenizer_of(task.settings.tokenizer, fast=False)
    if task.page and (found := page_digest(reference)) != task.page:
        raise Mismatch(
            f"{task}: {reference.name} gives other ids of the golden page ({found}, with end of "
            f"text {reference.eot}) than where the build began ({task.page}): the file was "
            "changed meanwhile, or this process has another version of the library"
        )
    return Encoders(tokenizer=reference, reference=None, n_by_reference=1)


class _Document(NamedTuple):
    """A document that is read once for all tokenizers.

    Attributes:
        line: what all tables have of it.
        place: in the table, from 0.
        number: of the documents that are not removed, from 0; -1 of a removed one.
        reason: why it is removed, if it is.
        content: the text to be tokenized, in UTF-8.
        escaped: the same, escaped.
        replaced: replacements of personal data, by kind.
    """

    line: dict[str, Any]
    place: int
    number: int = -1
    reason: str = ""
    content: bytes = b""
    escaped: bytes = b""
    replaced: Mapping[str, int] = MappingProxyType({})


def _documents(task: TokenizeTask) -> Iterator[_Document]:
    settings, columns, number = task.settings, [*IDENTITY, "raw_content", *task.fields], 0
    lines = read_lines(task.documents, columns, utf8="raw_content")
    for place, line in enumerate(lines):
        if reason := task.removed.get(line["id"], ""):
            yield _Document(line=line, place=place, reason=reason)
            continue
        content, replaced = tokenized_utf8(line, settings.privacy)
        del line["raw_content"]
        line["n_chars"], line["n_bytes"] = n_characters(content), len(content)
        line["tokenized_digest"] = task.digests.get(line["id"]) or text_digest(content)
        yield _Document(
            line=line,
            place=place,
            number=number,
            content=content,
            escaped=escaped_utf8(content, settings.text_encoding),
            replaced=replaced,
        )
        number += 1
        del content


class _Output(contextlib.ExitStack):
    """The files of one shard by one tokenizer. They are published by `finish`, and discarded when
    a document cannot be added.

    Attributes:
        task: what is written.
        error: why nothing is published, if so.
    """

    def __init__(self, task: TokenizeTask, encoders: Encoders) -> None:
        super().__init__()
        self.task = task
        self.error: LcError | _TokenizersDiffer | None = None
        self._encoders, settings = encoders, task.settings
        tokenizer = encoders.tokenizer
        has_end = settings.append_eod and tokenizer.eot is not None
        dtype = memory_dtype(tokenizer.vocab_size)
        self._end = [np.array([tokenizer.eot], dtype)] if has_end else []
        self._n_chars = self._n_kept = 0
        self._dropped, self._replaced = Counter[str](), Counter[str]()
        path, dtype = task.folder / task.name, stored_dtype(tokenizer.vocab_size, settings.dtype)
        self._megatron = self.enter_context(MegatronWriter.publishing(path, dtype))
        schema = table_of(task.fields, terms=task.terms)
        self._kept, self._others = (
            self.enter_context(writing_table(Path(f"{path}{suffix}"), columns))
            for suffix, columns in ((DOCUMENTS_SUFFIX, schema), (DROPPED_SUFFIX, DROPPED))
        )

    def add(self, documents: Sequence[_Document]) -> None:
        """Encode and write some documents; an error is kept."""
        if self.error is not None:
            return
        try:
            for some in at_documents([document.place for document in documents]):
                part = documents[some]
                encoded = list(map(self._encoded, part))
                at_document(part[0].place, part[-1].place)
                self._write(part, encoded)
        except (LcError, _TokenizersDiffer) as error:
            self.error = error
            self.__exit__(type(error), error, error.__traceback__)

    def _encoded(self, document: _Document) -> Encoded:
        at_document(document.place)
        if document.reason:
            return [], document.reason, None
        tokenizer, reference = self._encoders.tokenizer, self._encoders.reference
        if reference is not None and _is_checked(document.number):
            _require_agreement(tokenizer, reference, document.escaped)
        return sequences_of(document.escaped, tokenizer, self.task.settings)

    def _write(self, documents: Sequence[_Document], encoded: Sequence[Encoded]) -> None:
        parts, lengths = list[Array](), list[int]()
        for document, (sequences, reason, value) in zip(documents, encoded, strict=True):
            if not document.reason:
                self._n_chars += document.line["n_chars"]
                for kind, n in document.replaced.items():
                    self._replaced[kind] += n
            if reason:
                self._dropped[reason] += 1
                self._others.add(dropped_line(document.line, reason, value))
                continue
            own = [*map(len, sequences)]
            own[-1] += len(self._end)
            parts += sequences + self._end
            lengths += own
            if self.task.settings.split_sentences:
                self._megatron.add_documents(parts, lengths, together=True)
                parts, lengths = [], []
            line = document.line | {"document": self._n_kept, "n_tokens": sum(own)}
            self._kept.add(line | _terms(document.content) if self.task.terms else line)
            self._n_kept += 1
        self._megatron.add_documents(parts, lengths)

    def finish(self, _task: TokenizeTask | None = None) -> Counts:
        """Publish the files.

        Raises:
            LcError: what kept a document from being added.
        """
        if self.error is not None:
            raise self.error
        self.close()
        extra = {"tokens": self._megatron.n_tokens, "characters": self._n_chars, "shards": 1}
        extra |= {f"{REPLACED}: {kind}": n for kind, n in self._replaced.items()}
        n_by_reference = self._encoders.n_by_reference
        extra[BY_REFERENCE] = n_by_reference
        extra[UNCHECKED] = int(self._encoders.reference is None and not n_by_reference)
        if self.task.page:
            extra[f"{PAGE}{self.task.page}"] = 1
        return Counts.of(self._n_kept, self._dropped, extra)


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


def tokenize_shard(task: TokenizeTask) -> Counts:
    """Tokenize one shard with the fast tokenizer if the reference tokenizer agrees, else with the
    latter. What the other tasks of ``task.also`` would write is written, too, where nothing fails;
    they then find it as that of an attempt that was killed.

    Raises:
        BadInput: when neither tokenizer is available.
        Mismatch: when the golden page has other ids than where the build began.
    """
    wanted = [task, *(other for other in task.also if not is_finished(other))]
    try:
        return _tokenize([(one, encoders_of(one)) for one in wanted])
    except _TokenizersDiffer:
        return _tokenize([(task, _reference_of(task))])


def _tokenize(wanted: Sequence[tuple[TokenizeTask, Encoders]]) -> Counts:
    """Write a shard by the tokenizers of several tasks; return the counts of the first one."""
    with contextlib.ExitStack() as stack:
        own, *others = (stack.enter_context(_Output(*one)) for one in wanted)
        least = CHARS_TOGETHER if own.task.settings.split_sentences else 0  # one, see `_sentences`
        for documents in together(_documents(own.task), lambda one: max(len(one.content), least)):
            for output in (own, *others):
                output.add(documents)
            del documents  # not kept while the next are read
            if own.error and not any(other.error is None for other in others):
                break
        for other in others:
            with contextlib.suppress(LcError, _TokenizersDiffer):  # it is then tried by itself
                compute(other.finish, SUFFIXES, other.task)
        return own.finish()


def sequences_of(content: bytes, tokenizer: Tokenizer, settings: TokenizingSettings) -> Encoded:
    """Ids of a text in UTF-8, by sentence or together; and, if it is skipped, the reason and the
    number that is too small: a token covers at least one byte.
    """
    least = settings.min_tokens
    if len(content) < least:
        return [], TOO_FEW_BYTES, len(content)
    texts: Iterable[str | bytes] = [content]
    if settings.split_sentences:
        texts = _sentences(content, settings.split_sentences, settings.keep_newlines)
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


@functools.lru_cache(maxsize=1)  # one splitting for all tokenizers of a document
def _sentences(content: bytes, language: str, keep_newlines: bool) -> list[str]:
    return list(sentences_of(content.decode(), language, keep_newlines=keep_newlines))


def _terms(content: bytes) -> dict[str, Any]:
    from lc_assets.text.duplicates.keys import term_counts

    return dict(zip(TERMS.names, term_counts(content), strict=True))
