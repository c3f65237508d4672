"""A lake whose root is a bucket: the same places and versions, built on this machine, published
there.

A version is built in a folder on this machine's disk, as in any lake. When it is finished its files
go up, then its receipt, and last the pointer, on the condition that nobody has moved that since the
build began: so two machines that build one partition cannot undo each other's work, whatever their
clocks say. What is read is fetched when it is read, file by file, held against the digests of its
receipt, and kept: finished versions never change.

::

    {root}/…                   this machine's copies; may be removed at any time
    gs://bucket/folder/…       the lake, laid out as in a folder (docs/formats/lake.md)

Requests: a partition's pointer and receipt cost 2 + 2, the receipt only the first time; a stage's
    keys one listing; a build
one request per file and 5 more. docs/google-cloud.md has the counts of a whole demo.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.errors import UNDECODABLE, Busy, CorruptFile, NotPublished
from lc_assets.lake.bucket import SCHEME, Bucket, Listed, crc32c
from lc_assets.lake.cache import BYTES_VARIABLE, Lease, VersionCache, parse_byte_bound
from lc_assets.lake.lake import CURRENT, GLOBAL, Current, Kept, Lake, Partition, written_over
from lc_assets.lake.receipts import RECEIPT, Receipt, encode_json
from lc_assets.lake.versions import Published, folder_named, version_named
from lc_assets.publishing import publish_bytes

CACHE_VARIABLE: Final = "LC_CACHE"
WILD: Final = re.compile(r"[*?\[]")
"""What makes a pattern of a name; of a snapshot's files some ten thousand may be asked for by name.
"""
ON_ITS_WAY_SECONDS: Final = 86_400.0
"""Files without a receipt that are no older may be of a version that is going up now."""


def open_lake(
    root: str, *, environment: Mapping[str, str] = os.environ, client: Any = None
) -> Lake:
    """Open a lake by its root.

    Args:
        root: a folder, or ``gs://bucket/folder``.
        environment: where ``LC_CACHE`` may name the folder of this machine's copies, and
            ``LC_CACHE_BYTES`` bound them.
        client: of the bucket; none makes one from the environment.
    """
    if not root.startswith(SCHEME):
        return Lake(Path(root))
    copies_root = Path(environment.get(CACHE_VARIABLE) or Path.home() / ".cache" / "lc_assets")
    cache = VersionCache(copies_root, parse_byte_bound(environment.get(BYTES_VARIABLE, "")))
    return BucketLake(
        copies_root / root.removeprefix(SCHEME).strip("/"), Bucket(root, client), cache
    )


@dataclass(slots=True)
class Copies:
    """The files of one version: kept in a bucket at ``place``, copied when they are asked for.

    What is copied is in use, and stays, as long as this lives: so whoever holds a `Published` holds
    its files.
    """

    bucket: Bucket
    place: str
    cache: VersionCache
    lease: Lease | None = None

    def fetch(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """See `Keeper.bring`; what is copied is held against the receipt's digests, and room is
        made for it.
        """
        names = {pattern for pattern in patterns if not WILD.search(pattern)}
        wild = [pattern for pattern in patterns if pattern not in names]
        wanted = [
            fact
            for fact in receipt.files
            if fact.path in names or any(fnmatchcase(fact.path, pattern) for pattern in wild)
        ]
        lease = self._leased(home)
        missing = [fact for fact in wanted if not (home / fact.path).is_file()]
        if missing:
            self.cache.make_room(sum(fact.n_bytes for fact in missing))
            self.bucket.download(self.place, home, missing)
            lease.holds(_bytes_here(home, receipt))

    def has_gone_up(self, home: Path, receipt: Receipt) -> None:
        """Say that files which were made here are copies now."""
        self._leased(home).holds(_bytes_here(home, receipt))
        self.cache.make_room(0)

    def _leased(self, home: Path) -> Lease:
        if self.lease is None:
            self.lease = self.cache.lease(home)
        else:
            self.lease.used()
        return self.lease

    def where(self, home: Path) -> str:  # noqa: ARG002 - copies there are of no interest
        """See `Keeper.where`."""
        return self.bucket.where(self.place)

    # What is copied there is only a part.
    def sizes(self, home: Path) -> dict[str, int]:  # noqa: ARG002
        """See `Keeper.sizes`; by one listing."""
        return {path: found.n_bytes for path, found in self.bucket.listed(f"{self.place}/").items()}

    def damage(self, home: Path, receipt: Receipt) -> list[str]:
        """See `Keeper.damage`: the service's own checksums, by one listing, against those of the
        copies, which are read again.
        """
        kept = self.bucket.listed(f"{self.place}/")
        lost = [
            f"{fact.path}: missing in the bucket" for fact in receipt.files if fact.path not in kept
        ]
        if lost:
            return lost
        try:
            self.fetch(home, receipt, ["*"])
        except CorruptFile as error:
            return [str(error)]
        return [
            f"{fact.path}: the bucket holds other bytes than its copy"
            for fact in receipt.files
            if kept[fact.path].crc32c != crc32c(home / fact.path)
        ]


@dataclass(frozen=True, slots=True)
class BucketLake(Lake):
    """A lake in a bucket; ``root`` is the folder of this machine's copies."""

    bucket: Bucket
    cache: VersionCache

    @property
    def url(self) -> str:
        """Where it lies: ``gs://…``."""
        return self.bucket.url

    def partition(self, stage: str, key: str = GLOBAL) -> "BucketPartition":
        """Where the versions of ``stage/key`` live; raises as `Lake.partition`."""
        return BucketPartition(
            self.root / folder_named(stage) / folder_named(key), self.bucket, self.cache
        )

    def keys(self, stage: str) -> list[str]:
        """Keys of a stage's published partitions, sorted; by one listing."""
        return sorted(path.split("/")[-2] for path in self.bucket.names(f"{stage}/*/{CURRENT}"))

    def partitions(self) -> Iterator[Partition]:
        """See `Lake.partitions`; by one listing, and one for each stage."""
        for stage in self.bucket.folders(""):
            yield from (self.partition(stage, key) for key in self.bucket.folders(f"{stage}/"))

    def note(self, path: str) -> bytes | None:
        """See `Lake.note`."""
        held = self.bucket.read(path)
        return None if held is None else held.content

    def notes(self, folder: str) -> list[str]:
        """See `Lake.notes`; by one listing."""
        return sorted(path.rpartition("/")[2] for path in self.bucket.names(f"{folder}/*"))

    def publish_note(self, path: str, content: bytes) -> None:
        """See `Lake.publish_note`; on the condition that nothing is there."""
        found = self.note(path)
        if found is None:
            self.bucket.write(path, content, after=0)
        elif found != content:
            raise written_over(self.bucket.where(path))


