"""Pruning: deleting unneeded versions, and versions that must not be kept.

A version is **needed** if it is published, if a release pins it, or if a needed version was made
from it or is read through it (the grids of an order, the Megatron files of a mix): so checks can be
repeated, and every row can be traced to its documents. Of a version that it continues
(`Stage.remembers`) what that was made from is not needed. All others may be deleted; the newest
``keep`` of each partition stay.

**Purging** deletes versions that contain withdrawn documents, however new they are. A published
version is never deleted: it must be rebuilt first. A version pinned by a release is deleted only if
that release is named explicitly; the deletions and the reason are recorded beside the release, and
opening it raises an error that states them.
"""

import contextlib
from collections.abc import Collection, Iterator

import msgspec

from lc_assets.errors import Busy, LcError
from lc_assets.lake.alone import alone
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import Partition
from lc_assets.lake.releases import Gone, gone_of, publish_gone, read_release, release_names
from lc_assets.publishing import remove_staging_files
from lc_assets.records import frozen
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.lineage.tracing import sources_of
from lc_assets.stages.withdrawal.contents import Held, versions_with

REJECTED = "rejected-"
UNNEEDED = "not needed"
HOLDS = "holds withdrawn documents"
UNFINISHED = "never finished; may hold withdrawn documents"
"""Why folders of killed builds, and of builds whose checks failed, are deleted."""


