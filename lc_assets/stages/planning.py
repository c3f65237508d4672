"""The planner: what is out of date, and why, from receipts, inputs, settings and code alone.

It uses neither Dagster nor a clock, so command line, CI, sensors and tests get the same answer, and
losing Dagster's database loses history, not correctness. It writes nothing. Each pointer and
receipt is read once per plan, and the names and sizes of published files are compared with it.
What a build would take from a lake that the recipe reuses counts as an input already. `runs_of`
groups what can be built now.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import msgspec

from lc_assets.builds.inputs import inputs_of
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import SOURCE
from lc_assets.builds.stage import Stage
from lc_assets.errors import BadInput, CorruptFile, LcError, NotPublished
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL, Lake, assume, memoized, version_in
from lc_assets.lake.receipts import Fingerprint, Receipt
from lc_assets.lake.versions import Published
from lc_assets.records import frozen
from lc_assets.sources.opening import known_snapshots
from lc_assets.sources.settings import source_name
from lc_assets.stages.catalogue import STAGES, needed_by, stage_named

UPSTREAM = "upstream"
"""Name of `raw_snapshot`'s input from outside the lake."""

CRAWL = "crawl"
"""Name of `html_index`'s input from outside the lake."""

Status = Literal["current", "missing", "stale", "waiting"]
"""``waiting``: an input must be built first, so whether this changes is not yet known."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of one partition.

    Attributes:
        stage: the stage's name.
        key: the partition.
        status: whether it is current, and if not, why it must be built or cannot be.
        reasons: why, in words; empty when current.
        seconds: duration of the last build, including checks, if there was one.
        target: the version that a build would make now; None while unknown.
        waits_for: partitions to build first.
        taken_from: the lake that has the target: a build publishes it here, and computes nothing.
        rejected: whether checks have failed for this target before.
        damaged: whether only lost files make it stale: a build gives the same bytes again.
        certain: False if it waits only for stages with `Stage.early_cutoff`, and need not
            be built if these are unchanged.
    """

    stage: str
    key: str
    status: Status
    reasons: tuple[str, ...] = ()
    seconds: float | None = None
    target: str | None = None
    waits_for: tuple[str, ...] = ()
    taken_from: str = ""
    rejected: bool = False
    damaged: bool = False
    certain: bool = True

    @property
    def name(self) -> str:
        """``filtered_documents/2023-06``."""
        return f"{self.stage}/{self.key}"

    @property
    def why(self) -> str:
        """The first reasons, and how many more there are."""
        return first_of(self.reasons, "; ")


def plan(
    lake: Lake,
    recipe: Recipe,
    snapshots: Sequence[str],
    *,
    upstream_digests: Mapping[str, str] | None = None,
    crawl_digests: Mapping[str, str] | None = None,
) -> list[Plan]:
    """Plan every partition of the chain, upstream first.

    Args:
        lake: what is published.
        recipe: the settings to build with.
        snapshots: the snapshots that should exist.
        upstream_digests: digest of each snapshot's files upstream, by
            `lc_assets.stages.documents.raw_snapshot.look_at_snapshot`; without it, published
            manifests count as current.
        crawl_digests: the same of the crawl's archives, by
            `lc_assets.stages.links.html_index.look_at_crawl`.

    Raises:
        BadInput: when duplicates are preferred of a source that nobody knows.
    """
    _require_preferred_sources(lake, recipe, snapshots)
    planner = _Planner(
        memoized(lake),
        [memoized(open_lake(root)) for root in recipe.reuses],
        recipe,
        {UPSTREAM: upstream_digests or {}, CRAWL: crawl_digests or {}},
    )
    for found in STAGES:
        planner.made[found.name] = [
            planner.plan_one(found, key) for key in keys_of(found, recipe, snapshots)
        ]
    return [made for plans in planner.made.values() for made in plans]


def _require_preferred_sources(lake: Lake, recipe: Recipe, snapshots: Sequence[str]) -> None:
    named = {
        key.removeprefix(SOURCE)
        for key in recipe.removed_documents.prefer
        if key.startswith(SOURCE)
    }
    if named:
        known = {*snapshots, *lake.keys("raw_snapshot"), *known_snapshots(sources=recipe.sources)}
        if missing := sorted(named - known):
            raise BadInput(
                f"removed_documents.prefer names {SOURCE}{missing[0]}, and no partition is called "
                f"{missing[0]}: there are {first_of(sorted(known))}"
            )


