"""`filtered_documents`: keep the documents that RedPajama-V2's own signals and duplicate lists speak for.

A shard's signals are read first; they decide every document's fate without its text. Then its
documents stream by, and only the survivors' lines are cut out and decoded. Documents, signals and
duplicates are joined by the id inside the records, never by line position: upstream's writer skips
lines that it cannot decode.
"""

import contextlib
from array import array
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.redpajama.documents import DocumentRecord, decode_document
from lc_assets.formats.redpajama.some_lines import LineCount
from lc_assets.formats.rule_files import read_rules, with_thresholds
from lc_assets.lake.scratch import once
from lc_assets.lake.upstream import with_retries
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.stages.building import (
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    build,
    run_shards,
)
from lc_assets.stages.claims import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    counts_add_up,
    documents_files,
    dropped_files,
    every_document_is_named_once,
    tables_fit,
    the_shards_add_up,
)
from lc_assets.stages.documents.document_settings import Bounds, FilteringSettings
from lc_assets.stages.documents.measuring import Survivors, lists_of, models_of
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.stages.documents.shard_inputs import (
    COMPUTED,
    SKIPPED,
    UNIQUE,
    FilterTask,
    Skip,
    duplicates_of_shard,
    reads_of_shards,
    signals_of_shard,
    undecided_documents,
)
from lc_assets.stages.documents.sweeping import (
    SWEEP_SUFFIX,
    sweep_of_shard,
    the_sweeps_meet_the_counts,
)
from lc_assets.stages.documents.verdicts import (
    NO_SIGNALS,
    OTHER_URL,
    TOO_LONG,
    UNREADABLE,
    Verdicts,
)
from lc_assets.stages.recipe import Recipe, plain
from lc_assets.stages.sharding import Sharding
from lc_assets.stages.tables import DROPPED, FILTERED, TableWriter, read_all, write_table
from lc_assets.text.columns import require_computable
from lc_assets.text.rules import RuleSet, long_enough
from lc_assets.text.signal_names import SCALARS
from lc_assets.vocabulary import Shard, SnapshotId

WORDS = pa.schema([("rps_doc_word_count", pa.float64())])


