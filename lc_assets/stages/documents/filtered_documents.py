"""`filtered_documents`: keep the documents of a partition that pass its source's rules, and record
why the others do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.arrays import Floats
from lc_assets.builds.ahead import ahead_of
from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    counts_add_up,
    documents_files,
    dropped_files,
    every_document_is_named_once,
    shard_counts_match,
    tables_fit,
)
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.sharding import Reads, Sharding, documents_read
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import FILTERED, TOKENIZED, read_all, read_schema
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.containment import skipping
from lc_assets.formats.corpora.json_lines import TEXT_FIELDS
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.plugins import package_of, plugin
from lc_assets.sources.files import FileSource
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.documents.file_records import BROKEN
from lc_assets.stages.documents.kept_lines import SPANS_FIELD
from lc_assets.stages.documents.measuring import (
    computed_columns,
    lists_of,
    models_of,
    rules_of_key,
)
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.stages.documents.shard_filtering import (
    NO_TEXT,
    UNIQUE,
    filter_shard,
)
from lc_assets.stages.documents.shard_inputs import (
    SKIPPED,
    VALUES_SUFFIX,
    ShardTask,
    n_skipped,
    reads_of_shards,
    shard_tasks,
)
from lc_assets.stages.documents.sweeping import SWEEP_SUFFIX, the_sweeps_meet_the_counts

WORDS = pa.schema(
    {
        "rps_doc_word_count": "float64",
    }
)


def write_filtered_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the documents of one partition that pass the rules, and the reasons of the others.

    Raises:
        CorruptFile: when a file is missing or broken and the policy for that is ``fail``.
        Mismatch: when a file differs from the manifest.
        Unreachable: when the source fails after retries, under any policy.
        BadInput: when none of the files' records has a text.
    """
    key = staging.key
    source = file_source(context.recipe.sources, key)
    tasks = shard_tasks(
        context,
        staging,
        perplexity=_keeps_perplexity(context.recipe),
        fields=_fields_read(context.recipe, of_files=source is not None),
        order_by=context.recipe.packed_rows.order_by,
    )
    stored = staging.inputs.get(f"document_signals/{key}")
    if stored is not None:
        for number, task in enumerate(tasks):
            path = stored.folder / f"{task.name}{VALUES_SUFFIX}"
            tasks[number] = replace(task, stored=path if path.is_file() else None)
    ahead = ahead_of(context, staging)
    tasks = [replace(task, ahead=ahead.get(task.name)) for task in tasks]
    skips = context.recipe.filtered_documents.killed_documents == "skip"
    function = skipping(filter_shard) if skips else filter_shard
    counts = run_shards(context, staging, function, tasks, what=f"filter {key}")
    if source is not None and counts.seen == counts.extra.get(NO_TEXT, 0) and tasks:
        _refuse_no_text(source, tasks, counts)
    return counts


def _keeps_perplexity(recipe: Recipe) -> bool:
    """Whether a later stage prefers documents by the perplexity that their records name."""
    return "best_perplexity" in recipe.removed_documents.prefer


def fields_for_packing(recipe: Recipe) -> tuple[str, ...]:
    """Fields of the records by which packing orders, groups or samples documents, and which no
    column of the tables of documents or tokens holds.
    """
    return tuple(sorted(recipe.packed_rows.fields - {*FILTERED.names, *TOKENIZED.names}))


def _fields_read(recipe: Recipe, *, of_files: bool) -> tuple[str, ...]:
    """Fields of the records that later stages read: those of packing, and of files the spans within
    which referrals are counted.
    """
    report = recipe.referral_report
    spans = of_files and report.wanted and report.scope == "document"
    return (*fields_for_packing(recipe), *((SPANS_FIELD,) if spans else ()))


