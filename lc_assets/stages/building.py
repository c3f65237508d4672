"""Building one partition of one stage: fill a version's folder, audit it, write its receipt, point
at it.

The order is the promise. Whatever happens before the last step, readers see what they saw before; a
rerun finds the finished shards of the same version and goes on. A stage says *what* to build; here
is *how*.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import CheckFailed, LcError, NotPublished
from lc_assets.execution.environment import versions_of
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.lake.digests import FileFact
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.partition import Partition
from lc_assets.lake.receipts import Fingerprint, receipt_of, version_files
from lc_assets.lake.staging import Publication, publication
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.stages.metering import Meter, measured_by
from lc_assets.stages.recipe import Recipe
from lc_assets.stages.shard_runs import ShardRun
from lc_assets.stages.sharding import Sharding, Shards, shards_of

LIBRARIES = (
    "duckdb",
    "gigatoken",
    "isal",
    "msgspec",
    "numcodecs",
    "numpy",
    "pyarrow",
    "tiktoken",
    "zarr",
)
"""Libraries whose versions shape published bytes; receipts state them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """Where a stage works: what it reads, where it publishes, by which settings, on which executor.

    ``crawl`` is where the crawl's own archives lie, when there are any; ``say`` is told in a
    sentence what a stage did, when that is not what one would expect.
    """

    lake: Lake
    upstream: Upstream
    recipe: Recipe
    executor: Executor
    crawl: Upstream | None = None
    say: Callable[[str], object] = lambda _words: None


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one claim's test found.

    Attributes:
        claim: the claim's name, as in the Dagster UI.
        passed: whether it holds.
        words: one sentence for people, with the numbers in it.
        numbers: the same numbers, for plots.
        severity: an error blocks publication and everything downstream; a warning is shown.
    """

    claim: str
    passed: bool
    words: str
    numbers: dict[str, float] = {}
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingFolder:
    """A version's folder while it is being filled.

    Attributes:
        folder: where.
        fingerprint: what determines its bytes.
        inputs: what it is made from.
        shards: how it falls into shards, when its stage says so.
        meter: what its tasks took.
        facts: of its files, by path, where somebody has read them since they were written.
    """

    folder: Path
    fingerprint: Fingerprint
    inputs: Mapping[str, Published]
    shards: Shards | None = None
    meter: Meter = field(default_factory=Meter)
    facts: dict[str, FileFact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """What a claim may look at: the version's folder, its counts and what it was made from."""

    folder: Path
    fingerprint: Fingerprint
    counts: Counts
    lake: Lake
    inputs: Mapping[str, Published]

    @classmethod
    def of(cls, staging: StagingFolder, counts: Counts, lake: Lake) -> Self:
        """The evidence of what has just been written."""
        return cls(
            folder=staging.folder,
            fingerprint=staging.fingerprint,
            counts=counts,
            lake=lake,
            inputs=staging.inputs,
        )

    def only_input(self, stage: str) -> Published:
        """The input that came from ``stage``.

        Raises:
            NotPublished: when that version is gone.
        """
        for name, published in self.inputs.items():
            if name.startswith(f"{stage}/"):
                return published
        raise NotPublished(
            f"{self.folder}: the {stage} version it was made from is gone from the lake"
        )