def filter_snapshot(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the documents of one snapshot that pass the rules, and the reasons of the others.

    Raises:
        NotPublished: when the snapshot's manifest is not there.
        CorruptFile: when a file is missing or broken and the policy for that is ``fail``.
        Mismatch: when a file upstream is no longer what the manifest says.
        Unreachable: when upstream does not deliver, also when asked again; whatever the policies
            say.
    """
    rules = rules_of(context.recipe.filtered_documents)

    def fill(staging: StagingFolder) -> Counts:
        tasks = [
            FilterTask(
                upstream=context.upstream,
                files=files,
                folder=staging.folder,
                rules=rules,
                settings=context.recipe.filtered_documents,
            )
            for files in read_manifest(staging.inputs[f"raw_snapshot/{snapshot}"])
        ]
        return run_shards(context, staging, filter_shard, tasks, what=f"filter {snapshot}")

    return build(context, STAGE, snapshot, fill)


def rules_of(settings: FilteringSettings) -> RuleSet:
    """The rules in force: the file's, with the recipe's thresholds, and the minimum of words last.

    Raises:
        BadInput: when the file, a rule's name or a bound cannot be meant.
    """
    overrides = {name: _said(bounds) for name, bounds in settings.thresholds.items()}
    rules = with_thresholds(read_rules(settings.rules), overrides).and_also(
        long_enough(settings.min_words)
    )
    if rules.edit is not None:
        raise BadInput(
            f"rules {rules.name}: edit lines ({rules.edit.name}), but published signals are of "
            "the whole text; "
            "take the [lines] table out of a copy of the file, or judge plain files by them: lc "
            "judge"
        )
    computed = computed_columns(rules, settings)
    require_computable(computed, lists_of(settings.lists), models_of(settings.models, computed))
    return rules


def computed_columns(rules: RuleSet, settings: FilteringSettings) -> frozenset[str]:
    """What may have to be computed: what is not published, and all that the rules judge where
    missing signals are computed.
    """
    return rules.columns if settings.missing_signals == "compute" else rules.but_on(SCALARS).columns


def _said(bounds: Bounds) -> dict[str, float | None]:
    return {
        name: bound
        for name, bound in (("at_least", bounds.at_least), ("at_most", bounds.at_most))
        if bound is not None
    }


@once
@with_retries
def filter_shard(task: FilterTask) -> Counts:
    """Filter one shard; a shard that the policies leave out is counted, with why."""
    try:
        duplicates = duplicates_of_shard(task)
        table, computed = signals_of_shard(task)
        later = [rule.name for rule in task.measured.rules]
        verdicts = Verdicts.of(
            table,
            duplicates or (),
            task.published,
            max_line_bytes=task.settings.max_line_bytes,
            later=later,
        )
        with contextlib.ExitStack() as stack:
            kept, dropped = _writers(stack, task)
            sorted_out = _sort_documents(task, verdicts, kept, dropped)
        return sorted_out + Counts(
            extra={"shards": 1, UNIQUE: int(duplicates is None), COMPUTED: int(computed)}
        )
    except Skip as skip:
        return Counts(extra={"shards": 1, f"{SKIPPED}: {skip}": 1})


def _sort_documents(
    task: FilterTask, verdicts: Verdicts, kept: TableWriter, dropped: TableWriter
) -> Counts:
    n_kept = n_kept_chars = 0
    read, lines, fates = LineCount(), array("q"), array("q")
    survivors = Survivors(
        task.measured, verdicts, models_of(task.settings.models, task.measured.columns)
    )
    for line, raw in undecided_documents(task, verdicts, read):
        judged = _judge(task, verdicts, line, raw)
        if (
            isinstance(judged, DocumentRecord)
            and (late := survivors.fate(line, judged)) is not None
        ):
            judged = late
        if isinstance(judged, DocumentRecord):
            n_kept += 1
            n_kept_chars += len(judged.raw_content)
            kept.add(
                _kept_line(task.files.shard, line, judged, verdicts) | survivors.latest,
                n_bytes=len(judged.raw_content),
            )
        else:
            lines.append(line)
            fates.append(judged)
    every_line, every_fate = verdicts.with_failing(read.n_lines, lines, fates)
    verdicts = verdicts.and_later(survivors.complaints)
    for table in verdicts.dropped(task.files.shard, every_line, every_fate):
        dropped.write(table)
    write_table(
        task.folder / f"{task.name}{SWEEP_SUFFIX}",
        sweep_of_shard(task, verdicts, survivors, every_fate),
    )
    first, every = verdicts.counted(every_fate)
    extra = {
        "bytes of JSON": read.n_bytes,
        "characters kept": n_kept_chars,
        "signals unreadable": verdicts.table.n_undecodable + verdicts.table.n_oversize,
    }
    return Counts(
        seen=n_kept + len(every_line), kept=n_kept, dropped=first, failed_rules=every, extra=extra
    )


def _judge(
    task: FilterTask, verdicts: Verdicts, line: int, raw: bytes | None
) -> DocumentRecord | int:
    """The document, or the fate of one that is dropped."""
    if raw is None:
        return TOO_LONG
    fate = verdicts.fate_of.get(line, NO_SIGNALS)
    try:
        record = decode_document(raw, where=f"{task.files.shard.tag} line {line}")
    except CorruptFile:
        return UNREADABLE
    if fate not in verdicts.passing:
        return NO_SIGNALS
    return record if verdicts.url(line) in ("", record.url) else OTHER_URL


def _writers(stack: contextlib.ExitStack, task: FilterTask) -> tuple[TableWriter, TableWriter]:
    return tuple(  # type: ignore[return-value]
        stack.enter_context(
            contextlib.closing(
                TableWriter(
                    stack.enter_context(publish(task.folder / f"{task.name}{suffix}")), schema
                )
            )
        )
        for suffix, schema in ((DOCUMENTS_SUFFIX, schema_of(task.rules)), (DROPPED_SUFFIX, DROPPED))
    )


def schema_of(rules: RuleSet) -> pa.Schema:
    """Columns of `filtered_documents`: who and what a document is, and a float64 column per judged signal."""
    signals = sorted(rules.columns)
    return pa.schema([*FILTERED, *((name, pa.float64()) for name in signals)])


def _kept_line(
    shard: Shard, line: int, record: DocumentRecord, verdicts: Verdicts
) -> dict[str, Any]:
    return {
        "id": shard.document_id(line),
        "url": record.url,
        "digest": record.digest,
        "source_domain": record.source_domain,
        "cc_segment": record.cc_segment,
        "language": shard.language,
        "bucket": shard.bucket,
        "date_download": record.date_download,
        "title": record.title,
        "raw_content": record.raw_content,
        **verdicts.signals(line),
    }


def every_shard_was_filtered(check_input: CheckInput) -> CheckResult:
    """No shard was left out, and none went without its list of duplicates, because a file upstream
    is missing or broken.
    """
    shards = [files.shard for files in read_manifest(check_input.only_input("raw_snapshot"))]
    done = {path.name.removesuffix(DROPPED_SUFFIX) for path in dropped_files(check_input.folder)}
    lost = [shard.tag for shard in shards if shard.name not in done]
    why = [
        f"{name} ({count:,})"
        for name, count in check_input.counts.extra.items()
        if name.startswith(SKIPPED)
    ]
    unique = check_input.counts.extra.get(UNIQUE, 0)
    words = f"{len(done):,} of {len(shards):,} shards filtered"
    words += f"; {', '.join(why)}, such as {', '.join(lost[:3])}" if lost else ""
    words += (
        f"; {unique:,} of them without a list of duplicates, so every document there counts as "
        "unique"
        if unique
        else ""
    )
    return CheckResult(
        claim="every_shard_was_filtered",
        passed=not lost and not unique,
        words=words,
        numbers={"shards skipped": len(lost), UNIQUE: unique},
        severity="warning",
    )


def word_counts(filtered: Published) -> NDArray[np.float64]:
    """Words of each kept document, as RedPajama-V2 counts them; float64, one per document."""
    return np.asarray(
        read_all(documents_files(filtered.folder), WORDS, WORDS.names)[WORDS.names[0]],
        dtype=np.float64,
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings = recipe.filtered_documents
    rules = rules_of(settings)
    lists = dict(lists_of(settings.lists).digests)  # what was read, wherever it lay
    models = dict(models_of(settings.models, computed_columns(rules, settings)).digests)
    return plain(settings) | {"rules": msgspec.to_builtins(rules), "lists": lists, "models": models}


STAGE = Stage(
    name="filtered_documents",
    code_version="2",
    upstream=("raw_snapshot",),
    params=_params,
    claims=(
        counts_add_up,
        tables_fit(),
        every_document_is_named_once,
        every_shard_was_filtered,
        the_sweeps_meet_the_counts,
        the_shards_add_up,
    ),
    sharding=Sharding(
        reads=reads_of_shards, suffixes=(DOCUMENTS_SUFFIX, DROPPED_SUFFIX, SWEEP_SUFFIX)
    ),
)
"""Documents worth keeping, and why the others are not."""
