"""The lake: one folder per stage, one place per partition, one immutable folder per version of it.

::

    {root}/{stage}/{key}/current.json             which version is published: the commit point
    {root}/{stage}/{key}/{version}/...            the files of one version
    {root}/{stage}/{key}/{version}/receipt.json   written when everything else is: the version is whole

A version's name is the digest of everything that determines its bytes: stage, key, code version,
parameters and the digests of its inputs. So a rerun of the same work finds its own half-finished
folder and goes on there, two runs of the same work write the same bytes to the same files, a reader
that has a version open keeps it while a newer one is published, and a path that names a version
means the same bytes for ever (docs/decisions/0001).

A receipt's ``digest`` covers the published files only: it is the asset's Dagster data version, and
a rebuild that gives the same bytes makes nothing downstream stale.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import filelock
import msgspec

from lc_assets.errors import BadInput, Busy, CorruptFile, LcError, NotPublished
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.lake.digests import short
from lc_assets.lake.receipts import RECEIPT, decode_json, encode_json
from lc_assets.lake.versions import (
    FilesAtHand,
    Published,
    finished_at,
    folder_named,
    read_summary,
    version_named,
)
from lc_assets.publishing import publish_bytes

CURRENT: Final = "current.json"
GLOBAL: Final = "all"
"""The key of stages that have no partitions."""


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``current.json``."""

    version: str
    digest: str


class Kept(NamedTuple):
    """A folder of a place: a version, or what a build left: its size, and when its receipt was
    written, None without one.
    """

    n_bytes: int
    finished: float | None


@dataclass(frozen=True, slots=True)
class Partition:
    """Where the versions of one partition of one stage live."""

    folder: Path

    @property
    def name(self) -> str:
        """``filtered_documents/2023-06``."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    def current(self) -> Published | None:
        """The published version, or None when nothing is published here.

        Raises:
            NotPublished: when the version that is named is not there, or not whole.
            CorruptFile: when pointer or receipt cannot be read, or contradict each other.
        """
        return self._pointed_at(self.at)

    def current_summary(self) -> Published | None:
        """The same by the head of its receipt, without counts and files, whose list may be long;
        heads are kept in memory.

        Raises:
            NotPublished: see `current`.
            CorruptFile: see `current`.
        """
        return self._pointed_at(
            lambda version: Published(
                self.folder / version, read_summary(self.folder / version / RECEIPT)
            )
        )

    def _pointed_at(self, opened: Callable[[str], Published]) -> Published | None:
        path, said = self.folder / CURRENT, self.pointer()
        if said is None:
            return None
        published = opened(version_named(said.version, path))
        if published.digest != said.digest:
            raise CorruptFile(
                f"{path}: names digest {short(said.digest)}, version {said.version} has "
                f"{short(published.digest)}"
            )
        return published

    def pointer(self) -> Current | None:
        """What is named as published, without a look at it; None when nothing is.

        Raises:
            CorruptFile: when it cannot be read.
        """
        path = self.folder / CURRENT
        return decode_json(path, Current) if path.is_file() else None

    def require(self) -> Published:
        """The published version.

        Raises:
            NotPublished: when there is none; says which place was looked at.
        """
        published = self.current()
        if published is None:
            raise NotPublished(
                f"{self.name} is not published (no {self.folder / CURRENT}): materialize it; `lc "
                "plan` says what is missing"
            )
        return published

    def at(self, version: str) -> Published:
        """The finished version of this name, published now or not.

        Raises:
            NotPublished: when there is none.
            CorruptFile: when its receipt cannot be read.
        """
        return Published.at(self.folder / version)

    def finished(self, version: str) -> Published | None:
        """The version of this name when it was finished earlier, published now or not; one whose
        receipt is damaged was not.
        """
        return finished_at(self.folder / version)

    def with_digest(self, digest: str) -> Published | None:
        """The finished version that holds these very bytes: the current one, or an older one."""
        return next(
            (published for published in self.versions() if published.digest == digest), None
        )

    def versions(self) -> Iterator[Published]:
        """Every finished version, the current one first; those whose receipt is damaged are passed
        over.
        """
        current = None
        with contextlib.suppress(LcError):
            current = self.current()
        if current is not None:
            yield current
        found = (
            self.finished(name)
            for name in self.version_names()
            if current is None or name != current.version
        )
        yield from (published for published in found if published is not None)

    def version_names(self) -> list[str]:
        """Names of the finished versions, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/{RECEIPT}"))

    def folders(self) -> dict[str, Kept]:
        """Every folder that lies here by its name, sorted: finished versions, and what builds
        left.
        """
        folders = sorted(path for path in self.folder.glob("[!.]*") if path.is_dir())
        return {
            path.name: Kept(sum(FilesAtHand().sizes(path).values()), _written(path / RECEIPT))
            for path in folders
        }

    def remove(self, name: str, *, patience: float) -> None:
        """Remove a folder, which stops being a version before its files go.

        Args:
            name: of the folder.
            patience: seconds to wait for a build of this partition.

        Raises:
            Busy: when it is published, or a run is building this partition.
            NotWritable: when it cannot be removed.
        """
        with os_errors_as_lc_errors(self.folder):
            try:
                with filelock.FileLock(self.folder / ".lock", timeout=patience):
                    self._require_unpublished(name)
                    (self.folder / name / RECEIPT).unlink(missing_ok=True)
                    shutil.rmtree(self.folder / name)
            except filelock.Timeout as error:
                raise Busy(
                    f"a run is building {self.name}; wait for it and run this again"
                ) from error

    def _require_unpublished(self, name: str) -> None:
        said = self.pointer()
        if said is not None and said.version == name:
            raise Busy(f"{self.name}/{name} has been published meanwhile; run this again")

    def state(self) -> int:
        """What stands here now, to be handed to `point_at`; in a folder the lock of a build says
        enough.
        """
        return 0

    # For places that no lock reaches.
    def point_at(self, published: Published, *, after: int = 0) -> None:  # noqa: ARG002
        """Make ``published`` the current version: the one step that readers notice.

        Args:
            published: a finished version.
            after: the `state` that it follows upon.

        Raises:
            Busy: when something else has been published since, which a folder's lock does not let
                happen.
        """
        publish_bytes(
            self.folder / CURRENT,
            encode_json(Current(version=published.version, digest=published.digest)),
        )


