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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.arrays import Array
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, DROPPED_SUFFIX
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.shard_runs import compute, is_finished
from lc_assets.builds.table_writer import LINE_BYTES
from lc_assets.builds.tables import DROPPED, writing_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, LcError, Mismatch
from lc_assets.execution.containment import at_documents
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.tokenizers.golden import page_digest
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.formats.tokenizers.sentences import sentences_of
from lc_assets.records import record
from lc_assets.stages.documents.dropping import dropped_line
from lc_assets.stages.tokens.tokenizing_tasks import (
    SUFFIXES,
    TERMS,
    Documents,
    TokenizeTask,
    documents_of,
    table_of,
)
from lc_assets.tokens.dtypes import stored_dtype
from lc_assets.tokens.tokenizers import (
    Tokenizer,
    disagreement,
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
CHECKED_CHARS = 2_000
"""Length of a beginning: it costs the reference about 0.2 ms, and Hugging Face's 1 ms. Other texts
are not compared; what programs treat differently, kinds of characters, is in the golden page, with
which each shard's tokenizer is compared.
"""


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
        self._end = [np.array([tokenizer.eot], np.uint32)] if has_end else []
        self._n_chars = self._n_kept = 0
        self._dropped, self._replaced = Counter[str](), Counter[str]()
        path, dtype = task.folder / task.name, stored_dtype(tokenizer.vocab_size, settings.dtype)
        self._megatron = self.enter_context(MegatronWriter.publishing(path, dtype))
        schema = table_of(task.fields, terms=task.terms)
        self._kept, self._others = (
            self.enter_context(writing_table(Path(f"{path}{suffix}"), columns))
            for suffix, columns in ((DOCUMENTS_SUFFIX, schema), (DROPPED_SUFFIX, DROPPED))
        )

    def add(self, documents: Documents) -> None:
        """Encode and write some documents; an error is kept."""
        if self.error is not None:
            return
        try:
            for some in at_documents(documents.places):
                part = documents.of(some)
                self._write(part, self._encoded(part))
        except (LcError, _TokenizersDiffer) as error:
            self.error = error
            self.__exit__(type(error), error, error.__traceback__)

    def _encoded(self, documents: Documents) -> list[Encoded]:
        tokenizer, reference = self._encoders.tokenizer, self._encoders.reference
        for number, content in zip(documents.numbers, documents.escaped, strict=True):
            if reference is not None and _is_checked(number):
                _require_agreement(tokenizer, reference, content)
        return [
            ([], reason, None) if reason else sequences_of(content, tokenizer, self.task.settings)
            for reason, content in zip(documents.reasons, documents.escaped, strict=True)
        ]

    def _write(self, documents: Documents, encoded: Sequence[Encoded]) -> None:
        columns, kept = documents.columns, list[int]()
        self._n_chars += sum(columns["n_chars"])
        for replaced in documents.replaced:
            self._replaced.update(replaced)
        parts, lengths, n_tokens = list[Array](), list[int](), list[int]()
        for at, (sequences, reason, value) in enumerate(encoded):
            if reason:
                self._dropped[reason] += 1
                line = {name: column[at] for name, column in columns.items()}
                self._others.add(dropped_line(line, reason, value))
                continue
            own = [*map(len, sequences)]
            own[-1] += len(self._end)
            parts += sequences + self._end
            lengths += own
            n_tokens.append(sum(own))
            kept.append(at)
            if self.task.settings.split_sentences:
                self._megatron.add_documents(parts, lengths, together=True)
                parts, lengths = [], []
        self._megatron.add_documents(parts, lengths)
        found = {name: [column[at] for at in kept] for name, column in columns.items()}
        found["document"] = list(range(self._n_kept, self._n_kept + len(kept)))
        found["n_tokens"] = n_tokens
        if self.task.terms:
            terms = [_terms(documents.contents[at]) for at in kept]
            found |= {name: [its[name] for its in terms] for name in TERMS.names}
        self._kept.extend(found, [LINE_BYTES] * len(kept))
        self._n_kept += len(kept)

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
    """Whether a document of a shard, counted from 0 and -1 if it is removed, is compared: the first
    `CHECKED_FIRST`, and then every one whose number is a power of four.
    """
    is_power = number & (number - 1) == 0 and number.bit_length() % 2 == 1
    return 0 <= number < CHECKED_FIRST or is_power


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
        for documents in documents_of(own.task):
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
    try:
        if settings.split_sentences:
            texts = _sentences(content, settings.split_sentences, settings.keep_newlines)
            found = [ids for ids in map(tokenizer.encode, texts) if len(ids)]
        elif settings.first_tokens is not None:
            found = [first_ids(tokenizer, content.decode(), settings.first_tokens)]
        else:
            found = [tokenizer.encode(content)]
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