def keys_of(stage: Stage, recipe: Recipe, snapshots: Iterable[str]) -> list[str]:
    """The partitions that a stage should have; none when the recipe does not build it."""
    if stage.name not in needed_by(recipe):
        return []
    if stage.partitioned_by == "snapshot":
        return list(snapshots)
    return sorted(recipe.blended_mix) if stage.partitioned_by == "mix" else [GLOBAL]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of one key that can be built now, in this order.

    Attributes:
        key: the snapshot, the mix, or ``all``.
        plans: one per stage, upstream first; those that wait, wait only for earlier ones.
    """

    key: str
    plans: tuple[Plan, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages."""
        return tuple(made.stage for made in self.plans)

    @property
    def identity(self) -> str:
        """A digest of what is to be built: the same while nothing has changed."""
        return short(digest_of([[made.name, made.target, made.reasons] for made in self.plans]))


def runs_of(plans: Sequence[Plan], *, rejected: bool = False) -> list[Run]:
    """What can be built now, upstream first: the stages of a key that wait for nothing outside it.

    A waiting partition is built in the same run as the partitions that it waits for; if these are
    unchanged, it is already complete and nothing is computed. After a stage with early cut-off
    (`Stage.early_cutoff`) this is the usual case, so there it waits for the next plan.

    Args:
        plans: the planner's result.
        rejected: whether to retry targets whose checks have failed; unattended runs should not.
    """
    together: dict[tuple[str, str], list[Plan]] = {}
    names: set[str] = set()
    standing: set[str] = set()
    for made in plans:
        ready = made.status in {"stale", "missing"} and not made.waits_for
        follows = (
            bool(made.waits_for)
            and names.issuperset(made.waits_for)
            and all(name.endswith(f"/{made.key}") for name in made.waits_for)
            and (made.certain or standing.isdisjoint(made.waits_for))
        )
        if (ready or follows) and (rejected or not made.rejected):
            names.add(made.name)
            standing |= {made.name} if made.status != "missing" else set()
            together.setdefault((partitioned_by(made.stage), made.key), []).append(made)
    return [Run(key=key, plans=tuple(found)) for (_, key), found in together.items()]


def partitioned_by(stage: str) -> str:
    """What a stage's keys are."""
    return stage_named(stage).partitioned_by


def took(receipt: Receipt) -> float | None:
    """Seconds that a version took, checks included; None when not measured."""
    measured = receipt.measured
    return (
        measured["seconds"] + measured.get("audit_seconds", 0.0) if "seconds" in measured else None
    )


