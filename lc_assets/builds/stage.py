"""The declaration of a stage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import pyarrow as pa

from lc_assets.builds.metering import Meter
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.sharding import Sharding, Shards
from lc_assets.builds.showing import Shown
from lc_assets.builds.verified_reads import verified_reads
from lc_assets.counts import Counts
from lc_assets.errors import NotPublished
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.digests import FileFact, digest_of
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.receipts import Fingerprint
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.vocabulary import SnapshotId, parse_snapshot


@record
class BuildContext:
    """The build context: lake, upstream, recipe and executor.

    ``crawl`` is the location of the crawl's archives; ``say`` gets messages about the unexpected;
    a trial is reported nowhere; in the contexts ``also`` the same is built next, and may be begun;
    the stages ``following`` are built next.
    """

    lake: Lake
    upstream: Upstream
    recipe: Recipe
    executor: Executor
    crawl: Upstream | None = None
    say: Callable[[str], object] = lambda _words: None
    is_trial: bool = False
    also: tuple["BuildContext", ...] = ()
    following: tuple["Stage", ...] = ()


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a check.

    Attributes:
        check: its name; by default that of the function, filled in by `run_check`.
        passed: whether it holds.
        message: one sentence with the values.
        values: the same values, for plots.
        severity: an error blocks publication and everything downstream; a warning is shown.
    """

    passed: bool
    message: str
    values: dict[str, float] = {}
    severity: Literal["error", "warning"] = "error"
    check: str = ""


@record
class StagingFolder:
    """A version's folder while it is written.

    Attributes:
        folder: its path.
        fingerprint: what determines its bytes.
        inputs: the versions it is made from.
        outside: what its stage read outside the lake, by name.
        shards: how it falls into shards, when its stage declares that.
        meter: what its tasks took.
        facts: digests of files that were read since they were written, by path.
    """

    folder: Path
    fingerprint: Fingerprint
    inputs: Mapping[str, Published]
    outside: Mapping[str, pa.Table]
    shards: Shards | None = None
    meter: Meter = field(default_factory=Meter)
    facts: dict[str, FileFact] = field(default_factory=dict)

    @property
    def key(self) -> SnapshotId:
        """The partition's key."""
        return SnapshotId(self.fingerprint.key)

    def own(self, stage: str) -> Published:
        """The input of the same partition that came from ``stage``.

        Raises:
            NotPublished: when there is none.
        """
        if found := self.inputs.get(name := f"{stage}/{self.key}"):
            return found
        raise NotPublished(f"{name} is not published: materialize it")


@record
class CheckInput:
    """What a check reads: the version's folder, counts and inputs; ``executor`` runs its tasks.

    ``tables`` is what the checks of one version know of its shards' tables
    (`lc_assets.builds.checks.shard_tables`).
    """

    folder: Path
    fingerprint: Fingerprint
    counts: Counts
    lake: Lake
    inputs: Mapping[str, Published]
    executor: Executor = LocalExecutor()
    tables: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    @property
    def params(self) -> dict[str, Any]:
        """The settings that the version is made by."""
        return self.fingerprint.params

    def only_input(self, stage: str) -> Published:
        """The input that came from ``stage``.

        Raises:
            NotPublished: when that version is gone.
        """
        found = [one for name, one in self.inputs.items() if name.startswith(f"{stage}/")]
        if found:
            return found[0]
        raise NotPublished(f"{self.folder}: its {stage} version is gone from the lake")


Check = Callable[[CheckInput], CheckResult]
"""A test of what a stage wrote. The Dagster UI shows its name and docstring."""

Pool = Literal["workers", "upstream"]

WORKERS: Pool = "workers"
"""Stages that use all worker processes."""

UPSTREAM: Pool = "upstream"
"""Stages that query a server about many files and compute next to nothing."""


@record
class Partitions:
    """Which partitions of an upstream stage a partition reads: `SAME_SNAPSHOT`, `THIS_AND_OLDER`,
    `ALL_SNAPSHOTS` or `UNPARTITIONED`, narrowed by the methods.

    Attributes:
        words: for the documentation.
        selects: whether a partition reads another, from recipe, its key, and the other's key.
        only: maps the partition's key to the key of the only partition it can read; None if there
            can be several.
        is_needed: whether a recipe needs the upstream stage at all.
        by_summary: whether only receipt summaries of other partitions are read. A summary lists no
            files, so memory does not grow with the lake; files are read by name (`Published.only`).
    """

    words: str
    selects: Callable[[Recipe, str, str], bool]
    only: Callable[[str], str] | None = None
    is_needed: Callable[[Recipe], bool] = lambda _recipe: True
    by_summary: bool = False

    def only_if(self, is_needed: Callable[[Recipe], bool]) -> Self:
        """The same for some recipes; others read nothing."""
        return replace(self, is_needed=is_needed)

    def where(self, selects: Callable[[Recipe, str, str], bool]) -> Self:
        """The same, of partitions for which this holds too."""
        before = self.selects
        return replace(self, selects=lambda *args: before(*args) and selects(*args))

    def summarized(self) -> Self:
        """The same, reading of other partitions only the receipt's summary."""
        return replace(self, by_summary=True)


SAME_SNAPSHOT = Partitions(
    words="same snapshot", selects=lambda _recipe, key, other: other == key, only=lambda key: key
)

THIS_AND_OLDER = Partitions(
    words="this and older snapshots", selects=lambda _recipe, key, other: other <= key
)

ALL_SNAPSHOTS = Partitions(words="all partitions", selects=lambda _recipe, _key, _other: True)

