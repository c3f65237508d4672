"""A lake in a bucket: the same partitions and versions, built on this machine, published there.

A version is built in a folder on this machine's disk, as in any lake. When it is finished its files
are uploaded, then its receipt, and last the pointer, on condition that it has not changed since the
build began. So two machines that build the same partition cannot undo each other's work, whatever
their clocks say. Files are fetched when they are read, one by one, compared with the digests of the
receipt, and kept: finished versions never change.

::

    {root}/…                   this machine's copies; may be removed at any time
    gs://bucket/folder/…       the lake, laid out as in a folder (docs/formats/lake.md)

Requests of Google: 2 + 2 for a partition's pointer and receipt, the receipt only the first time;
one listing for a stage's keys; one per file and 5 more for a build. docs/object-stores.md has the
counts of a whole demo.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lc_assets.errors import Busy, CorruptFile, NotPublished
from lc_assets.lake.bucket import GOOGLE, Bucket, Listed, is_in_bucket
from lc_assets.lake.cache import BYTES_VARIABLE, Lease, VersionCache, parse_byte_bound
from lc_assets.lake.digests import FileFact, matching
from lc_assets.lake.lake import GLOBAL, Lake, require_same_note
from lc_assets.lake.partition import CURRENT, Current, Kept, Partition, pointer_to
from lc_assets.lake.receipts import RECEIPT, Receipt, decode_bytes, encode_json
from lc_assets.lake.versions import Published, VersionFiles, damaged_inputs, decode_receipt
from lc_assets.publishing import publish_bytes
from lc_assets.records import frozen

CACHE_VARIABLE = "LC_CACHE"
UPLOAD_SECONDS = 86_400.0
"""Files without a receipt that are newer may belong to a version that is being uploaded."""


def open_lake(
    root: str, *, environment: Mapping[str, str] = os.environ, client: Any = None
) -> Lake:
    """Open a lake by its root.

    Args:
        root: a folder, ``gs://bucket/folder``, ``s3://bucket/folder`` or ``az://container/folder``.
        environment: where ``LC_CACHE`` may name the folder of this machine's copies, and
            ``LC_CACHE_BYTES`` limit them.
        client: of Google's bucket; None makes one from the environment.
    """
    if not is_in_bucket(root):
        return Lake(Path(root))
    copies = Path(environment.get(CACHE_VARIABLE) or Path.home() / ".cache" / "lc_assets")
    cache = VersionCache(copies, parse_byte_bound(environment.get(BYTES_VARIABLE, "")))
    place = root.removeprefix(GOOGLE).replace("://", "/").strip("/")
    return BucketLake(copies / place, Bucket(root, client), cache)


@dataclass(slots=True)
class Copies(VersionFiles):
    """The files of one version in a bucket, copied to this machine when they are needed.

    The copies are in use, and are kept, as long as this object exists: a `Published` keeps its
    files.

    Attributes:
        bucket: the bucket that holds them.
        prefix: prefix of their names in the bucket.
        cache: where the copies are.
        lease: keeps the copies; None before the first use.
    """

    bucket: Bucket
    prefix: str
    cache: VersionCache
    lease: Lease | None = None

    def fetch(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """See `VersionFiles.fetch`; makes room, and compares the copies with the receipt. A damaged
        copy is fetched again.
        """
        lease = self._leased(home)
        files = matching(receipt.files, patterns)
        for damaged in damaged_inputs(
            home, [file for file in files if (home / file.path).is_file()]
        ):
            (home / damaged.path).unlink()
        missing = [fact for fact in files if not (home / fact.path).is_file()]
        if missing:
            self.cache.make_room(sum(fact.n_bytes for fact in missing))
            self.bucket.download(self.prefix, home, missing)
            lease.holds(_bytes_here(home, receipt))

    def uploaded(self, home: Path, receipt: Receipt) -> None:
        """Register files that were built on this machine as copies."""
        self._leased(home).holds(_bytes_here(home, receipt))
        self.cache.make_room(0)

    def _leased(self, home: Path) -> Lease:
        if self.lease is None:
            self.lease = self.cache.lease(home)
        else:
            self.lease.used()
        return self.lease

    def where(self, home: Path) -> str:  # noqa: ARG002 - the bucket counts, not the copy
        """See `VersionFiles.where`."""
        return self.bucket.where(self.prefix)

    def sizes(self, home: Path) -> dict[str, int]:  # noqa: ARG002 - the copies are only a part
        """See `VersionFiles.sizes`; one listing."""
        found = self.bucket.listed(f"{self.prefix}/")
        return {path: listed.n_bytes for path, listed in found.items()}

    def lost(self, home: Path) -> list[str]:  # noqa: ARG002 - see `Published.lost_files`
        """See `VersionFiles.lost`."""
        return []

    def damaged(self, home: Path, receipt: Receipt, *, verify: bool) -> list[str]:
        """See `VersionFiles.damaged`; the receipt too if it is missing."""
        listed = self.bucket.listed(f"{self.prefix}/")
        return [RECEIPT] * (RECEIPT not in listed) + [
            fact.path
            for fact in receipt.files
            if (found := listed.get(fact.path)) is None
            or found.n_bytes != fact.n_bytes
            or (verify and not self._has_bytes(home, receipt, fact, found))
        ]

    def _has_bytes(self, home: Path, receipt: Receipt, fact: FileFact, found: Listed) -> bool:
        """Whether an object has the content of the file in the receipt: by the service's checksum
        and a copy, which is fetched, or by reading the object.
        """
        if not found.crc32c:
            return self.bucket.sha256(f"{self.prefix}/{fact.path}") == fact.sha256
        from lc_assets.lake.google_storage import crc32c

        with contextlib.suppress(CorruptFile):
            self.fetch(home, receipt, [fact.path])
            return found.crc32c == crc32c(home / fact.path)
        return False

    def damage(self, home: Path, receipt: Receipt) -> list[str]:
        """See `VersionFiles.damage`: compares the service's checksums, by one listing, with those
        of the copies, which are read again; where listings have none, objects are read.
        """
        damaged = self.damaged(home, receipt, verify=True)
        return [f"{path}: missing in the bucket, or other bytes" for path in damaged]


@frozen
class BucketLake(Lake):
    """A lake in a bucket; ``root`` is the folder of this machine's copies."""

    bucket: Bucket
    cache: VersionCache

    @property
    def url(self) -> str:
        """Its address: ``gs://…``, ``s3://…`` or ``az://…``."""
        return self.bucket.url

    def partition(self, stage: str, key: str = GLOBAL) -> "BucketPartition":
        """See `Lake.partition`."""
        folder = self.folder_of(stage, key)
        return BucketPartition(folder, self.bucket, self.cache, view=self.view)

    def _list_keys(self, stage: str) -> list[str]:
        return sorted(path.split("/")[-2] for path in self.bucket.names(f"{stage}/*/{CURRENT}"))

    def partitions(self) -> Iterator[Partition]:
        """See `Lake.partitions`; one listing, and one for each stage."""
        for stage in self.bucket.folders(""):
            yield from (self.partition(stage, key) for key in self.bucket.folders(f"{stage}/"))

    def note(self, path: str) -> bytes | None:
        """See `Lake.note`."""
        held = self.bucket.read(path)
        return None if held is None else held.content

    def notes(self, folder: str) -> list[str]:
        """See `Lake.notes`; one listing."""
        return sorted(path.rpartition("/")[2] for path in self.bucket.names(f"{folder}/*"))

    def publish_note(self, path: str, content: bytes) -> None:
        """See `Lake.publish_note`; written only if nothing is there."""
        found = self.note(path)
        require_same_note(found, content, self.bucket.where(path))
        if found is None:
            self.bucket.write(path, content, after="")

    def _write_note(self, path: str, content: bytes) -> None:
        self.bucket.write(path, content)


