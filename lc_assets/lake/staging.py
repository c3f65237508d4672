"""Publishing a version: lock the partition, remove own leftovers, write, write the receipt, point.

Everything that publishes goes through `publication`: the stages of a lake, and the verbs of the
command line, whose output folder is a lake of one partition. Until the last step readers see the
previous version. A rerun after a kill finds the finished shards of the same version
(`lc_assets.builds.shard_runs`) and continues. Only files and folders with this package's own names
are ever deleted.
"""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lc_assets.errors import LcError
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.lake.receipts import AHEAD, SCRATCH, Receipt
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.publishing import (
    BUSY_SECONDS,
    flush,
    make_folder,
    publish_linked,
    remove_staging_files,
    wait_for_lock,
)
from lc_assets.records import frozen

if TYPE_CHECKING:
    from lc_assets.lake.partition import Partition


LOCK = ".lock"


@contextlib.contextmanager
def locked(
    folder: Path, *, shared: bool = False, name: str = LOCK, what: str = ""
) -> Iterator[None]:
    """Hold a lock on a folder, which is made when it is missing. Holders of a shared lock exclude
    only those of an exclusive one: of a lake, builds share the lock, and a release or a prune
    excludes all others. Where the file system has no locks, no one is excluded.

    Args:
        folder: a lake, a partition, or another folder that a command writes into.
        shared: whether others may share it.
        name: of the lock's file.
        what: name of the locked thing, for the message; by default the folder.

    Raises:
        Busy: when others hold it for longer than `BUSY_SECONDS`.
        StorageFull: when the disk is full.
        NotWritable: when the folder cannot be written to.
    """
    with os_errors_as_lc_errors(folder):
        make_folder(folder)
        file = (folder / name).open("a")
    with file:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        wait_for_lock(file, kind, what or folder, seconds=BUSY_SECONDS)
        yield


@frozen
class Publication:
    """A version between the start of its build and its publication.

    Attributes:
        partition: where it belongs.
        version: its name.
        before: the partition's `Partition.state` when the build began.
        finished: the version, when an earlier run has finished it and no file of it is lost.
    """

    partition: "Partition"
    version: str
    before: str
    finished: Published | None

    @property
    def folder(self) -> Path:
        """The staging folder: the version's own folder, which is ignored until it has a receipt."""
        return self.partition.folder / self.version

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield the staging folder; remove files that killed writers left, before and after."""
        make_folder(self.folder)
        remove_staging_files(self.folder)
        yield self.folder
        remove_staging_files(self.folder)

    def reject(self) -> Path:
        """Keep the written files for inspection, unpublished; return their folder."""
        rejected = self.partition.rejected_folder(self.version)
        shutil.rmtree(rejected, ignore_errors=True)
        self.folder.rename(rejected)
        shutil.rmtree(self.partition.folder / AHEAD, ignore_errors=True)
        return rejected

    def publish(self, receipt: Receipt) -> Published:
        """Write the receipt, which finishes the version, and set the pointer to it."""
        published = write_receipt(self.folder, receipt)
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
        shutil.rmtree(self.partition.folder / AHEAD, ignore_errors=True)
        self.partition.point_at(published, after=self.before)
        return published

    def republish(self, finished: Published) -> Published:
        """Set the pointer to a version that was finished before, unless it is already set."""
        # The run that wrote the receipt may have been killed right after it.
        shutil.rmtree(finished.home / SCRATCH, ignore_errors=True)
        current = None
        with contextlib.suppress(LcError):  # a damaged pointer is written again
            current = self.partition.current()
        if current is None or current.home != finished.home:
            self.partition.point_at(finished, after=self.before)
        return finished

    def adopt(self, published: Published) -> Published:
        """Publish this version as another lake has it: its files under a second name (hard links,
        or copies where none can be made), with the same receipt.
        """
        source = published.folder
        with self.writing() as folder:
            for fact in published.receipt.files:
                make_folder((folder / fact.path).parent)
                publish_linked(source / fact.path, folder / fact.path)
            flush(folder)
        return self.publish(published.receipt)


@contextlib.contextmanager
def publication(partition: "Partition", version: str) -> Iterator[Publication]:
    """Begin to publish a version, with its partition locked, and its lake against prunes.

    Raises:
        Busy: when another run has been building this partition, or pruning the lake, for longer
            than `BUSY_SECONDS`.
        StorageFull: when the disk is full.
        NotWritable: when the lake cannot be written to.
    """
    with os_errors_as_lc_errors(partition.folder):
        make_folder(partition.folder)
    with (
        locked(partition.folder.parents[1], shared=True),
        locked(partition.folder, what=partition.name),
    ):
        remove_staging_files(partition.folder, below=False)
        finished = partition.finished(version)
        lost = finished.lost_files() if finished else ()
        for path in lost:
            (partition.folder / version / path).unlink(missing_ok=True)
        yield Publication(partition, version, partition.state(), None if lost else finished)


def adopt(published: Published, partition: "Partition") -> Published:
    """Publish a version of another lake in this one, see `Publication.adopt`.

    Raises:
        Busy, StorageFull, NotWritable: see `publication`.
    """
    with publication(partition, published.version) as publishing:
        if publishing.finished is not None:
            return publishing.republish(publishing.finished)
        return publishing.adopt(published)
