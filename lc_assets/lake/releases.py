"""Releases: a name that means the same bytes for ever.

``releases/{name}.json`` pins versions of what is served (the global order, the grids it is over,
mixes, Megatron's files) by their names and digests. It is published once and never written over;
the versions it pins are never changed, because no version is (docs/decisions/0001), and `lc prune`
leaves them. What is pinned is read through a `PinnedLake`: a lake in which the pinned versions are
the published ones.

Here: the file, and reading by it. Not here: what belongs into a release
    (`lc_assets.stages.releases.releasing`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lc_assets.errors import UNDECODABLE, CorruptFile, Mismatch, NotPublished
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL, Current, Kept, Lake, Partition
from lc_assets.lake.receipts import encode_json, has_valid_checksum, with_checksum
from lc_assets.lake.versions import Published, version_named
from lc_assets.vocabulary import parse_snapshot

FOLDER: Final = "releases"
SUFFIX: Final = ".json"
GONE: Final = ".gone-"
"""In the names of the notes that stand beside a release of which versions were removed:
``{name}.gone-{digest}.json``.
"""


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One version: name of its folder, and the digest of its files."""

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
        pins: what is served, by name such as ``token_grid/2023-06``.
        made: how that was made, and what it was made of up to the manifests, as far as receipts
            still say so.
        settings: all settings, by a short digest.
        libraries: all sets of libraries, by a short digest.
        counts: documents, rows and tokens.
        seal: digest of all the rest; "" in releases from before there were seals.
    """

    pins: dict[str, Pin]
    made: dict[str, Made] = {}
    settings: dict[str, dict[str, Any]] = {}
    libraries: dict[str, dict[str, str]] = {}
    counts: dict[str, int] = {}
    checksum: str = ""


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed of a release.

    Attributes:
        versions: names of the removed versions, such as ``token_grid/2023-06/3fa9c1d20b77``.
        reason: why, in words.
    """

    versions: list[str]
    reason: str