@dataclass(frozen=True, slots=True)
class Lake:
    """The root folder of everything that is published."""

    root: Path

    @property
    def url(self) -> str:
        """Where it lies, for people and for loaders: a folder's path, or a bucket's URL."""
        return str(self.root)

    def partition(self, stage: str, key: str = GLOBAL) -> Partition:
        """Where the versions of ``stage/key`` live; nothing is created.

        Raises:
            BadInput: when a name leads elsewhere.
        """
        return Partition(self.root / folder_named(stage) / folder_named(key))

    def published(self, stage: str) -> dict[str, Published]:
        """Every published partition of a stage by key, sorted by key."""
        return {key: self.partition(stage, key).require() for key in self.keys(stage)}

    def version_of(self, path: str) -> Published:
        """The version that a file is of.

        Args:
            path: relative to the root, such as ``megatron_rows/2023-06/{version}/train``.

        Raises:
            NotPublished: when there is no such version.
            BadInput: when it is no such path.
        """
        stage, key, version = (*path.split("/"), "", "")[:3]
        return self.partition(stage, key).at(version_named(version, path))

    def keys(self, stage: str) -> list[str]:
        """Keys of a stage's published partitions, sorted."""
        return sorted(path.parent.name for path in (self.root / stage).glob(f"*/{CURRENT}"))

    def partitions(self) -> Iterator[Partition]:
        """Every partition in which something lies, published or not, whichever stage it is of."""
        folders = sorted(path for path in self.root.glob("[!.]*/[!.]*") if path.is_dir())
        yield from (self.partition(path.parent.name, path.name) for path in folders)

    def note(self, path: str) -> bytes | None:
        """A small file of the lake's own, such as a release; None when there is none."""
        place = self.root / path
        return place.read_bytes() if place.is_file() else None

    def notes(self, folder: str) -> list[str]:
        """Names of the small files below a folder, sorted."""
        return sorted(path.name for path in (self.root / folder).glob("[!.]*") if path.is_file())

    def publish_note(self, path: str, content: bytes) -> None:
        """Publish a small file that none may ever write over.

        Raises:
            BadInput: when it is there, with another content.
        """
        place = self.root / path
        with os_errors_as_lc_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(place.parent / ".lock"):
                found = self.note(path)
                if found is None:
                    publish_bytes(place, content)
                elif found != content:
                    raise written_over(place)


def written_over(place: Path | str) -> BadInput:
    """What is said when a note would take the place of another one."""
    return BadInput(
        f"{place}: is there already, with another content, and is never written over; choose "
        "another name"
    )


def _written(path: Path) -> float | None:
    return path.stat().st_mtime if path.is_file() else None