@frozen
class BucketPartition(Partition):
    """The versions of one partition in a bucket; ``folder`` is where they are built and copied
    to.
    """

    bucket: Bucket
    cache: VersionCache

    def where(self, path: str) -> str:
        """See `Partition.where`."""
        return self.bucket.where(f"{self.name}/{path}")

    # Receipts are kept on this machine after the first read.
    def _summary(self, version: str) -> Published:
        return self.at(version)

    def _matching(self, opened: Callable[[str], Published], version: str, digest: str) -> Published:
        published = opened(version)
        if published.digest != digest:  # a copy of a version that was made again
            shutil.rmtree(published.home, ignore_errors=True)
            published = opened(version)
        return published

    def _read_pointer(self) -> Current | None:
        held = self.bucket.read(f"{self.name}/{CURRENT}")
        return None if held is None else decode_bytes(held.content, Current, self.where(CURRENT))

    def at(self, version: str) -> Published:
        """See `Partition.at`; the receipt is fetched the first time."""
        home, prefix = self.folder / version, f"{self.name}/{version}"
        copies = Copies(self.bucket, prefix, self.cache)
        try:
            return Published(home, Published.at(home).receipt, copies)
        except (NotPublished, CorruptFile):  # no copy, or a damaged one
            held = self.bucket.read(f"{prefix}/{RECEIPT}")
        if held is None:
            raise NotPublished(
                f"{self.where(version)}: no {RECEIPT}, so this is not a finished version"
            )
        receipt = decode_receipt(held.content, Receipt, self.where(version))
        publish_bytes(home / RECEIPT, held.content)
        return Published(home, receipt, copies)

    def finished(self, version: str) -> Published | None:
        """See `Partition.finished`; one that is finished on this machine only still has to be
        uploaded, which `point_at` does.
        """
        with contextlib.suppress(NotPublished, CorruptFile):
            found = self.at(version)
            if not VersionFiles().lost(found.home) or self.bucket.generation(
                f"{self.name}/{version}/{RECEIPT}"
            ):
                return found
            shutil.rmtree(
                found.home, ignore_errors=True
            )  # a partial copy of a version that is gone from the bucket
        return None

    def version_names(self) -> list[str]:
        """See `Partition.version_names`; by one listing."""
        return sorted(path.split("/")[-2] for path in self.bucket.names(f"{self.name}/*/{RECEIPT}"))

    def folders(self) -> dict[str, Kept]:
        """See `Partition.folders`: those of the bucket, by one listing, and those on this machine
        only.

        A folder without a receipt that was written to in the last day may still be uploading, and
        is left out.
        """
        found: dict[str, dict[str, Listed]] = {}
        for path, listed in self.bucket.listed(f"{self.name}/").items():
            name, _, file = path.partition("/")
            if file:
                found.setdefault(name, {})[file] = listed
        kept = {name: _kept(files) for name, files in found.items() if _is_settled(files)}
        # The bucket has more information about a copy than this machine.
        here = {
            name: Kept(copy.n_bytes, None)
            for name, copy in Partition.folders(self).items()
            if name not in found
        }
        return dict(sorted({**kept, **here}.items()))

    def remove(self, name: str) -> None:
        """See `Partition.remove`; its copy on this machine is removed first, since it could be
        published again.
        """
        self._require_unpublished(name)
        if (self.folder / name).is_dir():
            Partition.remove(self, name)
        paths = [
            f"{self.name}/{name}/{path}" for path in self.bucket.listed(f"{self.name}/{name}/")
        ]
        self.bucket.remove([path for path in paths if path.endswith(f"/{name}/{RECEIPT}")])
        self.bucket.remove(paths)

    def _remove_files(
        self,
        published: Published,
        paths: Sequence[str],  # noqa: ARG002 - all are uploaded again
    ) -> None:
        """Remove the receipt, and the copies on this machine: the version is uploaded again."""
        self.bucket.remove([f"{self.name}/{published.version}/{RECEIPT}"])
        shutil.rmtree(published.home, ignore_errors=True)

    def state(self) -> str:
        """Generation of the pointer; "" when there is none."""
        return self.bucket.generation(f"{self.name}/{CURRENT}")

    def point_at(self, published: Published, *, after: str = "") -> None:
        """See `Partition.point_at`: upload the files, then the receipt, then the pointer if no
        other build has moved it since ``after``.
        """
        prefix = f"{self.name}/{published.version}"
        held = self.bucket.read(f"{prefix}/{RECEIPT}")
        where = self.where(published.version)
        if held is None or decode_bytes(held.content, Receipt, where).digest != published.digest:
            paths = [fact.path for fact in published.receipt.files]
            self.bucket.upload(published.home, paths, prefix)
            self.bucket.write(f"{prefix}/{RECEIPT}", encode_json(published.receipt))
        pointer = pointer_to(published)
        try:
            self.bucket.write(f"{self.name}/{CURRENT}", pointer, after=after)
        except Busy:
            # The response to a successful write can be lost; the retry then finds another
            # generation: ours.
            written = self.bucket.read(f"{self.name}/{CURRENT}")
            if written is None or written.content != pointer:
                raise
        Copies(self.bucket, prefix, self.cache).uploaded(published.home, published.receipt)


def _bytes_here(home: Path, receipt: Receipt) -> int:
    return sum(fact.n_bytes for fact in receipt.files if (home / fact.path).is_file())


def _kept(files: Mapping[str, Listed]) -> Kept:
    receipt = files.get(RECEIPT)
    size = sum(listed.n_bytes for listed in files.values())
    return Kept(size, None if receipt is None else receipt.written)


def _is_settled(files: Mapping[str, Listed]) -> bool:
    newest = max(listed.written for listed in files.values())
    return RECEIPT in files or newest < time.time() - UPLOAD_SECONDS