Check = Callable[[CheckInput], CheckResult]
"""A test of what a stage wrote. Its name and docstring are what the Dagster UI shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a stage is, apart from its work.

    Attributes:
        name: its folder in the lake.
        code_version: raised by hand whenever the same inputs and settings would give other bytes.
        upstream: the stages it reads.
        global_upstream: whether it reads *all* partitions of them rather than its own.
        reads: which of all partitions it reads, when not every published one.
        needs: which of its upstream stages a recipe has it read at all.
        own_only: stages of which it reads its own partition alone, although it reads others of the
            rest.
        by_head: stages whose other partitions are read by the heads of their receipts: these list a
            snapshot's files, and all of them together would grow in memory with the lake. Files are
            then asked for by name (`Published.only`).
        wanted: whether a recipe asks for it at all; the planner passes over those that are not.
        partitioned_by: what its keys are.
        params: its settings, out of a recipe: all that shape its bytes, resolved to plain values.
        claims: what must hold of what it wrote.
        sharding: how its versions fall into shards that a newer version may take over; None when
            they do not.
        sieve: whether its partitions, made anew, mostly come out as they were; what reads one is
            then not built along with it.
    """

    name: str
    code_version: str
    upstream: tuple[str, ...]
    params: Callable[[Recipe, str], dict[str, Any]]
    claims: tuple[Check, ...]
    partitioned_by: Literal["snapshot", "mix", "nothing"] = "snapshot"
    global_upstream: bool = False
    reads: Callable[[Recipe, str, str], bool] = lambda _recipe, _key, _upstream_key: True
    needs: Callable[[Recipe, str], bool] = lambda _recipe, _stage: True
    own_only: tuple[str, ...] = ()
    by_head: tuple[str, ...] = ()
    wanted: Callable[[Recipe], bool] = lambda _recipe: True
    sharding: Sharding | None = None
    sieve: bool = False

    def is_fed_by(self, recipe: Recipe, key: str, stage: str, upstream_key: str) -> bool:
        """Whether partition ``key`` reads partition ``upstream_key`` of ``stage``."""
        if stage not in self.upstream or not self.needs(recipe, stage):
            return False
        if self.global_upstream and stage not in self.own_only:
            return self.reads(recipe, key, upstream_key)
        return upstream_key in (key, GLOBAL)

    def inputs(self, lake: Lake, recipe: Recipe, key: str) -> dict[str, Published]:
        """The published versions this stage would read now, by name.

        Raises:
            NotPublished: when an input of this partition is not there.
        """
        needed = [stage for stage in self.upstream if self.needs(recipe, stage)]
        if self.global_upstream:
            found = [
                published
                for stage in needed
                for published in self._fed_by(lake, recipe, key, stage)
            ]
        else:
            found = [lake.partition(stage, key).require() for stage in needed]
        return {published.name: published for published in found}

    def _fed_by(self, lake: Lake, recipe: Recipe, key: str, stage: str) -> Iterator[Published]:
        """The published partitions of one stage that are read; of those read alone none is
        listed.
        """
        for other in (key, GLOBAL) if stage in self.own_only else lake.keys(stage):
            if not self.is_fed_by(recipe, key, stage, other):
                continue
            partition = lake.partition(stage, other)
            published = (
                partition.current_summary()
                if stage in self.by_head and other != key
                else partition.current()
            )
            if published is not None:
                yield published

    def resolved(self, recipe: Recipe, key: str) -> dict[str, Any]:
        """The settings of partition ``key`` as receipts hold them; may read the files that settings
        name.
        """
        # Through JSON, as receipts go: a tuple must not differ from the list that it comes back as.
        params: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.params(recipe, key)))
        return params

    def fingerprint(
        self, params: Mapping[str, Any], key: str, inputs: Mapping[str, str]
    ) -> Fingerprint:
        """Everything that determines the bytes of partition ``key``: settings as `resolved`, and
        ``inputs``, digests by name.
        """
        return Fingerprint(
            stage=self.name,
            key=key,
            code_version=self.code_version,
            params=dict(params),
            inputs=dict(inputs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A partition that now stands published.

    Attributes:
        published: the version.
        reused: True when it had been finished before and nothing was computed.
        findings: what the audit found; empty when reused.
    """

    published: Published
    reused: bool
    findings: tuple[CheckResult, ...] = ()

    @property
    def counts(self) -> Counts:
        """What was seen, kept and dropped."""
        return self.published.receipt.counts


def build(
    context: BuildContext,
    stage: Stage,
    key: str,
    fill: Callable[[StagingFolder], Counts],
    *,
    inputs: Mapping[str, Published] | None = None,
    foreign_inputs: Mapping[str, str] | None = None,
    randomness: Mapping[str, str] | None = None,
) -> Built:
    """Build partition ``key`` of ``stage``, or find that it stands already.

    Args:
        workshop: where to work.
        stage: what is built.
        key: the partition.
        fill: writes the version's files into the draft's folder and returns the counts. It must
            publish each file whole, and may find files of an earlier, killed attempt at the very
            same version.
        inputs: published versions that are read; by default what the stage says.
        foreign_inputs: digests of inputs that are not in the lake.
        randomness: what is drawn and how, for the receipt.

    Raises:
        CheckFailed: when a claim does not hold; nothing is published, the folder is kept as
            ``rejected-…``.
        StorageFull: when the disk is full; nothing is published and a rerun goes on.
        NotWritable: when the lake may not be written to.
        Busy: when another run has been building this partition for longer than `lc_assets.lake.staging.BUSY_SECONDS`.
    """
    read = stage.inputs(context.lake, context.recipe, key) if inputs is None else inputs
    digests = {name: published.digest for name, published in read.items()} | dict(
        foreign_inputs or {}
    )
    fingerprint = stage.fingerprint(stage.resolved(context.recipe, key), key, digests)
    partition = context.lake.partition(stage.name, key)
    with publication(partition, fingerprint.version) as publishing:
        if publishing.finished is not None:
            return Built(published=publishing.republish(publishing.finished), reused=True)
        staging = _staging_folder(stage, partition, fingerprint, read)
        with (
            os_errors_as_lc_errors(staging.folder),
            measured_by(staging.meter) as measured,
            publishing.writing(),
        ):
            counts = fill(staging)
        started = time.perf_counter()
        findings = audit(stage, CheckInput.of(staging, counts, context.lake))
        _require_passed(findings, publishing)
        files = version_files(staging.folder, staging.facts)
        measured["audit_seconds"] = round(time.perf_counter() - started, 3)
        more = {
            "randomness": dict(randomness or {}),
            "libraries": dict(versions_of(LIBRARIES)),
            "measured": measured,
        }
        measured["bytes_written"] = float(sum(fact.n_bytes for fact in files))
        receipt = receipt_of(staging.folder, fingerprint, counts, files=files, **more)
        published = publishing.publish(receipt)
        return Built(published=published, reused=False, findings=tuple(findings))


def _staging_folder(
    stage: Stage, partition: Partition, fingerprint: Fingerprint, inputs: Mapping[str, Published]
) -> StagingFolder:
    shards = shards_of(stage.sharding, fingerprint, inputs, partition) if stage.sharding else None
    staging = StagingFolder(
        folder=partition.folder / fingerprint.version,
        fingerprint=fingerprint,
        inputs=inputs,
        shards=shards,
    )
    if shards is None:
        staging.meter.bytes_read = sum(published.receipt.n_bytes for published in inputs.values())
    return staging


def audit(stage: Stage, check_input: CheckInput) -> list[CheckResult]:
    """Put every claim of a stage to the test, on a draft or on what is published."""
    return [run_check(claim, check_input) for claim in stage.claims]


def run_check(claim: Check, check_input: CheckInput) -> CheckResult:
    """Test one claim; where what it reads is too damaged to be read, the claim does not hold."""
    try:
        return claim(check_input)
    except LcError as error:
        return CheckResult(
            claim=claim.__name__,
            passed=False,
            words=f"cannot be tested: {type(error).__name__}: {error}",
        )


def check_input_of(lake: Lake, published: Published, *, by_head: Sequence[str] = ()) -> CheckInput:
    """The evidence for re-testing a published version: its inputs are the very versions it was made
    from.

    Args:
        lake: where they are.
        published: the version.
        by_head: see `Stage.by_head`.
    """
    fingerprint = published.receipt.fingerprint
    heads = tuple(f"{stage}/" for stage in by_head)
    names = {
        name: name.startswith(heads) and not name.endswith(f"/{fingerprint.key}")
        for name in fingerprint.inputs
    }
    found = {
        name: _input(lake, name, digest, by_head=names[name])
        for name, digest in fingerprint.inputs.items()
    }
    inputs = {name: version for name, version in found.items() if version is not None}
    return CheckInput(
        folder=published.folder,
        fingerprint=fingerprint,
        counts=published.receipt.counts,
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
    """Run a shard function over tasks, and add up what it counted; see
    `lc_assets.stages.shard_runs`.

    Args:
        workshop: whose executor runs them.
        draft: whose shards they are; one that older versions hold is taken over.
        function: of a task that has ``folder`` and ``name``; see `lc_assets.lake.staging.once`.
        tasks: one per shard.
        what: says in a few words what is being done.
    """
    run = ShardRun(
        executor=context.executor,
        folder=staging.folder,
        fingerprint=staging.fingerprint,
        meter=staging.meter,
        shards=staging.shards,
        say=context.say,
        facts=staging.facts,
    )
    return run.run(function, tasks, what=what)


def _input(lake: Lake, name: str, digest: str, *, by_head: bool) -> Published | None:
    stage, _, key = name.partition("/")
    if not key:
        return None
    if by_head:
        with contextlib.suppress(LcError):
            summary = lake.partition(stage, key).current_summary()
            if summary is not None and summary.digest == digest:
                return summary
    return lake.partition(stage, key).with_digest(digest)


def _require_passed(findings: Sequence[CheckResult], publishing: Publication) -> None:
    wrong = [finding for finding in findings if not finding.passed and finding.severity == "error"]
    if not wrong:
        return
    said = "; ".join(f"{finding.claim}: {finding.words}" for finding in wrong)
    raise CheckFailed(
        f"{publishing.partition.name} is not published, its checks failed: {said}. What was "
        f"written is kept in {publishing.reject()}"
    )