def publish_release(lake: Lake, name: str, release: Release) -> None:
    """Publish a release under a name.

    Raises:
        BadInput: when the name cannot be a file's, or there is another release of this name.
    """
    found = lake.note(note_of(name))
    if found is None or with_checksum(decode_release(found, where=lake.url)) != with_checksum(
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
        NotPublished: when there is none of this name; lists those there are.
        CorruptFile: when it cannot be read.
    """
    content = lake.note(note_of(name))
    if content is None:
        raise NotPublished(
            f"no release {name!r} in {lake.url}: there are "
            f"{', '.join(release_names(lake)) or 'none'}"
        )
    return decode_release(content, where=f"{lake.url}/{note_of(name)}")


def note_damage(lake: Lake, name: str) -> list[str]:
    """Say, one sentence each, which of a release's own files are not what was written: it, and the
    notes of what is gone.

    Raises:
        NotPublished: when there is no release of this name.
        CorruptFile: when one cannot be read.
    """
    content, release = lake.note(note_of(name)), read_release(lake, name)
    wrong = [] if content is not None and has_valid_checksum(content, release) else [note_of(name)]
    digests = {
        note_of(name, f"{GONE}{short(digest_of(gone))}").rpartition("/")[2]
        for gone in gone_of(lake, name)
    }
    wrong += [
        f"{FOLDER}/{path}" for path in sorted(_notes_of_gone(lake, name)) if path not in digests
    ]
    return [f"{path}: its content is not what was written" for path in wrong]


def decode_release(content: bytes, *, where: str) -> Release:
    """A release's file as a value.

    Raises:
        CorruptFile: when it is none.
    """
    try:
        return msgspec.json.decode(content, type=Release)
    except UNDECODABLE as error:
        raise CorruptFile(f"{where}: not a readable release: {error}") from error


def publish_gone(lake: Lake, name: str, gone: Gone) -> None:
    """Note, beside a release, that versions of it are removed."""
    lake.publish_note(note_of(name, f"{GONE}{short(digest_of(gone))}"), encode_json(gone))


def gone_of(lake: Lake, name: str) -> list[Gone]:
    """What was removed of a release; nothing when it is whole.

    Raises:
        CorruptFile: when a note cannot be read.
    """
    notes = {path: lake.note(f"{FOLDER}/{path}") for path in _notes_of_gone(lake, name)}
    try:
        return [
            msgspec.json.decode(content, type=Gone)
            for content in notes.values()
            if content is not None
        ]
    except UNDECODABLE as error:
        raise CorruptFile(
            f"{lake.url}/{FOLDER}: a note of what is gone of {name} cannot be read: {error}"
        ) from error


def _notes_of_gone(lake: Lake, name: str) -> list[str]:
    begins = f"{parse_snapshot(name)}{GONE}"
    return [path for path in lake.notes(FOLDER) if path.startswith(begins)]


@dataclass(frozen=True, slots=True)
class PinnedLake(Lake):
    """A lake in which some versions are the published ones; of stages without any pin, whatever is
    published now.

    Attributes:
        lake: the lake itself.
        pins: versions by name, such as ``token_grid/2023-06``.
        named: whose pins these are, for errors.
        gone: what is known to be missing of them, and why.
    """

    lake: Lake
    pins: Mapping[str, Pin] = field(default_factory=dict)
    named: str = ""
    gone: Sequence[Gone] = ()

    @classmethod
    def at(cls, lake: Lake, name: str) -> "PinnedLake":
        """A lake as a release has it.

        Raises:
            NotPublished: when there is no such release.
            CorruptFile: when it cannot be read.
        """
        release = read_release(lake, name)
        return cls(lake.root, lake, release.pins, f"release {name}", gone_of(lake, name))

    @property
    def url(self) -> str:
        """Where the lake lies."""
        return self.lake.url

    def partition(self, stage: str, key: str = GLOBAL) -> Partition:
        """Where the versions of ``stage/key`` live; what is published there is what is pinned."""
        partition = self.lake.partition(stage, key)
        return (
            PinnedPartition(partition.folder, partition, self, f"{stage}/{key}")
            if self._is_pinned(stage)
            else partition
        )

    def keys(self, stage: str) -> list[str]:
        """Keys of a stage's pinned partitions, sorted."""
        if not self._is_pinned(stage):
            return self.lake.keys(stage)
        return sorted(
            key for pinned, _, key in (name.partition("/") for name in self.pins) if pinned == stage
        )

    def _is_pinned(self, stage: str) -> bool:
        return any(name.startswith(f"{stage}/") for name in self.pins)

    def partitions(self) -> Iterator[Partition]:
        """See `Lake.partitions`."""
        return self.lake.partitions()

    def note(self, path: str) -> bytes | None:
        """See `Lake.note`."""
        return self.lake.note(path)

    def notes(self, folder: str) -> list[str]:
        """See `Lake.notes`."""
        return self.lake.notes(folder)


@dataclass(frozen=True, slots=True)
class PinnedPartition(Partition):
    """A place whose published version is the pinned one; None where the stage is pinned, but not
    this partition.
    """

    partition: Partition
    pinned_by: PinnedLake
    wanted: str

    def current(self) -> Published | None:
        """The pinned version.

        Raises:
            NotPublished: when it is gone; says why when that is known.
            Mismatch: when what stands there has another digest.
        """
        pin = self.pinned_by.pins.get(self.wanted)
        if pin is None:
            return None
        found = self.partition.finished(pin.version)
        if found is None:
            why = "".join(
                f": {gone.reason}"
                for gone in self.pinned_by.gone
                if f"{self.wanted}/{pin.version}" in gone.versions
            )
            raise NotPublished(
                f"{self.pinned_by.named} pins {self.wanted}/{pin.version}, which is gone{why}"
            )
        if found.digest != pin.digest:
            raise Mismatch(
                f"{self.pinned_by.named} pins {self.wanted}/{pin.version} with digest "
                f"{short(pin.digest)}, it has {short(found.digest)}"
            )
        return found

    def current_summary(self) -> Published | None:
        """See `Partition.current_summary`; here it is `current`."""
        return self.current()

    def pointer(self) -> Current | None:
        """The pinned version, as a pointer would name it."""
        pin = self.pinned_by.pins.get(self.wanted)
        return None if pin is None else Current(version=pin.version, digest=pin.digest)

    def at(self, version: str) -> Published:
        """See `Partition.at`."""
        return self.partition.at(version)

    def finished(self, version: str) -> Published | None:
        """See `Partition.finished`."""
        return self.partition.finished(version)

    def version_names(self) -> list[str]:
        """See `Partition.version_names`."""
        return self.partition.version_names()

    def folders(self) -> dict[str, Kept]:
        """See `Partition.folders`."""
        return self.partition.folders()


def note_of(name: str, beside: str = "") -> str:
    """Where a release's file lies below the lake's root, or one ``beside`` it.

    Raises:
        BadInput: when the name cannot be a file's.
    """
    return f"{FOLDER}/{parse_snapshot(name)}{beside}{SUFFIX}"
