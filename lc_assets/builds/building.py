"""Building one partition of one stage: write into a staging folder, check, write the receipt,
publish.

Readers see the previous version until the last step. A rerun after a crash reuses the finished
shards of the same version.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.builds.inputs import inputs_of
from lc_assets.builds.metering import measured_by
from lc_assets.builds.openlineage_events import Began, reported
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.shard_runs import ShardRun
from lc_assets.builds.sharding import shards_of
from lc_assets.builds.stage import (
    BuildContext,
    Built,
    Check,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.verified_reads import verified_reads
from lc_assets.counts import Counts
from lc_assets.errors import Busy, CheckFailed, DamagedInput, LcError
from lc_assets.execution.environment import versions_of
from lc_assets.execution.executor import CONTAINING_POLICY
from lc_assets.execution.local import LARGE_BYTES, for_inputs_of
from lc_assets.execution.on_ray import executor_at
from lc_assets.execution.progress import Watch
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.unpacking import NeedsWorker, at_most_here
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import Lake, version_in
from lc_assets.lake.receipts import receipt_of, version_files
from lc_assets.lake.staging import Publication, publication
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.vocabulary import SnapshotId

LIBRARIES = (
    "ada-url",
    "duckdb",
    "fastwarc",
    "gigatoken",
    "isal",
    "msgspec",
    "numba",
    "numcodecs",
    "numpy",
    "pyarrow",
    "resiliparse",
    "selectolax",
    "sentencepiece",
    "tiktoken",
    "tokenizers",
    "trafilatura",
)
"""Libraries whose versions can affect published bytes; receipts record them."""


@reported
def build(context: BuildContext, stage: Stage, key: SnapshotId, began: Began) -> Built:
    """Build partition ``key`` of ``stage``, unless that version is finished already, here or in a
    lake that the recipe reuses; ``began`` is called before it is written.

    Raises:
        NotPublished: when an input is not published.
        CheckFailed: when a check fails; nothing is published, the folder is kept as ``rejected-…``.
        StorageFull: when the disk is full; nothing is published, and a rerun continues.
        NotWritable: when the lake cannot be written to.
        Busy: when another run has been building this partition for longer than
            `lc_assets.publishing.BUSY_SECONDS`.
        LcError: what ``stage.write`` raises.
    """
    with staged(context, stage, key) as (publishing, staging):
        if publishing.finished is not None:
            return Built(published=publishing.republish(publishing.finished), reused=True)
        read, fingerprint, shards = staging.inputs, staging.fingerprint, staging.shards
        if stage.remembers and inputs_of(stage, context.lake, context.recipe, key) != read:
            where = publishing.partition.name
            raise Busy(f"{where}: an input was published meanwhile; run this again")
        if (found := _in_another_lake(context, publishing)) is not None:
            with verified_reads(context.executor):
                return Built(published=publishing.adopt(found), reused=True)
        began(fingerprint)
        if shards is None:
            n_bytes = sum(published.receipt.n_bytes for published in read.values())
            staging.meter.bytes_read = n_bytes
        else:
            n_bytes = shards.n_bytes(shards.to_do)
        context = replace(context, executor=for_inputs_of(context.executor, n_bytes))
        with (
            os_errors_as_lc_errors(staging.folder),
            measured_by(staging.meter) as measured,
            publishing.writing(),
        ):
            counts, context = _written(context, stage, staging)
        started = time.perf_counter()
        findings = _passed(context, stage, staging, counts, publishing)
        files = version_files(staging.folder, staging.facts)
        measured["audit_seconds"] = round(time.perf_counter() - started, 3)
        more = {
            "randomness": stage.randomness(context.recipe, key),
            "libraries": dict(versions_of(LIBRARIES)),
            "measured": measured,
        }
        measured["bytes_written"] = float(sum(fact.n_bytes for fact in files))
        receipt = receipt_of(staging.folder, fingerprint, counts, files=files, **more)
        published = publishing.publish(receipt)
        return Built(published=published, reused=False, findings=tuple(findings))


def _in_another_lake(context: BuildContext, publishing: Publication) -> Published | None:
    """The same version in a lake that the recipe reuses."""
    own = publishing.partition
    others = map(open_lake, () if context.is_trial else context.recipe.reuses)
    return version_in(others, own.stage, own.folder.name, publishing.version)


@contextlib.contextmanager
def staged(
    context: BuildContext, stage: Stage, key: SnapshotId
) -> Iterator[tuple[Publication, StagingFolder]]:
    """Find out which version of partition ``key`` of a stage is to be built, and lock the partition
    while the block runs.

    Raises:
        NotPublished, Busy, StorageFull, NotWritable: see `build`.
    """
    outside = {name: look(context, key) for name, look in stage.outside.items()}
    read = inputs_of(stage, context.lake, context.recipe, key)
    digests = stage.digests_of(read) | {
        name: digest_of(table.to_pylist()) for name, table in outside.items()
    }
    fingerprint = stage.fingerprint(stage.resolved(context.recipe, key), key, digests)
    partition = context.lake.partition(stage.name, key)
    with publication(partition, fingerprint.version) as publishing:
        yield (
            publishing,
            StagingFolder(
                folder=publishing.folder,
                fingerprint=fingerprint,
                inputs=read,
                outside=outside,
                shards=shards_of(stage.sharding, fingerprint, read, partition)
                if stage.sharding and publishing.finished is None
                else None,
            ),
        )


def _written(
    context: BuildContext, stage: Stage, staging: StagingFolder
) -> tuple[Counts, BuildContext]:
    """Write a version; at a document too large for this process, go on with each task in a worker.
    Return the counts, and the context that was needed.
    """
    apart = replace(context, executor=for_inputs_of(context.executor, sys.maxsize))
    if context.executor != apart.executor:
        with contextlib.suppress(NeedsWorker), at_most_here(LARGE_BYTES):
            return stage.write(context, staging), context
    return stage.write(apart, staging), apart


def audit(stage: Stage, check_input: CheckInput) -> list[CheckResult]:
    """Run a stage's checks on a staged or a published version."""
    return [run_check(check, check_input) for check in stage.checks]


