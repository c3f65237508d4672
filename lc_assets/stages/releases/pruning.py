"""Pruning: deleting unneeded versions, and versions that must not be kept.

A version is **needed** if it is published, if a release pins it, or if such a version is read or
traced through it: the grids of an order, the Megatron files of a mix, the grids they were copied
from, and every input of a published version, so that its checks can be repeated. All others may be
deleted; the newest ``keep`` of each partition stay.

**Purging** deletes versions that contain withdrawn documents, however new they are. A published
version is never deleted: it must be rebuilt first. A version pinned by a release is deleted only if
that release is named explicitly; the deletions and the reason are recorded beside the release, and
opening it raises an error that states them.
"""

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from lc_assets.errors import LcError
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import Partition
from lc_assets.lake.releases import Gone, gone_of, publish_gone, read_release, release_names
from lc_assets.lake.staging import BUSY_SECONDS
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.lineage.tracing import sources_of
from lc_assets.stages.withdrawal.contents import Held, versions_with

REJECTED: Final = "rejected-"
HOLDS: Final = "holds withdrawn documents"
UNFINISHED: Final = "never finished; may hold withdrawn documents"
"""Why folders of killed builds, and of builds whose checks failed, are deleted."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """A plan of what to delete.

    Attributes:
        deletions: what to delete, downstream first.
        kept: versions that contain withdrawn documents and stay, each with the reason.
        broken: releases that lose versions, each with these versions.
    """

    deletions: tuple[Deletion, ...]
    kept: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, tuple[str, ...]], ...] = ()


def plan_pruning(lake: Lake, *, keep: int = 0) -> Pruning:
    """Find unneeded versions; the newest ``keep`` of each partition stay."""
    needed = needed_versions(lake)
    deletions = []
    for partition in lake.partitions():
        folders = partition.folders()
        written = {name: kept.finished for name, kept in folders.items() if kept.finished}
        idle = (
            name
            for name in written
            if f"{partition.name}/{name}" not in needed and partition.finished(name) is not None
        )
        versions = sorted(idle, key=lambda name: written[name])
        why = dict.fromkeys(versions[: max(len(versions) - keep, 0)], "nobody needs it")
        why |= dict.fromkeys(
            (name for name in folders if name.startswith(REJECTED)), "its checks failed"
        )
        deletions += [Deletion(partition, name, folders[name].n_bytes, why[name]) for name in why]
    return Pruning(deletions=tuple(_downstream_first(deletions)))


def plan_purge(lake: Lake, ids: Collection[str], *, give_up: Collection[str] = ()) -> Pruning:
    """Find the versions that contain withdrawn documents.

    Args:
        lake: the lake.
        ids: the withdrawn documents.
        give_up: releases whose versions may be deleted.

    Raises:
        NotPublished: if ``give_up`` names a release that does not exist.
    """
    pinned = pinned_versions(lake)
    given_up = {name: set(_pinned_by(lake, name)) for name in give_up}
    deletions, kept, lost = [], [], dict[str, list[str]]()
    for held in versions_with(lake, ids) if ids else ():
        others = sorted(pinned.get(held.name, set()) - set(give_up))
        if held.is_current:
            kept.append((held.name, _why_it_stays(held)))
        elif others:
            kept.append(
                (held.name, f"pinned by {', '.join(others)}: give it up with --give-up {others[0]}")
            )
        else:
            found, partition = held.published, lake.partition(*held.published.name.split("/"))
            deletions.append(Deletion(partition, found.version, found.receipt.n_bytes, HOLDS))
            for name, versions in given_up.items():
                lost.setdefault(name, []).extend([held.name] if held.name in versions else [])
    for partition in lake.partitions() if ids else ():
        deletions += [
            Deletion(partition, name, kept.n_bytes, UNFINISHED)
            for name, kept in partition.folders().items()
            if kept.finished is None
        ]
    broken = tuple((name, tuple(versions)) for name, versions in sorted(lost.items()) if versions)
    return Pruning(deletions=tuple(_downstream_first(deletions)), kept=tuple(kept), broken=broken)


def _why_it_stays(held: Held) -> str:
    if held.is_working_material:
        return (
            "working material, not served: it shows what the same content is; "
            "docs/withdrawal.md says how to remove it too"
        )
    return "published now: materialize what `lc plan` calls out of date, then purge"


def carry_out(lake: Lake, pruning: Pruning, *, reason: str = "") -> int:
    """Delete what is planned; return the number of bytes. A version's receipt is deleted before its
    files.

    Raises:
        Busy: if a run is building one of the partitions.
        NotWritable: if a folder cannot be deleted.
    """
    for name, versions in pruning.broken:
        publish_gone(
            lake,
            name,
            Gone(versions=list(versions), reason=reason or "it held withdrawn documents"),
        )
    for one in pruning.deletions:
        one.partition.remove(one.folder, patience=BUSY_SECONDS)
    return sum(one.n_bytes for one in pruning.deletions)


def needed_versions(lake: Lake) -> set[str]:
    """Names of the versions that are needed: stage, partition and version."""
    line = []
    for partition in lake.partitions():
        with contextlib.suppress(LcError):
            current = partition.current()
            line += [] if current is None else [current, *lake.inputs_of(current)]
    for name in pinned_versions(lake):
        stage, key, version = name.split("/")
        published = lake.partition(stage, key).finished(version)
        line += [] if published is None else [published]
    needed: set[str] = set()
    for published in line:
        name = f"{published.name}/{published.version}"
        if name not in needed:
            needed.add(name)
            with contextlib.suppress(LcError):  # versions already deleted need no protection
                line += sources_of(lake, published)
    return needed


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
