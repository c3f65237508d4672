"""Rebuilding what is out of date: plan, build what can be built, and repeat until nothing is out of
date.

When a partition fails, it and its dependents are skipped, everything else is built, and the
failures are reported at the end. Planning again after each round skips stages whose inputs are
unchanged.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lc_assets.builds.stage import BuildContext, Built
from lc_assets.errors import CorruptFile, LcError, Mismatch, NotPublished
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import RECEIPT
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import Plan, Run, runs_of
from lc_assets.stages.releases.pruning import needed_versions, pinned_versions


class PartitionFailed(LcError):
    """One partition could not be built; those of its run before it were."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"{name}: {words}")
        self.name = name


@dataclass(slots=True)
class Rebuilt:
    """The result of a rebuild.

    Attributes:
        done: names of partitions that were built or already complete, in order.
        failed: error messages by partition.
        left: plans of partitions that wait for failed ones, or whose inputs cannot be read.
    """

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[Plan] = field(default_factory=list)


def rebuild(
    plan: Callable[[], Sequence[Plan]], build: Callable[[Run], None], *, stop_at_once: bool = False
) -> Rebuilt:
    """Build what is out of date.

    Args:
        plan: plans all partitions.
        build: builds the partitions of one run, in order.
        stop_at_once: whether to raise the first failure.

    Raises:
        PartitionFailed: the first failure, with ``stop_at_once``.
    """
    result = Rebuilt()
    built: dict[str, str | None] = {}
    while True:
        plans = [made for made in plan() if made.status != "current"]
        _fail_unchanged(plans, built, result)
        runs = runs_of([made for made in plans if made.name not in result.failed], rejected=True)
        if not runs:
            result.left = [made for made in plans if made.name not in result.failed]
            return result
        for run in runs:
            names = [made.name for made in run.plans]
            try:
                build(run)
            except PartitionFailed as error:
                if stop_at_once:
                    raise
                result.failed[error.name] = str(error)
                if error.name in names:
                    names = names[: names.index(error.name)]
            result.done += names
            built |= {
                made.name: made.target
                for made in run.plans
                if made.name in names and not made.waits_for
            }


def build_run(context: BuildContext, report: Callable[[Plan, Built], object], run: Run) -> None:
    """Build the partitions of a run in this process, and report each.

    Raises:
        PartitionFailed: the first one that cannot be built.
    """
    stages = [stage_named(made.stage) for made in run.plans]
    for place, made in enumerate(run.plans):
        following = replace(context, following=tuple(stages[place + 1 :]))
        try:
            built = stages[place].build(following, run.key)
        except LcError as error:
            raise PartitionFailed(made.name, str(error)) from error
        report(made, built)


def _fail_unchanged(plans: Sequence[Plan], built: dict[str, str | None], result: Rebuilt) -> None:
    """Fail partitions that are out of date although the wanted version was just built, which would
    otherwise be repeated for ever.
    """
    for made in plans:
        again = made.name in built and not made.waits_for and made.target == built[made.name]
        if again and made.name not in result.failed:
            result.failed[made.name] = str(
                Mismatch(f"{made.name} is out of date after it was built: {made.why}")
            )


def damage_of(lake: Lake, *, verify: bool, remove: bool) -> Iterator[tuple[str, list[str]]]:
    """Compare the versions that are published, pinned by a release or needed by such versions with
    their receipts, and find those with missing or damaged files; of a partition without a readable
    pointer, all versions.

    Args:
        lake: the lake.
        verify: whether to read every byte instead of comparing names and sizes.
        remove: whether to remove what is damaged, so that it is built again.

    Yields:
        A version's name, and the paths of these files.

    Raises:
        Busy: with ``remove``, when another command is working there.
    """
    names = needed_versions(lake) | pinned_versions(lake).keys()
    for partition in lake.partitions():
        current = None
        with contextlib.suppress(LcError):
            current = partition.current()
        if current is None:  # any of its versions may be published again
            names |= {f"{partition.name}/{version}" for version in partition.version_names()}
    for name in sorted(names):
        stage, key, version = name.split("/")
        partition, damaged = lake.partition(stage, key), [RECEIPT]
        with contextlib.suppress(NotPublished, CorruptFile):
            published = partition.at(version)
            damaged = (
                partition.remove_damaged(published, verify=verify)
                if remove
                else published.damaged_files(verify=verify)
            )
        if damaged:
            yield name, damaged