def run_check(check: Check, check_input: CheckInput) -> CheckResult:
    """Run one check; it fails when its input cannot be read.

    Raises:
        DamagedInput: when that is because an input is damaged, not what was written.
    """
    try:
        found = check(check_input)
    except DamagedInput:
        raise
    except LcError as error:
        message = f"cannot be tested: {type(error).__name__}: {error}"
        found = CheckResult(passed=False, message=message)
    return found if found.check else msgspec.structs.replace(found, check=check.__name__)


def check_input_of(
    lake: Lake, published: Published, *, by_summary: Sequence[str] = ()
) -> CheckInput:
    """The input for checks of a published version, with the versions it was made from.

    Args:
        lake: where they are.
        published: the version.
        by_summary: see `Partitions.by_summary`.
    """
    fingerprint = published.receipt.fingerprint
    heads = tuple(f"{stage}/" for stage in by_summary)
    inputs = dict[str, Published]()
    for name, digest in fingerprint.inputs.items():
        by_head = name.startswith(heads) and not name.endswith(f"/{fingerprint.key}")
        if (version := _input(lake, name, digest, by_summary=by_head)) is not None:
            inputs[name] = version
    return CheckInput(
        folder=published.folder,
        fingerprint=fingerprint,
        counts=published.counts,
        lake=lake,
        inputs=inputs,
    )


def run_shards(
    context: BuildContext,
    staging: StagingFolder,
    function: Callable[[Any], Counts],
    tasks: Sequence[Any],
    *,
    what: str,
) -> Counts:
    """Run a function over the shards of a version, and add up its counts; shards that older
    versions hold are reused (`lc_assets.builds.shard_runs`).

    Args:
        context: provides the executor.
        staging: the version's folder.
        function: takes a task that has ``folder``, and ``name``, which is unique in the folder and
            safe as a file's name; see `lc_assets.builds.shard_runs.compute`.
        tasks: one per shard.
        what: a few words for the progress bar.
    """
    return ShardRun(context=context, staging=staging).run(function, tasks, what=what)


def _input(lake: Lake, name: str, digest: str, *, by_summary: bool) -> Published | None:
    stage, _, key = name.partition("/")
    if not key:
        return None
    if by_summary:
        with contextlib.suppress(LcError):
            summary = lake.partition(stage, key).current_summary()
            if summary is not None and summary.digest == digest:
                return summary
    return lake.partition(stage, key).with_digest(digest)


def _passed(
    context: BuildContext,
    stage: Stage,
    staging: StagingFolder,
    counts: Counts,
    publishing: Publication,
) -> list[CheckResult]:
    """Results of the checks of what has just been written, if none failed."""
    check_input = CheckInput(
        folder=staging.folder,
        fingerprint=staging.fingerprint,
        counts=counts,
        lake=context.lake,
        inputs=staging.inputs,
        executor=context.executor,
    )
    findings = audit(stage, check_input)
    wrong = [finding for finding in findings if not finding.passed and finding.severity == "error"]
    if not wrong:
        return findings
    messages = "; ".join(f"{finding.check}: {finding.message}" for finding in wrong)
    raise CheckFailed(
        f"{publishing.partition.name} is not published, its checks failed: {messages}. What was "
        f"written is kept in {publishing.reject()}"
    )


WORKERS_IMPORT = ("lc_assets.stages.planning",)
"""Imported by each worker at its start."""


def context_for(
    lake: Lake,
    recipe: Recipe,
    *,
    upstream: str,
    crawl: str,
    executor: str = "",
    workers: int,
    task_seconds: float = 0,
    watch: Watch,
    say: Callable[[str], object],
) -> BuildContext:
    """A build context for work on a lake.

    Args:
        lake: its folder, or the local cache of a bucket (``LC_CACHE``), must also be mounted on a
            cluster's workers.
        recipe: the settings.
        upstream: a folder, which must also be mounted on the workers, or a URL.
        crawl: the same of the crawl's archives; empty for none.
        executor: its address (`lc_assets.execution.on_ray`); empty for this machine.
        workers: processes on this machine.
        task_seconds: time limit of a task; 0 for none.
        watch: displays progress.
        say: prints or logs a line.

    Raises:
        BadInput: when the address is not one of an executor.
    """
    roots = [upstream, crawl] if crawl else [upstream]
    return BuildContext(
        lake=lake,
        upstream=Upstream(upstream),
        recipe=recipe,
        executor=executor_at(
            executor,
            workers=workers,
            watch=watch,
            preload=WORKERS_IMPORT,
            policy=replace(CONTAINING_POLICY, seconds=task_seconds),
            folders=(lake.root.resolve(),),
            sees=tuple(Path(root).resolve() for root in roots if "://" not in root),
            libraries=LIBRARIES,
        ),
        crawl=Upstream(crawl) if crawl else None,
        say=say,
    )
