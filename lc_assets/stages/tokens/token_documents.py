"""Text becomes token ids: one Megatron ``.bin`` and ``.idx`` per shard, one sequence per document,
without end-of-text tokens.

Personal data are replaced before that when the recipe's ``[token_documents.privacy]`` names kinds,
and counted by kind. How ids are checked: `lc_assets.stages.tokens.checked_tokenizing`.
"""

import contextlib
import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
    tables_fit,
)
from lc_assets.build.recipe import plain
from lc_assets.build.settings.common import PrivacySettings
from lc_assets.build.settings.rows import TokenizingSettings
from lc_assets.build.sharding import Sharding
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import (
    DROPPED,
    IDENTITY,
    TOKENIZED,
    TableWriter,
    read_lines,
    read_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.tokenizers.named import end_of_text, vocabulary_of
from lc_assets.lake.staging import once
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import remaining_read, removed_by_shard
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.tokens.checked_tokenizing import (
    BY_REFERENCE,
    GAVE_UP,
    SpotCheck,
    tokenize_checked,
)
from lc_assets.text.privacy.replacing import replace_personal
from lc_assets.tokens.dtypes import megatron_dtype
from lc_assets.tokens.prefixes import first_ids, most_tokens
from lc_assets.tokens.tokenizers import Tokenizer, escape
from lc_assets.vocabulary import SnapshotId

TOO_SHORT = "too few tokens"
REPLACED = "personal data replaced"
NOTHING_REPLACED = PrivacySettings()
TOO_FEW_BYTES = "too few bytes"
"""A token covers at least one byte, so a document of fewer bytes than wanted tokens need not be
tokenized.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizeTask:
    """One shard of documents to be tokenized into ``folder``; those ``removed``, reason by id, are
    not.

    ``label`` begins the names of the files, where shards of several stages, which are called alike,
    go into one folder.
    """

    documents: Path
    folder: Path
    settings: TokenizingSettings
    privacy: PrivacySettings = NOTHING_REPLACED
    removed: Mapping[str, str] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """The shard's name, behind its label."""
        return self.label + self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


def write_token_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the token ids of one snapshot's documents that are long enough.

    Raises:
        NotPublished: when the filtered documents are not there, or it is not decided which of them
            go on.
    """
    context.recipe.require_uncut_texts()

    def fill(staging: StagingFolder) -> Counts:
        source = staging.inputs[f"filtered_documents/{snapshot}"].folder
        removed = removed_by_shard(staging.inputs[f"removed_documents/{snapshot}"].folder)
        tasks = tasks_of(
            source,
            staging.folder,
            context.recipe.token_documents,
            privacy=context.recipe.token_documents.privacy,
            removed=removed,
        )
        return run_shards(context, staging, tokenize_shard, tasks, what=f"tokenize {snapshot}")

    return build(context, STAGE, snapshot, fill)


def tasks_of(
    source: Path,
    folder: Path,
    settings: TokenizingSettings,
    *,
    privacy: PrivacySettings,
    removed: Mapping[str, Mapping[str, str]],
    label: str = "",
) -> list[TokenizeTask]:
    """A task per shard of documents in ``source``; ``removed`` has reasons by shard and id."""
    return [
        TokenizeTask(
            documents=path,
            folder=folder,
            settings=settings,
            privacy=privacy,
            removed=removed.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
            label=label,
        )
        for path in documents_files(source)
    ]


@once
def tokenize_shard(task: TokenizeTask) -> Counts:
    """Tokenize one shard of documents."""
    work = functools.partial(_tokenize, task)
    return tokenize_checked(task.settings.tokenizer, task.name, work) + Counts(extra={"shards": 1})


def _tokenize(task: TokenizeTask, tokenizer: Tokenizer, check: SpotCheck) -> Counts:
    dropped, replaced, n_tokens, n_chars = Counter[str](), Counter[str](), 0, 0
    with contextlib.ExitStack() as stack:
        output = ShardOutput.open(stack, task, tokenizer)
        columns = [*(name for name, _ in IDENTITY), "raw_content"]
        for line in read_lines(task.documents, columns, batch_lines=16):
            if line["id"] in task.removed:
                dropped[task.removed[line["id"]]] += 1
                output.drop(line, task.removed[line["id"]], None)
                continue
            if task.privacy.replace:
                replaced.update(_replace(line, task.privacy))
            text = escape(line["raw_content"], task.settings.text_encoding)
            check.see(text)
            n_chars += len(line["raw_content"])
            ids, reason, value = _ids(text, tokenizer, task.settings)
            if ids is None:
                dropped[reason] += 1
                output.drop(line, reason, value)
            else:
                n_tokens += len(ids)
                output.keep(line, ids)
    n_kept = output.n_kept
    extra = {"tokens": n_tokens, "characters": n_chars} | {
        f"{REPLACED}: {kind}": n for kind, n in replaced.items()
    }
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=extra,
    )


def _replace(line: dict[str, Any], privacy: PrivacySettings) -> dict[str, int]:
    """Replace personal data in a document's text; returns how often each kind was."""
    found = replace_personal(
        line["raw_content"],
        privacy.replace,
        style=privacy.style,
        seed=privacy.seed,
        language=line["language"],
        region=privacy.phone_region,
    )
    line["raw_content"] = found.text
    return found.counts


def _ids(
    text: str, tokenizer: Tokenizer, settings: TokenizingSettings
) -> tuple[NDArray[Any] | None, str, int]:
    """Ids of a text that is long enough; otherwise the reason and the number that fell short."""
    min_tokens = settings.min_tokens
    if (
        len(text) < min_tokens and (n_bytes := most_tokens(text)) < min_tokens
    ):  # a character is a byte at least
        return None, TOO_FEW_BYTES, n_bytes
    try:
        ids = (
            tokenizer.encode(text)
            if settings.first_tokens is None
            else first_ids(tokenizer, text, settings.first_tokens)
        )
    except BadInput:
        return None, GAVE_UP, len(text)
    return (ids, "", len(ids)) if len(ids) >= min_tokens else (None, TOO_SHORT, len(ids))


class ShardOutput:
    """The files of one tokenized shard; no ``.bin`` is published when no document was kept: nobody
    could map it.
    """

    def __init__(self, megatron: MegatronWriter, kept: TableWriter, dropped: TableWriter) -> None:
        self._megatron, self._kept, self._dropped = megatron, kept, dropped
        self.n_kept = 0

    @classmethod
    def open(
        cls, stack: contextlib.ExitStack, task: TokenizeTask, tokenizer: Tokenizer
    ) -> "ShardOutput":
        """Open a shard's files; they are published when ``stack`` closes without an exception."""
        megatron = stack.enter_context(
            MegatronWriter.publishing(task.folder / task.name, megatron_dtype(tokenizer.vocab_size))
        )
        kept, dropped = (
            stack.enter_context(
                contextlib.closing(
                    TableWriter(
                        stack.enter_context(publish(task.folder / f"{task.name}{suffix}")), schema
                    )
                )
            )
            for suffix, schema in ((DOCUMENTS_SUFFIX, TOKENIZED), (DROPPED_SUFFIX, DROPPED))
        )
        return cls(megatron, kept, dropped)

    def keep(self, line: dict[str, Any], ids: NDArray[Any]) -> None:
        """Add a document."""
        text = line.pop("raw_content")
        self._megatron.add(ids)
        self._kept.add(
            line
            | {
                "document": self.n_kept,
                "n_tokens": len(ids),
                "n_chars": len(text),
                "n_bytes": most_tokens(text),
            }
        )
        self.n_kept += 1

    def drop(self, line: dict[str, Any], reason: str, value: int | None) -> None:
        """Note a document that does not go on; ``value`` is the number that fell short, if any."""
        self._dropped.add(
            {
                "id": line["id"],
                "url": line["url"],
                "reason": reason,
                "value": value,
                "reasons": [reason],
                "values": [value],
            }
        )


def the_ids_are_where_the_table_says(check_input: CheckInput) -> CheckResult:
    """Each shard's ``.idx`` is sound, its lengths are the table's token counts, and no id is
    outside the vocabulary.
    """
    wrong, n_tokens, highest = [], 0, -1
    for path in documents_files(check_input.folder):
        lengths = np.asarray(read_table(path, ["n_tokens"])["n_tokens"])
        if not len(lengths):
            continue
        reader = MegatronReader(path.with_name(path.name.removesuffix(DOCUMENTS_SUFFIX)))
        n_tokens += int(lengths.sum())
        highest = max(highest, *(int(reader[document].max()) for document in range(len(reader))))
        if not np.array_equal(reader.lengths, lengths):
            wrong.append(f"{path.name}: the .idx has other lengths than the table")
    vocab_size = int(check_input.fingerprint.params["n_ids"])
    if highest >= vocab_size:
        wrong.append(f"id {highest:,} is outside the vocabulary of {vocab_size:,}")
    return CheckResult(
        check="the_ids_are_where_the_table_says",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{n_tokens:,} tokens, highest id {highest:,} of {vocab_size:,}",
        values={"tokens": n_tokens, "highest id": highest},
    )


def the_fast_tokenizer_agreed(check_input: CheckInput) -> CheckResult:
    """The fast tokenizer gave the reference's ids in every shard's spot check."""
    extra = check_input.counts.extra
    n_by_reference = extra.get(BY_REFERENCE, 0)
    return CheckResult(
        check="the_fast_tokenizer_agreed",
        passed=n_by_reference == 0,
        message=f"{n_by_reference:,} of {extra.get('shards', 0):,} shards were tokenized by the "
        "reference tokenizer because the fast one differed",
        values={BY_REFERENCE: n_by_reference},
        severity="warning",
    )


def params_of(settings: TokenizingSettings) -> dict[str, Any]:
    """The settings: of the tokenizer what it is, wherever its file lies; of privacy none when no
    byte depends on them.
    """
    vocabulary = vocabulary_of(settings.tokenizer)
    eot = end_of_text(settings.tokenizer)
    tokenizer = {
        "tokenizer": vocabulary.name,
        "n_ids": vocabulary.n_ids,
        "eot": eot,
        "tokenizer_sha256": vocabulary.sha256,
    }
    found = plain(settings)
    privacy = found.pop("privacy")
    return found | tokenizer | ({"privacy": privacy} if settings.privacy.replace else {})


STAGE = Stage(
    name="token_documents",
    description=(
        "Token ids of one snapshot's documents that fill a row, in Megatron's .bin/.idx, "
        "with a table of ids."
    ),
    code_version="2",
    reads={FILTERED_DOCUMENTS: SAME_SNAPSHOT, REMOVED_DOCUMENTS: SAME_SNAPSHOT},
    params=lambda recipe, _: params_of(recipe.token_documents),
    checks=(
        counts_add_up,
        reads_all_upstream_documents("filtered_documents"),
        tables_fit(TOKENIZED),
        every_document_is_named_once,
        the_ids_are_where_the_table_says,
        the_fast_tokenizer_agreed,
        shard_counts_match,
    ),
    sharding=Sharding(
        reads=remaining_read, suffixes=(".bin", ".idx", DOCUMENTS_SUFFIX, DROPPED_SUFFIX)
    ),
    group="tokens",
    job="snapshot_rows",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_token_documents,
    show=later("lc_assets.stages.shown.rows:token_documents"),
)
"""Token ids of the documents that fill a row."""