@dataclass(frozen=True, slots=True)
class BucketPartition(Partition):
    """Where the versions of one partition live in a bucket; ``folder`` is where they are built and
    copied to.
    """

    bucket: Bucket
    cache: VersionCache

    def current(self) -> Published | None:
        """See `Partition.current`."""
        path, said = f"{self.name}/{CURRENT}", self.pointer()
        if said is None:
            return None
        published = self.at(version_named(said.version, self.bucket.where(path)))
        if published.digest != said.digest:
            self._forget(published)
            published = self.at(said.version)
        if published.digest != said.digest:
            raise CorruptFile(
                f"{self.bucket.where(path)}: names another digest than version {said.version} has"
            )
        return published

    def current_summary(self) -> Published | None:
        """See `Partition.current_summary`; here it is `current`, whose receipts are kept on this machine."""
        return self.current()

    def pointer(self) -> Current | None:
        """See `Partition.pointer`."""
        path = f"{self.name}/{CURRENT}"
        held = self.bucket.read(path)
        return None if held is None else _decoded(held.content, Current, self.bucket.where(path))

    def at(self, version: str) -> Published:
        """See `Partition.at`; the receipt is fetched the first time."""
        home, copies = (
            self.folder / version,
            Copies(self.bucket, f"{self.name}/{version}", self.cache),
        )
        try:
            return Published(home, Published.at(home).receipt, copies)
        except NotPublished:
            held = self.bucket.read(f"{copies.place}/{RECEIPT}")
        if held is None:
            raise NotPublished(
                f"{self.bucket.where(copies.place)}: no {RECEIPT}, so this is not a finished "
                "version"
            )
        publish_bytes(home / RECEIPT, held.content)
        return Published(
            home, _decoded(held.content, Receipt, self.bucket.where(copies.place)), copies
        )

    def finished(self, version: str) -> Published | None:
        """See `Partition.finished`; one that is finished on this machine only still has to go up, which
        `point_at` sees to.
        """
        with contextlib.suppress(NotPublished, CorruptFile):
            found = self.at(version)
            if _is_whole_here(found) or self.bucket.generation(f"{self.name}/{version}/{RECEIPT}"):
                return found
            self._forget(found)  # some of a version that is gone from the bucket
        return None

    def version_names(self) -> list[str]:
        """See `Partition.version_names`; by one listing."""
        return sorted(path.split("/")[-2] for path in self.bucket.names(f"{self.name}/*/{RECEIPT}"))

    def folders(self) -> dict[str, Kept]:
        """See `Partition.folders`: those of the bucket, by one listing, and what lies on this machine
        only.

        What has no receipt and was written to in the last day may be on its way up, and is left
        out.
        """
        found: dict[str, dict[str, Listed]] = {}
        for path, listed in self.bucket.listed(f"{self.name}/").items():
            name, _, file = path.partition("/")
            if file:
                found.setdefault(name, {})[file] = listed
        kept = {
            name: _kept(files)
            for name, files in found.items()
            if RECEIPT in files or _is_old(files)
        }
        # not "|": of a copy, the bucket says more than this machine does
        here = {
            name: Kept(copy.n_bytes, None)
            for name, copy in Partition.folders(self).items()
            if name not in found
        }
        return dict(sorted({**kept, **here}.items()))

    def remove(self, name: str, *, patience: float) -> None:
        """See `Partition.remove`; its copy on this machine goes first, since it could be published
        anew.
        """
        self._require_unpublished(name)
        if (self.folder / name).is_dir():
            Partition.remove(self, name, patience=patience)
        paths = [
            f"{self.name}/{name}/{path}" for path in self.bucket.listed(f"{self.name}/{name}/")
        ]
        self.bucket.remove([path for path in paths if path.endswith(f"/{name}/{RECEIPT}")])
        self.bucket.remove(paths)

    def state(self) -> int:
        """Generation of the pointer; 0 when there is none."""
        return self.bucket.generation(f"{self.name}/{CURRENT}")

    def point_at(self, published: Published, *, after: int = 0) -> None:
        """See `Partition.point_at`: the files first, then the receipt, then the pointer, if nobody has
        moved it since ``after``.
        """
        place = f"{self.name}/{published.version}"
        receipt = self.bucket.read(f"{place}/{RECEIPT}")
        if (
            receipt is None
            or _decoded(receipt.content, Receipt, self.bucket.where(place)).digest
            != published.digest
        ):
            self.bucket.upload(
                published.home, [fact.path for fact in published.receipt.files], place
            )
            self.bucket.write(f"{place}/{RECEIPT}", encode_json(published.receipt))
        pointer = encode_json(Current(version=published.version, digest=published.digest))
        try:
            self.bucket.write(f"{self.name}/{CURRENT}", pointer, after=after)
        except Busy:
            # The answer to a write that went well can get lost; asked again, the service then finds
            # another generation: ours.
            held = self.bucket.read(f"{self.name}/{CURRENT}")
            if held is None or held.content != pointer:
                raise
        Copies(self.bucket, place, self.cache).has_gone_up(published.home, published.receipt)

    @staticmethod
    def _forget(published: Published) -> None:
        """Remove a copy that is of other bytes than those published, such as of a version that was
        made again.
        """
        shutil.rmtree(published.home, ignore_errors=True)


def _bytes_here(home: Path, receipt: Receipt) -> int:
    return sum(fact.n_bytes for fact in receipt.files if (home / fact.path).is_file())


def _is_whole_here(published: Published) -> bool:
    return all((published.home / fact.path).is_file() for fact in published.receipt.files)


def _kept(files: Mapping[str, Listed]) -> Kept:
    receipt = files.get(RECEIPT)
    return Kept(
        sum(listed.n_bytes for listed in files.values()),
        None if receipt is None else receipt.written,
    )


def _is_old(files: Mapping[str, Listed]) -> bool:
    return max(listed.written for listed in files.values()) < time.time() - ON_ITS_WAY_SECONDS


def _decoded(content: bytes, kind: type[Any], where: str) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except UNDECODABLE as error:
        raise CorruptFile(f"{where}: not a readable {kind.__name__.lower()}: {error}") from error
