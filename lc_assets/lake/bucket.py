"""A bucket of Google Cloud Storage, S3 or Azure: the operations that a lake needs.

`lc_assets.lake.google_storage` carries them out by Google's client, `lc_assets.lake.object_storage`
by obstore, with objects by their whole names; both retry for at most two minutes an operation. What
the objects mean is in `lc_assets.lake.bucket_lake`.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from lc_assets.errors import BadInput, DamagedInput
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.lake.digests import FileFact, is_unchanged, short
from lc_assets.lake.per_process import PerProcess
from lc_assets.publishing import flush, staging_path

if TYPE_CHECKING:
    from lc_assets.lake.google_storage import GoogleStorage
    from lc_assets.lake.object_storage import ObjectStorage

    Storage: TypeAlias = GoogleStorage | ObjectStorage

GOOGLE = "gs://"
OTHERS = ("s3://", "az://")
"""What `lc_assets.lake.object_storage` reads and writes."""
_ADDRESS = re.compile(f"({'|'.join((GOOGLE, *OTHERS))})([^/]+)/*(.*?)/*")
TRANSFERS = 8
"""Files transferred at a time."""
PART_BYTES = 32 << 20
"""Larger files are uploaded in parts of this size, each with its own retries; a multiple of 256
KiB, as Google's service requires.
"""


def is_in_bucket(where: str) -> bool:
    """Whether this is a bucket's URL, not a path."""
    return where.startswith((GOOGLE, *OTHERS))


class Held(NamedTuple):
    """An object's content and its generation."""

    content: bytes
    generation: str


class Listed(NamedTuple):
    """An object in a listing: its size, its CRC32C in the form of `google_storage.crc32c` or ""
    where the service lists none, and when it was written, in seconds since 1970.
    """

    n_bytes: int
    crc32c: str
    written: float


@dataclass(frozen=True)
class Bucket:
    """The objects below a URL.

    Attributes:
        url: ``gs://bucket``, ``s3://bucket`` or ``az://container``, with or without a folder.
        client: of Google's bucket, a `google.cloud.storage.Client`; None makes one from the
            environment.
    """

    url: str
    client: Any = field(default=None, compare=False, repr=False)

    @PerProcess
    def _place(self) -> "tuple[Storage, str]":
        """The bucket, and the prefix of all names."""
        found = _ADDRESS.fullmatch(self.url)
        if found is None:
            raise BadInput(
                f"not a bucket: {self.url!r}; expected gs://bucket/folder, s3://bucket/folder or "
                "az://container/folder"
            )
        scheme, bucket, folder = found.groups()
        return _storage(scheme, bucket, self.client), f"{folder}/" if folder else ""

    def where(self, path: str) -> str:
        """An object's URL."""
        return f"{self.url.rstrip('/')}/{path}"

    @contextlib.contextmanager
    def _at(self, path: str) -> "Iterator[tuple[Storage, str]]":
        """The bucket, and an object's whole name; errors that name its URL."""
        storage, top = self._place
        with storage.errors(self.where(path)):
            yield storage, f"{top}{path}"

    def read(self, path: str) -> Held | None:
        """A small object and its generation; None when it does not exist. Two requests of Google,
        one of others.
        """
        with self._at(path) as (storage, name):
            return storage.read(name)

    def generation(self, path: str) -> str:
        """What changes whenever an object is written: Google's generation, others' ETag; "" when it
        does not exist. One request.
        """
        with self._at(path) as (storage, name):
            return storage.generation(name)

    def write(self, path: str, content: bytes, *, after: str | None = None) -> None:
        """Write a small object, atomically. One request.

        Args:
            path: below the URL.
            content: of the object.
            after: the generation that it must still have, "" for no object; None overwrites any.

        Raises:
            Busy: when another process has written it, so that its generation differs.
        """
        with self._at(path) as (storage, name):
            storage.write(name, content, after)

    def names(self, pattern: str) -> list[str]:
        """Paths of all objects that match a pattern, in which a ``*`` stands for the name of a
        folder or file, sorted. One request for every thousand files below the first ``*`` of
        Google; of others one for each folder that a ``*`` stands for.
        """
        with self._at(pattern) as (storage, whole):
            top = whole.removesuffix(pattern)
            return sorted(name.removeprefix(top) for name in storage.names(whole))

    def folders(self, prefix: str) -> list[str]:
        """Names of the folders directly below ``prefix``, which is "" or ends with a slash, sorted.
        One request for every thousand.
        """
        with self._at(prefix) as (storage, whole):
            found = storage.folders(whole)
            return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def listed(self, prefix: str) -> dict[str, Listed]:
        """Every object below ``prefix``, which ends with a slash, by relative path. One request for
        every thousand.
        """
        with self._at(prefix) as (storage, whole):
            return {name.removeprefix(whole): found for name, found in storage.listed(whole)}

    def sha256(self, path: str) -> str:
        """SHA-256 of an object, which is read in blocks. One request."""
        with self._at(path) as (storage, name):
            return storage.sha256(name)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove objects; some may not exist. One request for every hundred."""
        storage, top = self._place
        if paths:
            with storage.errors(self.where(paths[0])):
                storage.remove([f"{top}{path}" for path in paths])

    def upload(self, folder: Path, paths: Sequence[str], prefix: str) -> None:
        """Copy files below ``folder`` to objects below ``prefix``, several at a time, with
        checksums.
        """
        with self._at(prefix) as (storage, whole):
            storage.upload([(f"{whole}/{path}", folder / path) for path in paths], PART_BYTES)

    def download(self, prefix: str, folder: Path, facts: Sequence[FileFact]) -> None:
        """Copy objects below ``prefix`` to files below ``folder``; each appears completely, with
        the content in its receipt, or not at all.

        Raises:
            DamagedInput: when one has other content.
            StorageFull: when the disk is full.
        """
        drafts = {fact: staging_path(folder / fact.path) for fact in facts}
        try:
            with os_errors_as_lc_errors(folder), self._at(prefix) as (storage, whole):
                for draft in drafts.values():
                    draft.parent.mkdir(parents=True, exist_ok=True)
                storage.download(
                    [(f"{whole}/{fact.path}", draft) for fact, draft in drafts.items()]
                )
                for fact, draft in drafts.items():
                    if not is_unchanged(draft, fact):
                        raise DamagedInput(
                            f"{self.where(f'{prefix}/{fact.path}')}: {draft.stat().st_size:,} "
                            f"bytes that differ from its receipt, which says {fact.n_bytes:,} "
                            f"bytes, digest {short(fact.sha256)}: build it again with `lc rebuild "
                            f"--repair --verify --lake {self.url}`"
                        )
                    flush(draft)
                    draft.replace(folder / fact.path)
        finally:
            for draft in drafts.values():
                draft.unlink(missing_ok=True)


def _storage(scheme: str, bucket: str, client: Any) -> "Storage":
    # Google's client takes 0.4 s to import, obstore may not be installed.
    if scheme == GOOGLE:
        from lc_assets.lake.google_storage import GoogleStorage

        return GoogleStorage(bucket, client)
    from lc_assets.lake.object_storage import ObjectStorage

    return ObjectStorage(f"{scheme}{bucket}")
