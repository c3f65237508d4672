"""`filtered_documents`: keep the documents of a partition that pass its source's rules, and record
why the others do not.

Here: the stage, its rules and settings, its checks. Not here: filtering a shard
(`shard_filtering`).
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
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
    dropped_files,
    every_document_is_named_once,
    shard_counts_match,
    tables_fit,
)
from lc_assets.build.recipe import Recipe, plain
from lc_assets.build.settings.documents import Bounds, FilteringSettings
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
from lc_assets.build.tables import read_all
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.corpora.json_lines import TEXT_FIELDS
from lc_assets.formats.lists.rule_files import read_rules, with_thresholds
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.sources.files import FileSource
from lc_assets.sources.opening import file_source, upstream_of
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.documents.measuring import lists_of, models_of
from lc_assets.stages.documents.raw_snapshot import STAGE as RAW_SNAPSHOT
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.stages.documents.shard_filtering import NO_TEXT, filter_shard
from lc_assets.stages.documents.shard_inputs import SKIPPED, UNIQUE, FilterTask, reads_of_shards
from lc_assets.stages.documents.sweeping import SWEEP_SUFFIX, the_sweeps_meet_the_counts
from lc_assets.text.rules.columns import require_computable
from lc_assets.text.rules.rules import RuleSet, long_enough
from lc_assets.text.signals.names import SCALARS
from lc_assets.vocabulary import SnapshotId, parse_snapshot

WORDS = pa.schema([("rps_doc_word_count", pa.float64())])


def write_filtered_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the documents of one partition that pass the rules, and the reasons of the others.

    Raises:
        NotPublished: when the partition's manifest is not there.
        CorruptFile: when a file is missing or broken and the policy for that is ``fail``.
        Mismatch: when a file is no longer what the manifest says.
        Unreachable: when the source does not deliver, also after retries; whatever the policies
            are.
        BadInput: when none of the files' records has a text.
    """
    return build(context, STAGE, snapshot, lambda staging: write_filtered(context, staging))


def write_filtered(context: BuildContext, staging: StagingFolder) -> Counts:
    """Filter every shard of a partition of any source into a staging folder."""
    key = parse_snapshot(staging.fingerprint.key)
    raw = staging.inputs[f"{RAW_SNAPSHOT.name}/{key}"]
    source = file_source(context.recipe.sources, key)
    rules, settings = rules_of_key(context.recipe, key)
    tasks = [
        FilterTask(
            upstream=upstream_of(context.recipe.sources, key, context.upstream),
            files=files,
            folder=staging.folder,
            rules=rules,
            settings=settings,
            source=source,
            perplexity=source is not None and _keeps_perplexity(context.recipe),
        )
        for files in read_manifest(raw)
    ]
    counts = run_shards(context, staging, filter_shard, tasks, what=f"filter {key}")
    if source is not None and counts.seen == counts.extra.get(NO_TEXT, 0) and tasks:
        _refuse_no_text(source, tasks, counts)
    return counts


def _keeps_perplexity(recipe: Recipe) -> bool:
    """Whether a later stage prefers documents by the perplexity that their records name."""
    return "best_perplexity" in recipe.removed_documents.prefer


def _refuse_no_text(source: FileSource, tasks: Sequence[FilterTask], counts: Counts) -> None:
    """Raise what to do when no document of a partition has a text, with the fields that are there.

    Raises:
        BadInput: always, unless files are left out by a policy.
    """
    if any(name.startswith(SKIPPED) for name in counts.extra):
        return
    path = next((file.path for task in tasks if (file := task.files.parts["documents"])), "")
    fields = source.fields_seen(path, tasks[0].folder / SCRATCH)
    wanted = source.settings.text_field or ", ".join(TEXT_FIELDS)
    raise BadInput(
        f"{source.settings.path}: none of {counts.seen:,} documents in {len(tasks):,} files has a "
        f"text ({', '.join(sorted(counts.dropped)) or 'the files are empty'}); looked for it in "
        f"{wanted}; "
        + (f"the fields of {path} are {', '.join(fields[:20])}; " if fields else "")
        + f"name the one that holds the text: --text-field, or sources.{source.name}.text_field"
    )


