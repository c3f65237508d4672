"""Releases: names that always mean the same bytes.

``releases/{name}.json`` pins versions of what is served (the global order, the grids it is over,
mixes, Megatron's files) by their names and digests. It is published once and never overwritten;
the versions it pins never change, because no version does (docs/decisions.md, 0001), and `lc prune`
keeps them. A release is read through a `pinned_lake`, in which the pinned versions are the
published ones.

What belongs in a release is decided by `lc_assets.stages.releases.releasing`.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from lc_assets.errors import Mismatch, NotPublished
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import Current, Partition
from lc_assets.lake.receipts import decode_bytes, encode_json, has_valid_checksum, with_checksum
from lc_assets.lake.versions import Published, version_named
from lc_assets.records import frozen
from lc_assets.vocabulary import parse_snapshot

FOLDER = "releases"
SUFFIX = ".json"
GONE = ".gone-"
"""In the names of notes beside a release whose versions were removed:
``{name}.gone-{digest}.json``.
"""


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One version: the name of its folder and the digest of its files."""

    version: str
    digest: str

    def __post_init__(self) -> None:
        version_named(self.version, "a pin")


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How one version was made.

    Attributes:
        version: its name.
        digest: of its files.
        code_version: of its stage.
        settings: which of the release's ``settings``.
        libraries: which of the release's ``libraries``.
    """

    version: str
    digest: str
    code_version: str
    settings: str
    libraries: str


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a release's file.

    Attributes:
        pins: the released versions, by name such as ``token_grid/2023-06``.
        made: how these and their inputs back to the manifests were built, as far as receipts exist.
        settings: all settings, by a short digest.
        libraries: all sets of libraries, by a short digest.
        counts: documents, rows and tokens.
        checksum: of the file (`lc_assets.lake.receipts.with_checksum`).
    """

    pins: dict[str, Pin]
    made: dict[str, Made] = {}
    settings: dict[str, dict[str, Any]] = {}
    libraries: dict[str, dict[str, str]] = {}
    counts: dict[str, int] = {}
    checksum: str = ""


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed from a release.

    Attributes:
        versions: names of the removed versions, such as ``token_grid/2023-06/3fa9c1d20b77``.
        reason: why they were removed.
    """

    versions: list[str]
    reason: str


def publish_release(lake: Lake, name: str, release: Release) -> None:
    """Publish a release under a name.

    Raises:
        BadInput: when the name cannot be a file's, or another release has it.
    """
    found = lake.note(note_of(name))
    if found is None or with_checksum(decode_bytes(found, Release, lake.url)) != with_checksum(
        release
    ):
        lake.publish_note(note_of(name), encode_json(with_checksum(release)))


def release_names(lake: Lake) -> list[str]:
    """Names of all releases, sorted."""
    names = [name for name in lake.notes(FOLDER) if name.endswith(SUFFIX) and GONE not in name]
    return [name.removesuffix(SUFFIX) for name in names]


def read_release(lake: Lake, name: str) -> Release:
    """Read a release.

    Raises:
        NotPublished: when no release has this name; lists those that exist.
        CorruptFile: when it cannot be read.
    """
    content = lake.note(note_of(name))
    if content is None:
        raise NotPublished(
            f"no release {name!r} in {lake.url}: there are "
            f"{', '.join(release_names(lake)) or 'none'}"
        )
    return decode_bytes(content, Release, f"{lake.url}/{note_of(name)}")


def note_damage(lake: Lake, name: str) -> list[str]:
    """Which of a release's own files (the release and the notes of removed versions) were changed,
    one sentence each.

    Raises:
        NotPublished: when there is no release of this name.
        CorruptFile: when one cannot be read.
    """
    read_release(lake, name)
    content = lake.note(note_of(name))
    wrong = [] if content is not None and has_valid_checksum(content) else [note_of(name)]
    digests = {
        note_of(name, f"{GONE}{short(digest_of(gone))}").rpartition("/")[2]
        for gone in gone_of(lake, name)
    }
    wrong += [
        f"{FOLDER}/{path}" for path in sorted(_notes_of_gone(lake, name)) if path not in digests
    ]
    return [f"{path}: its content is not what was written" for path in wrong]


def publish_gone(lake: Lake, name: str, gone: Gone) -> None:
    """Note beside a release that versions of it are removed."""
    lake.publish_note(note_of(name, f"{GONE}{short(digest_of(gone))}"), encode_json(gone))


def gone_of(lake: Lake, name: str) -> list[Gone]:
    """What was removed from a release.

    Raises:
        CorruptFile: when a note cannot be read.
    """
    notes = ((path, lake.note(f"{FOLDER}/{path}")) for path in _notes_of_gone(lake, name))
    return [
        decode_bytes(
            content, Gone, f"{lake.url}/{FOLDER}/{path}", called="note of removed versions"
        )
        for path, content in notes
        if content is not None
    ]


def _notes_of_gone(lake: Lake, name: str) -> list[str]:
    begins = f"{parse_snapshot(name)}{GONE}"
    return [path for path in lake.notes(FOLDER) if path.startswith(begins)]


@frozen
class Pins:
    """The view of a lake in which some versions are the published ones; of stages without any pin,
    whatever is published now.

    Attributes:
        pins: versions by name, such as ``token_grid/2023-06``.
        owner: name of the owner of the pins, for messages.
        gone: pinned versions known to be removed, and why.
    """

    pins: Mapping[str, Pin]
    owner: str
    gone: Sequence[Gone] = ()

    def keys(self, lake: Lake, stage: str) -> list[str]:
        """See `View.keys`: of the pinned partitions."""
        if not self._is_pinned(stage):
            return lake.unviewed.keys(stage)
        names = (name.partition("/") for name in self.pins)
        return sorted(key for pinned, _, key in names if pinned == stage)

    def pointer(self, partition: Partition) -> Current | None:
        """See `View.pointer`."""
        if not self._is_pinned(partition.stage):
            return partition.unviewed.pointer()
        pin = self.pins.get(partition.name)
        return None if pin is None else Current(version=pin.version, digest=pin.digest)

    def current(self, partition: Partition) -> Published | None:
        """See `View.current`; None where the stage is pinned, but not this partition.

        Raises:
            NotPublished: when the pinned version no longer exists; with the reason when it is
                known.
            CorruptFile: when its receipt is damaged.
            Mismatch: when the version has another digest.
        """
        if not self._is_pinned(partition.stage):
            return partition.unviewed.current()
        pin = self.pins.get(partition.name)
        if pin is None:
            return None
        version = f"{partition.name}/{pin.version}"
        found = partition.finished(pin.version)
        if found is None:
            with contextlib.suppress(NotPublished):
                partition.at(pin.version)
            why = "".join(f": {gone.reason}" for gone in self.gone if version in gone.versions)
            raise NotPublished(f"{self.owner} pins {version}, which is gone{why}")
        if found.digest != pin.digest:
            raise Mismatch(
                f"{self.owner} pins {version} with digest {short(pin.digest)}, it has "
                f"{short(found.digest)}"
            )
        return found

    def _is_pinned(self, stage: str) -> bool:
        return any(name.startswith(f"{stage}/") for name in self.pins)


def pinned_lake(lake: Lake, pins: Mapping[str, Pin], owner: str) -> Lake:
    """A lake in which pinned versions are the published ones; ``owner`` names them in messages."""
    return replace(lake, view=Pins(pins, owner))


def lake_of_release(lake: Lake, name: str) -> Lake:
    """A lake with the versions of a release.

    Raises:
        NotPublished: when there is no such release.
        CorruptFile: when it cannot be read.
    """
    release = read_release(lake, name)
    return replace(lake, view=Pins(release.pins, f"release {name}", gone_of(lake, name)))


def note_of(name: str, beside: str = "") -> str:
    """Path of a release's file below the lake's root, or of one ``beside`` it.

    Raises:
        BadInput: when the name cannot be a file's.
    """
    return f"{FOLDER}/{parse_snapshot(name)}{beside}{SUFFIX}"