@frozen
class _Planner:
    lake: Lake
    others: Sequence[Lake]
    recipe: Recipe
    looked: Mapping[str, Mapping[str, str]]
    resolved: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    made: dict[str, list[Plan]] = field(default_factory=dict)

    def plan_one(self, stage: Stage, key: str) -> Plan:
        behind = list(self._behind(stage, key))
        unknown = [other.name for other in behind if not other.taken_from]
        reasons = [f"after {first_of(unknown)}"] if unknown else []
        partition = self.lake.partition(stage.name, key)
        status: Status = "waiting"
        current = target = None
        lost: Sequence[str] = ()
        try:
            current = partition.current()
            lost = current.lost_files() if current else ()
        except LcError as error:
            current = None
            status, reasons = "stale", [f"what is published cannot be read: {error}", *reasons]
        try:
            if not unknown and status == "waiting":
                status, reasons, target = self._verdict(stage, key, current)
        except (CorruptFile, NotPublished) as error:
            reasons = [f"an input cannot be read: {error}"]
        if status == "current" and lost:
            status, reasons = "stale", [f"missing or truncated: {first_of(lost)}"]
        rejected = target is not None and partition.rejected_folder(target).is_dir()
        if rejected:
            reasons = [*reasons, f"its audit failed before, see rejected-{target}"]
        taken_from = "" if status == "current" else self._taken_from(stage, key, target)
        if taken_from:
            reasons = [*reasons, f"taken from {taken_from}"]
        return Plan(
            stage=stage.name,
            key=key,
            status=status,
            reasons=tuple(reasons),
            seconds=took(current.receipt) if current else None,
            target=target,
            waits_for=() if status == "current" else tuple(other.name for other in behind),
            taken_from=taken_from,
            rejected=rejected,
            damaged=status == "stale" and (current is None or target == current.version),
            certain=not _cut_off_early(unknown) or self._is_certain(stage, key, current, unknown),
        )

    def _taken_from(self, stage: Stage, key: str, target: str | None) -> str:
        """The lake that has the target, which then counts as published here; "" for none."""
        found = version_in(self.others, stage.name, key, target) if target else None
        if found is None:
            return ""
        assume(self.lake, found)
        return found.where.rsplit("/", 3)[0]

    def _is_certain(
        self, stage: Stage, key: str, current: Published | None, waits_for: Sequence[str]
    ) -> bool:
        """Whether settings, code or a current input make a partition stale."""
        if current is None:
            return True
        try:
            wanted = self._wanted(stage, key, current)
        except (CorruptFile, NotPublished):
            return True
        made = current.receipt.fingerprint
        known = {
            name: digest
            for name, digest in (wanted.inputs if wanted else made.inputs).items()
            if name not in waits_for
        }
        before = {name: digest for name, digest in made.inputs.items() if name not in waits_for}
        same = wanted is None or (wanted.params, wanted.code_version) == (
            made.params,
            made.code_version,
        )
        return not same or known != before

    def _behind(self, stage: Stage, key: str) -> Iterator[Plan]:
        """Partitions that feed this one and are not current."""
        for upstream in stage.upstream:
            for other in self.made.get(upstream, ()):
                if other.status != "current" and stage.is_fed_by(
                    self.recipe, key, other.stage, other.key
                ):
                    yield other

    def _verdict(
        self, stage: Stage, key: str, current: Published | None
    ) -> tuple[Status, list[str], str | None]:
        wanted = self._wanted(stage, key, current)
        if current is None:
            return "missing", ["never built"], wanted.version if wanted else None
        if wanted is None or wanted == current.receipt.fingerprint:
            return "current", [], current.version
        return "stale", current.receipt.fingerprint.differences(wanted), wanted.version

    def _wanted(self, stage: Stage, key: str, current: Published | None) -> Fingerprint | None:
        """The fingerprint of a build now; None when it depends on an upstream that was not read."""
        read = stage.digests_of(inputs_of(stage, self.lake, self.recipe, key))
        made = current or self._in_others(stage, key)
        made_of = made.receipt.fingerprint.inputs if made else {}
        foreign = {name: digest for name, digest in made_of.items() if "/" not in name}
        looked = {name: self.looked.get(name, {}).get(key) for name in stage.outside}
        foreign |= {name: digest for name, digest in looked.items() if digest is not None}
        inputs = foreign | read
        is_known = stage.outside.keys() <= inputs.keys()
        return stage.fingerprint(self._params(stage, key), key, inputs) if is_known else None

    def _in_others(self, stage: Stage, key: str) -> Published | None:
        """What the first of the other lakes that can be read has published."""
        for lake in self.others:
            with contextlib.suppress(LcError):
                if found := lake.partition(stage.name, key).current():
                    return found
        return None

    def _params(self, stage: Stage, key: str) -> dict[str, Any]:
        """Settings of a partition, resolved once per mix or source: some name files to be read."""
        place = (stage.name, key)
        if stage.partitioned_by == "snapshot":
            place = (stage.name, source_name(self.recipe.sources, key))
        if place not in self.resolved:
            self.resolved[place] = stage.resolved(self.recipe, key)
        return self.resolved[place]


def _cut_off_early(names: Sequence[str]) -> bool:
    return bool(names) and all(stage_named(name.partition("/")[0]).early_cutoff for name in names)


def first_of(names: Sequence[str], between: str = ", ", most: int = 3) -> str:
    """The first of some names, and how many more there are.

    >>> first_of(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    rest = len(names) - most
    return between.join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