UNPARTITIONED = Partitions(
    words="unpartitioned",
    selects=lambda _recipe, _key, other: other == GLOBAL,
    only=lambda _key: GLOBAL,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """The declaration of one artefact, from which the planner, the command line, Dagster and the
    documentation are derived.

    Attributes:
        name: shared by the module, asset, lake folder, recipe section and plan.
        description: one sentence for the UI and the README.
        code_version: incremented by hand when equal inputs and settings would give other bytes.
        reads: the names of the upstream stages, and which of their partitions.
        params: maps a recipe and a key to all settings that affect the bytes, as plain values.
        checks: run on the staging folder before publishing, and as Dagster asset checks.
        write: writes one partition's files into the staging folder, each atomically, and returns
            the counts. It may find files of a killed attempt at the same version.
        show: plots, tables and metadata of a published version, for the UI; by default those of the
            function with the stage's name in `lc_assets.stages.shown`.
        outside: for a stage that reads from outside the lake: tables of what is there, by the name
            of the input. They are read before the build, and their digests are in the receipt.
        state: for such a stage: what changes with the external data; read before the build.
        randomness: what is drawn and how, for the receipt.
        wanted: whether a recipe enables the stage.
        remembers: whether a version knows what the next cannot see, which is then made from it too.
        refused: why a recipe that enables the stage cannot have it; empty if it can.
        partitioned_by: the kind of partition keys.
        group: asset group in the UI.
        job: the job that builds it with other stages; empty for none.
        pool: concurrency pool; None for stages that take negligible time.
        grows: whether it takes longer the more data there are; `lc plan --calibrate` asks.
        kinds: file kinds shown in the UI.
        counted: the unit of its counts.
        columns: of the table that it publishes, if it is one.
        sharding: how its versions divide into shards that newer ones reuse; None if they do not.
        early_cutoff: whether rebuilt partitions are usually unchanged, so that stages that read one
            wait for the result instead of being built in the same run.
        cited: what the files state of an input's receipt beside its content, such as its version:
            part of the fingerprint, as equal contents can have several receipts.
    """

    name: str
    description: str = ""
    code_version: str
    reads: Mapping[str, Partitions]
    params: Callable[[Recipe, str], dict[str, Any]]
    checks: tuple[Check, ...]
    write: Callable[["BuildContext", StagingFolder], Counts]
    show: Callable[["BuildContext", "Built"], Shown] | None = None
    outside: Mapping[str, Callable[["BuildContext", SnapshotId], pa.Table]] = field(
        default_factory=dict
    )
    state: Callable[["BuildContext", SnapshotId], str] | None = None
    randomness: Callable[[Recipe, str], dict[str, str]] = lambda _recipe, _key: {}
    wanted: Callable[[Recipe], bool] = lambda _recipe: True
    remembers: Callable[[Published], bool] | None = None
    refused: Callable[[Recipe], str] = lambda _recipe: ""
    partitioned_by: Literal["snapshot", "mix", "nothing"] = "snapshot"
    group: str = "documents"
    job: str = ""
    pool: Pool | None = WORKERS
    grows: bool = True
    kinds: tuple[str, ...] = ("parquet",)
    counted: str = "documents"
    columns: pa.Schema | None = None
    sharding: Sharding | None = None
    early_cutoff: bool = False
    cited: Callable[[Published], Any] | None = None

    @property
    def upstream(self) -> tuple[str, ...]:
        """Names of the stages it reads."""
        return tuple(self.reads)

    @property
    def reads_others(self) -> bool:
        """Whether it reads other partitions than its own."""
        return any(partitions.only is None for partitions in self.reads.values())

    @property
    def by_summary(self) -> tuple[str, ...]:
        """Names of the stages of which only summaries are read."""
        return tuple(stage for stage, found in self.reads.items() if found.by_summary)

    def build(self, context: "BuildContext", key: str) -> "Built":
        """Build partition ``key``, see `lc_assets.builds.building.build`.

        Raises:
            BadInput: when the key is no name of a partition.
        """
        from lc_assets.builds.building import build

        with verified_reads(context.executor, (self.name, key) if self.sharding else ("", "")):
            return build(context, self, parse_snapshot(key))

    def is_fed_by(self, recipe: Recipe, key: str, stage: str, upstream_key: str) -> bool:
        """Whether partition ``key`` reads partition ``upstream_key`` of ``stage``."""
        found = self.reads.get(stage)
        return (
            found is not None
            and found.is_needed(recipe)
            and found.selects(recipe, key, upstream_key)
        )

    def digests_of(self, read: Mapping[str, Published]) -> dict[str, str]:
        """Digests of its inputs by name, and as ``receipts`` that of what it cites of them."""
        digests = {name: published.digest for name, published in read.items()}
        if self.cited is not None:
            cited = {name: self.cited(published) for name, published in read.items()}
            digests["receipts"] = digest_of(cited)
        return digests

    def resolved(self, recipe: Recipe, key: str) -> dict[str, Any]:
        """The settings of partition ``key`` as receipts hold them; may read files they name."""
        # Through JSON, like receipts: a tuple must equal the list that it is read back as.
        return dict(msgspec.json.decode(msgspec.json.encode(self.params(recipe, key))))

    def fingerprint(
        self, params: Mapping[str, Any], key: str, inputs: Mapping[str, str]
    ) -> Fingerprint:
        """What determines the bytes of partition ``key``; ``inputs`` are digests by name."""
        return Fingerprint(
            stage=self.name,
            key=key,
            code_version=self.code_version,
            params=dict(params),
            inputs=dict(inputs),
        )


@record
class Built:
    """A published partition.

    Attributes:
        published: the version.
        reused: True if the version was already complete and nothing was computed.
        findings: check results; empty when reused.
    """

    published: Published
    reused: bool
    findings: tuple[CheckResult, ...] = ()

    @property
    def counts(self) -> Counts:
        """What was seen, kept and dropped."""
        return self.published.counts
