"""The lake: a folder per stage, in it one per partition, in it one per version, which never
changes.

::

    {root}/{stage}/{key}/current.json             which version is published: the commit point
    {root}/{stage}/{key}/{version}/...            the files of one version
    {root}/{stage}/{key}/{version}/receipt.json   written last: a folder with a receipt is complete

A version's name is the digest of everything that determines its bytes: stage, key, code version,
settings and the digests of its inputs. A rerun of the same work therefore finds its own unfinished
folder and continues there, two runs of the same work write the same bytes to the same files, a
reader that has a version open keeps it while a newer one is published, and a path that names a
version always means the same bytes (docs/decisions.md, 0001).

A receipt's ``digest`` covers the published files only: it is the asset's Dagster data version, and
a rebuild that gives the same bytes makes nothing downstream stale but what names the version or
states how it was made: the global order, mixes and the card.

A lake in a bucket overrides what differs there (`lc_assets.lake.bucket_lake`). A `View` changes
which versions count as published: those of a release (`lc_assets.lake.releases`), or those of one
moment (`memoized`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import msgspec

from lc_assets.errors import BadInput, Busy, LcError, NotPublished
from lc_assets.lake.partition import CURRENT, Current, Partition, View
from lc_assets.lake.staging import LOCK, locked
from lc_assets.lake.versions import Published, folder_named, version_named
from lc_assets.publishing import STAGING_PREFIX, publish_bytes, remove_staging_files
from lc_assets.records import frozen

GLOBAL = "all"
"""The key of stages that have no partitions."""


@frozen
class Lake:
    """The root folder of everything that is published.

    Attributes:
        root: the folder.
        view: determines which versions are published; None uses the pointers.
    """

    root: Path
    view: View | None = field(default=None, kw_only=True, compare=False)

    @property
    def unviewed(self) -> Self:
        """The same lake with the published versions of its pointers, without a view."""
        return replace(self, view=None)

    @property
    def url(self) -> str:
        """Its location: a folder's path, or a bucket's URL."""
        return str(self.root)

    def partition(self, stage: str, key: str = GLOBAL) -> Partition:
        """The partition ``stage/key``; nothing is created.

        Raises:
            BadInput: when a name leads out of the lake.
        """
        return Partition(self.folder_of(stage, key), view=self.view)

    def folder_of(self, stage: str, key: str) -> Path:
        """Folder of a partition on this machine.

        Raises:
            BadInput: when a name leads out of the lake.
        """
        return self.root / folder_named(stage) / folder_named(key)

    def published(self, stage: str) -> dict[str, Published]:
        """Every published partition of a stage by key, sorted by key."""
        return {key: self.partition(stage, key).require() for key in self.keys(stage)}

    def version_of(self, path: str) -> Published:
        """The version that a file belongs to.

        Args:
            path: relative to the root, such as ``megatron_rows/2023-06/{version}/train``.

        Raises:
            NotPublished: when there is no such version.
            BadInput: when the path does not have this form.
        """
        stage, key, version = (*path.split("/"), "", "")[:3]
        return self.partition(stage, key).at(version_named(version, path))

    def inputs_of(
        self, published: Published, stage: str = "", *, known: Collection[str] = ()
    ) -> Iterator[Published]:
        """The versions that a version was made from, of one stage or all, that still exist, but for
        those whose names are ``known``.
        """
        inputs = published.receipt.fingerprint.inputs.items()
        return self.with_digests(
            (name, digest)
            for name, digest in inputs
            if name not in known and name.startswith(f"{stage}/" if stage else "")
        )

    def with_digests(self, inputs: Iterable[tuple[str, str]]) -> Iterator[Published]:
        """The versions that have some digests, each with its partition's name, that still exist."""
        for name, digest in inputs:
            stage, _, key = name.partition("/")
            if key and (found := self.partition(stage, key).with_digest(digest)) is not None:
                yield found

    def require_input(self, published: Published, stage: str) -> Published:
        """The version of a stage that a version was made from.

        Raises:
            NotPublished: when it no longer exists.
        """
        for found in self.inputs_of(published, stage):
            return found
        raise NotPublished(
            f"{published.where}: the version of {stage} that it was made from is gone from the lake"
        )

    def keys(self, stage: str) -> list[str]:
        """Keys of a stage's published partitions, sorted."""
        return self.view.keys(self, stage) if self.view else self._list_keys(stage)

    def _list_keys(self, stage: str) -> list[str]:
        return sorted(path.parent.name for path in (self.root / stage).glob(f"*/{CURRENT}"))

    def partitions(self) -> Iterator[Partition]:
        """Every partition of every stage that has any folder, published or not."""
        folders = sorted(path for path in self.root.glob("[!.]*/[!.]*") if path.is_dir())
        yield from (self.partition(path.parent.name, path.name) for path in folders)

    def note(self, path: str) -> bytes | None:
        """A small file of the lake itself, such as a release; None when there is none."""
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def notes(self, folder: str) -> list[str]:
        """Names of the small files in a folder, sorted."""
        return sorted(path.name for path in (self.root / folder).glob("[!.]*") if path.is_file())

    def publish_note(self, path: str, content: bytes) -> None:
        """Publish a small file that must never be overwritten.

        Raises:
            BadInput: when it exists with other content.
        """
        file = self.root / path
        with locked(file.parent, what=path):
            found = self.note(path)
            require_same_note(found, content, file)
            remove_staging_files(file.parent, below=False)
            if found is None:
                publish_bytes(file, content)

    def replace_note(
        self, path: str, content: bytes, *, require: Callable[[], None] = lambda: None
    ) -> None:
        """Publish a small file, replacing an existing one.

        Args:
            path: below the root.
            content: of the file.
            require: called first, while no one relies on the present content; raises an error when
                it must not be replaced.

        Raises:
            Busy: while commands rely on its present content, see `holding_note`.
        """
        with locked(self.root, name=f".{path}{LOCK}"):
            require()
            self._write_note(path, content)

    def _write_note(self, path: str, content: bytes) -> None:
        for leftover in self.root.glob(f"{STAGING_PREFIX}????????-{path}"):  # of a killed command
            leftover.unlink()
        publish_bytes(self.root / path, content)

    @contextlib.contextmanager
    def holding_note(
        self, path: str, content: bytes | None, *, require: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Publish a small file, and let no one else replace it while the block runs. In a bucket
        this excludes the commands of this machine.

        Args:
            path: below the root.
            content: None when there must be no file.
            require: see `replace_note`.

        Raises:
            Busy: while commands rely on another content.
        """
        while True:
            with locked(self.root, shared=True, name=f".{path}{LOCK}"):
                if self.note(path) == content:
                    yield
                    return
            if content is None:
                raise Busy(f"{self.url}: another command has written {path}; run this again")
            self.replace_note(path, content, require=require)


def require_same_note(found: bytes | None, content: bytes, where: Path | str) -> None:
    """Refuse to replace a note by another one.

    Raises:
        BadInput: when there is a note with other content.
    """
    if found is not None and found != content:
        raise BadInput(
            f"{where}: exists already with other content and is never overwritten; choose another "
            "name"
        )


@dataclass(slots=True, eq=False)
class _Memo:
    """Remembers each pointer and receipt summary after the first read."""

    under: View | None
    found: dict[str, Published | LcError | None] = field(default_factory=dict)
    keys_of: dict[str, list[str]] = field(default_factory=dict)

    def current(self, partition: Partition) -> Published | None:
        if partition.name not in self.found:
            try:
                self.found[partition.name] = replace(partition, view=self.under).current_summary()
            except LcError as error:
                self.found[partition.name] = error
        found = self.found[partition.name]
        if isinstance(found, LcError):
            raise type(found)(*found.args)  # a raised exception grows by a traceback each time
        return found

    def pointer(self, partition: Partition) -> Current | None:
        return replace(partition, view=self.under).pointer()

    def keys(self, lake: Lake, stage: str) -> list[str]:
        if stage not in self.keys_of:
            self.keys_of[stage] = replace(lake, view=self.under).keys(stage)
        return self.keys_of[stage]

    def assume(self, lake: Lake, published: Published) -> None:
        keys = {*self.keys(lake, published.stage), published.key}
        self.keys_of[published.stage] = sorted(keys)
        summary = msgspec.structs.replace(published.receipt, files=[])
        self.found[published.name] = replace(published, receipt=summary)


def memoized(lake: Lake) -> Lake:
    """The lake as of one moment, for one plan: every pointer is read once, every receipt as a
    summary.

    A planner looks up the same input once for every partition that reads it, 84 times and more.
    """
    return replace(lake, view=_Memo(lake.view))


def assume(memo: Lake, published: Published) -> None:
    """Let a `memoized` lake have a version of another lake as its current one."""
    if isinstance(memo.view, _Memo):
        memo.view.assume(memo, published)


def version_in(lakes: Iterable[Lake], stage: str, key: str, version: str) -> Published | None:
    """A finished version of a partition in the first of some lakes that has all its files."""
    found = (lake.partition(stage, key).finished(version) for lake in lakes)
    return next((one for one in found if one is not None and not one.lost_files()), None)