@frozen
class Deletion:
    """A folder to delete: its partition, its name there, its size, and the reason, in words."""

    partition: Partition
    folder: str
    n_bytes: int
    why: str

    @property
    def name(self) -> str:
        """Stage, partition and folder."""
        return f"{self.partition.name}/{self.folder}"


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of what to delete.

    Attributes:
        deletions: what to delete, downstream first.
        kept: versions that contain withdrawn documents and stay, with the reason.
        broken: releases that lose versions, with these versions.
    """

    deletions: tuple[Deletion, ...]
    kept: dict[str, str] = {}
    broken: dict[str, list[str]] = {}


def plan_pruning(lake: Lake, *, keep: int = 0) -> Pruning:
    """Find unneeded versions; the newest ``keep`` of each partition stay."""
    needed = needed_versions(lake)
    deletions = []
    for partition in lake.partitions():
        folders = partition.folders()
        written = {name: kept.finished for name, kept in folders.items() if kept.finished}
        versions = [
            name
            for name in sorted(written, key=written.__getitem__)
            if f"{partition.name}/{name}" not in needed and partition.finished(name) is not None
        ]
        why = dict.fromkeys(versions[: max(len(versions) - keep, 0)], UNNEEDED)
        why |= dict.fromkeys(
            (name for name in folders if name.startswith(REJECTED)), "its checks failed"
        )
        deletions += [Deletion(partition, name, folders[name].n_bytes, why[name]) for name in why]
    return Pruning(deletions=tuple(_downstream_first(deletions)))


def plan_purge(
    lake: Lake,
    ids: Collection[str],
    *,
    digests: Collection[str] = (),
    give_up: Collection[str] = (),
) -> Pruning:
    """Find the versions that contain withdrawn documents.

    Args:
        lake: the lake.
        ids: the withdrawn documents.
        digests: what is remembered of withdrawn documents that may have other ids now, or none.
        give_up: releases whose versions may be deleted.

    Raises:
        NotPublished: if ``give_up`` names a release that does not exist.
    """
    pinned = pinned_versions(lake)
    kept: dict[str, str] = {}
    deleted: dict[str, Deletion] = {}
    for held in versions_with(lake, ids, digests) if ids or digests else ():
        others = sorted(pinned.get(held.name, set()) - set(give_up))
        found = held.published
        if held.is_current:
            kept[held.name] = _why_it_stays(held)
        elif others:
            kept[held.name] = (
                f"pinned by {', '.join(others)}: give it up with --give-up {others[0]}"
            )
        else:
            partition = lake.partition(*found.name.split("/"))
            deleted[held.name] = Deletion(partition, found.version, found.receipt.n_bytes, HOLDS)
    unfinished = [
        Deletion(partition, name, folder.n_bytes, UNFINISHED)
        for partition in (lake.partitions() if ids or digests else ())
        for name, folder in partition.folders().items()
        if folder.finished is None
    ]
    return Pruning(
        deletions=tuple(_downstream_first([*deleted.values(), *unfinished])),
        kept=kept,
        broken={
            name: versions
            for name in sorted(give_up)
            if (versions := [of for of in _pinned_by(lake, name) if of in deleted])
        },
    )


def _why_it_stays(held: Held) -> str:
    if held.is_working_material:
        return (
            "working material, not served: it shows what the same content is; "
            "docs/withdrawal.md says how to remove it too"
        )
    return "published now: materialize what `lc plan` calls out of date, then purge"


def carry_out(lake: Lake, pruning: Pruning, *, reason: str = "") -> int:
    """Delete what is planned, and what a killed run left of such versions; return the number of
    bytes.

    Raises:
        Busy: if a run is building, or a version has been released, or is needed, since the plan.
        NotWritable: if a folder cannot be deleted.
    """
    with alone(lake):
        pinned, needed = pinned_versions(lake), needed_versions(lake)
        for one in pruning.deletions:
            is_needed = one.why == UNNEEDED and one.name in needed
            if is_needed or pinned.get(one.name, set()) - pruning.broken.keys():
                raise Busy(
                    f"{one.name} has been released or published in the meantime; run this again"
                )
        for name, versions in pruning.broken.items():
            gone = Gone(versions=versions, reason=reason or "it held withdrawn documents")
            publish_gone(lake, name, gone)
        for partition in lake.partitions():
            remove_staging_files(partition.folder, below=False)
        for one in pruning.deletions:
            one.partition.remove(one.folder)
    return sum(one.n_bytes for one in pruning.deletions)


def needed_versions(lake: Lake) -> set[str]:
    """Names of the versions that are needed: stage, partition and version."""
    line = []
    for partition in lake.partitions():
        with contextlib.suppress(LcError):
            current = partition.current()
            line += [] if current is None else [current]
    for name in pinned_versions(lake):
        stage, key, version = name.split("/")
        published = lake.partition(stage, key).finished(version)
        line += [] if published is None else [published]
    needed, continued, followed = set[str](), set[str](), set[tuple[str, str]]()
    for published in line:
        name = f"{published.name}/{published.version}"
        if name not in needed:
            needed.add(name)
            inputs = set(published.receipt.fingerprint.inputs.items())
            own = {one for one in inputs if one[0] == published.name}
            continued |= {f"{of.name}/{of.version}" for of in lake.with_digests(own)}
            inputs -= followed | own
            followed |= inputs
            line += lake.with_digests(inputs)
            with contextlib.suppress(LcError):  # versions already deleted need no protection
                line += sources_of(lake, published)
    return needed | continued


def pinned_versions(lake: Lake) -> dict[str, set[str]]:
    """Versions that releases pin, each with the names of these."""
    found: dict[str, set[str]] = {}
    for name in release_names(lake):
        for version in _pinned_by(lake, name):
            found.setdefault(version, set()).add(name)
    return found


def _pinned_by(lake: Lake, name: str) -> Iterator[str]:
    gone = {version for note in gone_of(lake, name) for version in note.versions}
    pins = read_release(lake, name).pins
    yield from (
        version for of, pin in pins.items() if (version := f"{of}/{pin.version}") not in gone
    )


def _downstream_first(deletions: Collection[Deletion]) -> list[Deletion]:
    places = {stage.name: place for place, stage in enumerate(STAGES)}
    return sorted(
        deletions, key=lambda one: (-places.get(one.partition.stage, len(places)), one.name)
    )