def rules_of_key(recipe: Recipe, key: str) -> tuple[RuleSet, FilteringSettings]:
    """The rules and settings that a partition is filtered by: the recipe's, or those of its source.

    Raises:
        BadInput: when a rule file, a rule's name or a bound is not acceptable.
    """
    source, settings = source_of_key(recipe.sources, key), recipe.filtered_documents
    if source.rules:
        settings = msgspec.structs.replace(settings, rules=source.rules, thresholds={})
    if source.min_words is not None:
        settings = msgspec.structs.replace(settings, min_words=source.min_words)
    is_files = source.kind == "files"
    if is_files:
        settings = msgspec.structs.replace(settings, missing_signals="compute")
    return rules_of(settings, edits=is_files), settings


def rules_of(settings: FilteringSettings, *, edits: bool = False) -> RuleSet:
    """The rules in force: the file's, with the recipe's thresholds, and the minimum of words last.

    Args:
        settings: which file, and which thresholds.
        edits: whether the rules may edit lines: published signals are of whole texts.

    Raises:
        BadInput: when the file, a rule's name or a bound is not acceptable.
    """
    overrides = {name: _said(bounds) for name, bounds in settings.thresholds.items()}
    rules = with_thresholds(read_rules(settings.rules), overrides).and_also(
        long_enough(settings.min_words)
    )
    if rules.edit is not None and not edits:
        raise BadInput(
            f"rules {rules.name}: edit lines ({rules.edit.name}), but published signals are of "
            "the whole text; "
            "take the [lines] table out of a copy of the file, or filter files by them: lc judge"
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


def every_shard_was_filtered(check_input: CheckInput) -> CheckResult:
    """No shard was left out, and none went without its list of duplicates, because a file upstream
    is missing or broken.
    """
    shards = [files.shard for files in read_manifest(check_input.only_input(RAW_SNAPSHOT.name))]
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
        check="every_shard_was_filtered",
        passed=not lost and not unique,
        message=words,
        values={"shards skipped": len(lost), UNIQUE: unique},
        severity="warning",
    )


def word_counts(filtered: Published) -> NDArray[np.float64]:
    """Words of each kept document, as RedPajama-V2 counts them; float64, one per document."""
    return np.asarray(
        read_all(documents_files(filtered.folder), WORDS, WORDS.names)[WORDS.names[0]],
        dtype=np.float64,
    )


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    rules, settings = rules_of_key(recipe, key)
    source = source_of_key(recipe.sources, key)
    columns = computed_columns(rules, settings)
    read: dict[str, Any] = {}
    if source.kind == "files":
        columns |= set() if source.language else {"language_is"}
        read = {
            "source": {
                name: getattr(source, name) for name in ("text_field", "id_field", "language")
            }
        } | ({"perplexity": True} if _keeps_perplexity(recipe) else {})
        if source.quality != "fast":
            read["source"]["quality"] = source.quality
    lists = dict(lists_of(settings.lists).digests)  # what was read, wherever it lay
    models = dict(models_of(settings.models, columns).digests)
    return (
        plain(settings)
        | {"rules": msgspec.to_builtins(rules), "lists": lists, "models": models}
        | read
    )


STAGE = Stage(
    name="filtered_documents",
    description=(
        "Documents of one snapshot that pass the rules; the others with every reason why "
        "they were dropped."
    ),
    code_version="2",
    reads={RAW_SNAPSHOT: SAME_SNAPSHOT},
    params=_params,
    checks=(
        counts_add_up,
        tables_fit(),
        every_document_is_named_once,
        every_shard_was_filtered,
        the_sweeps_meet_the_counts,
        shard_counts_match,
    ),
    sharding=Sharding(
        reads=reads_of_shards, suffixes=(DOCUMENTS_SUFFIX, DROPPED_SUFFIX, SWEEP_SUFFIX)
    ),
    group="documents",
    job="snapshot_documents",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_filtered_documents,
    show=later("lc_assets.stages.shown.documents:filtered_documents"),
)
"""Documents worth keeping, and why the others are not."""