def _refuse_no_text(source: FileSource, tasks: Sequence[ShardTask], counts: Counts) -> None:
    """Raise an error if no document of a partition has a text, naming the fields that exist.

    Raises:
        BadInput: always, unless there are no documents, or files are left out by a policy.
    """
    if not counts.seen or n_skipped(counts):
        return
    files = [file for task in tasks for file in task.files.documents.values()]
    path = next((file.path for file in files if file), "")
    fields = source.fields_seen(path, tasks[0].folder / SCRATCH)
    wanted = source.settings.text_field or ", ".join(TEXT_FIELDS)
    raise BadInput(
        f"{source.settings.path}: none of {counts.seen:,} documents in {len(files):,} files has a "
        f"text ({', '.join(sorted(counts.dropped))}); looked for it in "
        f"{wanted}; "
        + (f"the fields of {path} are {', '.join(fields[:20])}; " if fields else "")
        + f"name the one that holds the text: --text-field, or sources.{source.name}.text_field"
    )


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """What filtering reads of each shard: its files upstream, and the stored values."""
    found, stored = reads_of_shards(inputs, key), inputs.get(f"document_signals/{key}")
    values = {} if stored is None else documents_read(stored, VALUES_SUFFIX)
    return {
        name: (*reads, *((values[name],) if name in values else ()))
        for name, reads in found.items()
    }


def every_shard_was_filtered(check_input: CheckInput) -> CheckResult:
    """No shard was skipped or filtered without its list of duplicates because an upstream file is
    missing or broken.
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
    broken = check_input.counts.dropped.get(BROKEN, 0)
    words = f"{len(done):,} of {len(shards):,} shards filtered"
    words += f"; {BROKEN} of {broken:,} files, which the dropped documents name" if broken else ""
    words += f"; {', '.join(why)}, such as {', '.join(lost[:3])}" if lost else ""
    words += (
        f"; {unique:,} of them without a list of duplicates, so every document there counts as "
        "unique"
        if unique
        else ""
    )
    return CheckResult(
        passed=not lost and not unique and not broken,
        message=words,
        values={"shards skipped": len(lost), UNIQUE: unique},
        severity="warning",
    )


def word_counts(filtered: Published) -> Floats:
    """Words of each kept document, as RedPajama-V2 counts them; float64, one per document; empty
    where no rule needed them.
    """
    files = documents_files(filtered.folder)
    if not files or WORDS.names[0] not in read_schema(files[0]).names:
        return np.empty(0)
    return np.asarray(read_all(files, WORDS, WORDS.names)[WORDS.names[0]], dtype=np.float64)


PAGES_READ = 2
"""Raised when archives' pages would give other texts: 2 refuses by the depths of all tags."""


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    rules, settings = rules_of_key(recipe, key)
    source = source_of_key(recipe.sources, key)
    columns = computed_columns(rules, settings)
    read: dict[str, Any] = {}
    if source.kind == "files":
        columns |= {"language_is"} if source.identifies else set()
        names = ("text_field", "id_field", "language")
        read = {"source": {name: getattr(source, name) for name in names} | {"pages": PAGES_READ}}
        if source.quality != "fast":
            read["source"]["quality"] = source.quality
        if source.reader:
            read["source"]["reader"] = package_of(plugin("readers", source.reader))
    if _keeps_perplexity(recipe):
        read["perplexity"] = True
    if rules.edit is not None:
        read["places"] = True
    if fields := _fields_read(recipe, of_files=source.kind == "files"):
        read["fields"] = list(fields)
    lists = dict(lists_of(settings.lists).digests)  # the content that was read, without paths
    models = dict(models_of(settings.models, columns).digests)
    policies = plain(settings)
    default = {"killed_documents": "fail", "compression": "zstd"}
    policies = {name: it for name, it in policies.items() if default.get(name) != it}
    return policies | {"rules": msgspec.to_builtins(rules), "lists": lists, "models": models} | read


STAGE = Stage(
    name="filtered_documents",
    description=(
        "Documents of one snapshot that pass the rules; the others with every reason why "
        "they were dropped."
    ),
    code_version="4",
    reads={
        "raw_snapshot": SAME_SNAPSHOT,
        "document_signals": SAME_SNAPSHOT.only_if(lambda recipe: recipe.document_signals.values),
    },
    params=_params,
    checks=(
        counts_add_up,
        tables_fit(),
        every_document_is_named_once,
        every_shard_was_filtered,
        the_sweeps_meet_the_counts,
        shard_counts_match,
    ),
    columns=FILTERED,
    sharding=Sharding(reads=_reads, suffixes=(DOCUMENTS_SUFFIX, DROPPED_SUFFIX, SWEEP_SUFFIX)),
    job="snapshot_documents",
    write=write_filtered_documents,
)
"""Documents that pass the rules, and the reasons why others were dropped."""
