"""Partitions: the versions of one partition of a stage, and the pointer to the published one."""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import msgspec

from lc_assets.errors import Busy, CorruptFile, LcError, NotPublished
from lc_assets.lake.digests import short
from lc_assets.lake.receipts import RECEIPT, SCRATCH, decode_json, encode_json
from lc_assets.lake.staging import locked
from lc_assets.lake.versions import (
    Published,
    VersionFiles,
    read_summary,
    version_named,
)
from lc_assets.publishing import publish_bytes, remove_staging_files, staging_path
from lc_assets.records import frozen

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake

CURRENT = "current.json"


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``current.json``."""

    version: str
    digest: str


class Kept(NamedTuple):
    """A folder of a partition: a version, or what a build left behind.

    Attributes:
        n_bytes: its size.
        finished: when its receipt was written, in seconds since 1970; None without a receipt.
    """

    n_bytes: int
    finished: float | None


class View(Protocol):
    """Determines which versions readers of a lake see as published."""

    def current(self, partition: "Partition") -> Published | None:
        """The version to read; None when there is none."""
        ...

    def pointer(self, partition: "Partition") -> Current | None:
        """The same as a pointer, without opening the version."""
        ...

    def keys(self, lake: "Lake", stage: str) -> list[str]:
        """Keys of the stage's partitions, sorted."""
        ...


@frozen
class Partition:
    """The versions of one partition of one stage.

    Attributes:
        folder: folder of the versions; for a lake in a bucket, where they are built and copied to.
        view: determines which version is published; None uses the pointer.
    """

    folder: Path
    view: View | None = field(default=None, kw_only=True, compare=False)

    @property
    def name(self) -> str:
        """``filtered_documents/2023-06``."""
        return f"{self.stage}/{self.folder.name}"

    @property
    def stage(self) -> str:
        """Name of the stage."""
        return self.folder.parent.name

    @property
    def unviewed(self) -> Self:
        """The same partition with the published version of its pointer, without a view."""
        return replace(self, view=None)

    def where(self, path: str) -> str:
        """Location of a file of the partition, for messages."""
        return str(self.folder / path)

    def current(self) -> Published | None:
        """The published version, or None when nothing is published.

        Raises:
            NotPublished: when the version that the pointer names is missing or incomplete.
            CorruptFile: when pointer or receipt cannot be read, or contradict each other.
        """
        return self.view.current(self) if self.view else self._pointed_at(self.at)

    def current_summary(self) -> Published | None:
        """The published version with only the summary of its receipt, without counts and files,
        whose list may be long; summaries stay in memory.

        Raises:
            NotPublished: see `current`.
            CorruptFile: see `current`.
        """
        return self.view.current(self) if self.view else self._pointed_at(self._summary)

    def _summary(self, version: str) -> Published:
        return Published(self.folder / version, read_summary(self.folder / version / RECEIPT))

    def _pointed_at(self, opened: Callable[[str], Published]) -> Published | None:
        pointer = self._read_pointer()
        if pointer is None:
            return None
        version = version_named(pointer.version, self.where(CURRENT))
        published = self._matching(opened, version, pointer.digest)
        if published.digest != pointer.digest:
            raise CorruptFile(
                f"{self.where(CURRENT)}: names digest {short(pointer.digest)}, version {version} "
                f"has {short(published.digest)}: materialize the partition again"
            )
        return published

    def _matching(
        self,
        opened: Callable[[str], Published],
        version: str,
        digest: str,  # noqa: ARG002 - a copy of a bucket's version may have another one
    ) -> Published:
        return opened(version)

    def pointer(self) -> Current | None:
        """The name and digest of the published version, which is not opened; None when nothing is
        published.

        Raises:
            CorruptFile: when it cannot be read.
        """
        return self.view.pointer(self) if self.view else self._read_pointer()

    def _read_pointer(self) -> Current | None:
        path = self.folder / CURRENT
        return decode_json(path, Current) if path.is_file() else None

    def require(self) -> Published:
        """The published version.

        Raises:
            NotPublished: when there is none; names the partition.
        """
        published = self.current()
        if published is None:
            raise NotPublished(
                f"{self.name} is not published (no {self.where(CURRENT)}): materialize it; `lc "
                "plan` shows what is missing"
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
        """The version of this name if it was finished earlier, published now or not; None also when
        its receipt is damaged.
        """
        with contextlib.suppress(NotPublished, CorruptFile):
            return self.at(version)
        return None

    def with_digest(self, digest: str) -> Published | None:
        """The finished version that holds exactly these bytes: the current one or an older one."""
        return next(
            (published for published in self.versions() if published.digest == digest), None
        )

    def versions(self) -> Iterator[Published]:
        """Every finished version, the current one first; those with a damaged receipt are left
        out.
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
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{RECEIPT}"))

    def folders(self) -> dict[str, Kept]:
        """Every folder of the partition by name, sorted: versions and what builds left behind."""
        return {
            path.name: Kept(sum(VersionFiles().sizes(path).values()), _written(path / RECEIPT))
            for path in sorted(path for path in self.folder.glob("[!.]*") if path.is_dir())
        }

    def rejected_folder(self, version: str) -> Path:
        """Folder for a version that failed its checks."""
        return self.folder / f"rejected-{version}"

    def remove(self, name: str) -> None:
        """Remove a folder. It is renamed first, so that it stops being a version at once, and what
        a killed run leaves of it is recognized.

        Args:
            name: of the folder.

        Raises:
            Busy: when it is published, or a run is building this partition.
            NotWritable: when it cannot be removed.
        """
        with locked(self.folder, what=self.name):
            self._require_unpublished(name)
            going = (self.folder / name).rename(staging_path(self.folder / name))
            shutil.rmtree(going)

    def remove_damaged(self, published: Published, *, verify: bool) -> list[str]:
        """Remove the `Published.damaged_files` of a version, so that a build makes them again;
        return their paths. Of a whole version, remove what a killed repair left.

        Raises:
            Busy: when a run is building this partition, or a release or a prune is running.
        """
        with (
            locked(self.folder.parents[1], shared=True),
            locked(self.folder, what=self.name),
        ):
            damaged = published.damaged_files(verify=verify)
            if damaged:
                self._remove_files(published, damaged)
            else:
                shutil.rmtree(published.home / SCRATCH, ignore_errors=True)
                remove_staging_files(published.home)
                remove_staging_files(self.folder, below=False)  # of the pointer
            return damaged

    def _remove_files(self, published: Published, paths: Sequence[str]) -> None:
        for path in paths:
            (published.home / path).unlink(missing_ok=True)

    def _require_unpublished(self, name: str) -> None:
        pointer = self._read_pointer()
        if pointer is not None and pointer.version == name:
            raise Busy(f"{self.name}/{name} has been published in the meantime; run this again")

    def state(self) -> str:
        """What `point_at` compares with; "" in a folder, where the build's lock suffices."""
        return ""

    def point_at(self, published: Published, *, after: str = "") -> None:  # noqa: ARG002
        """Make ``published`` the current version; only this step is visible to readers.

        Args:
            published: a finished version.
            after: the `state` before the build.

        Raises:
            Busy: when something else has been published since.
        """
        publish_bytes(self.folder / CURRENT, pointer_to(published))


def pointer_to(published: Published) -> bytes:
    """Content of the pointer that names a version."""
    return encode_json(Current(version=published.version, digest=published.digest))


def _written(path: Path) -> float | None:
    return path.stat().st_mtime if path.is_file() else None
