"""A bucket of Google Cloud Storage: the operations that a lake needs.

The transport, its retries (limited to two minutes an operation) and its checksums (CRC32C) are
those of Google's client, which also reads ``STORAGE_EMULATOR_HOST``. What the objects mean is in
`lc_assets.lake.bucket_lake`.
"""

import base64
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lc_assets.errors import BadInput, DamagedInput
from lc_assets.foreign_errors import google_errors_as_lc_errors, os_errors_as_lc_errors
from lc_assets.lake.digests import FileFact, is_unchanged, short
from lc_assets.publishing import flush, staging_path

SCHEME = "gs://"
TRANSFERS = 8
"""Files transferred at a time."""
PART_BYTES = 32 << 20
"""Larger files are uploaded in parts of this size, each with its own retries; a multiple of 256
KiB, as the service requires.
"""

REMOVED_AT_ONCE = 100
"""Objects that one request removes, the most that the service accepts."""


class Held(NamedTuple):
    """An object's content and its generation."""

    content: bytes
    generation: int


class Listed(NamedTuple):
    """An object in a listing: its size, its CRC32C in the form of `crc32c`, and when it was
    written, in seconds since 1970.
    """

    n_bytes: int
    crc32c: str
    written: float


@dataclass(frozen=True)
class Bucket:
    """The objects below a URL.

    Attributes:
        url: ``gs://bucket`` or ``gs://bucket/folder``.
        client: a `google.cloud.storage.Client`; None makes one from the environment.
    """

    url: str
    client: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def _bucket(self) -> Any:
        if not self.url.startswith(SCHEME) or not self._names[0]:
            raise BadInput(
                f"not a bucket: {self.url!r}; expected gs://bucket or gs://bucket/folder"
            )
        with google_errors_as_lc_errors(self.where("")):
            return (self.client or _client()).bucket(self._names[0])

    @property
    def _names(self) -> tuple[str, str]:
        bucket, _, prefix = self.url.removeprefix(SCHEME).partition("/")
        return bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    def where(self, path: str) -> str:
        """An object's URL."""
        return f"{self.url.rstrip('/')}/{path}"

    def read(self, path: str) -> Held | None:
        """A small object and its generation; None when it does not exist. Two requests."""
        with google_errors_as_lc_errors(self.where(path)):
            blob = self._bucket.get_blob(self._name(path))
            if blob is None:
                return None
            generation = int(
                blob.generation
            )  # the download takes it from a header, which an emulator may not send
            return Held(
                blob.download_as_bytes(if_generation_match=generation, checksum="crc32c"),
                generation,
            )

    def generation(self, path: str) -> int:
        """The generation of an object; 0 when it does not exist. One request."""
        with google_errors_as_lc_errors(self.where(path)):
            blob = self._bucket.get_blob(self._name(path))
        return 0 if blob is None else int(blob.generation)

    def write(self, path: str, content: bytes, *, after: int | None = None) -> None:
        """Write a small object, atomically. One request.

        Args:
            path: below the URL.
            content: of the object.
            after: the generation that it must still have, 0 for no object; None overwrites any.

        Raises:
            Busy: when another process has written it, so that its generation differs.
        """
        with google_errors_as_lc_errors(self.where(path)):
            self._blob(path).upload_from_string(
                content, "application/json", if_generation_match=after, checksum="crc32c"
            )

    def names(self, pattern: str) -> list[str]:
        """Paths of all objects that match a glob, sorted. One request for every thousand."""
        prefix = self._names[1]
        with google_errors_as_lc_errors(self.where(pattern)):
            found = self._bucket.list_blobs(
                match_glob=f"{prefix}{pattern}", fields="items(name),nextPageToken"
            )
            return sorted(blob.name.removeprefix(prefix) for blob in found)

    def folders(self, prefix: str) -> list[str]:
        """Names of the folders directly below ``prefix``, which is "" or ends with a slash, sorted.
        One request for every thousand.
        """
        with google_errors_as_lc_errors(self.where(prefix)):
            found = self._bucket.list_blobs(
                prefix=self._name(prefix), delimiter="/", fields="prefixes,nextPageToken"
            )
            list(found)  # the prefixes are known when all pages are
            return sorted(
                name.removeprefix(self._name(prefix)).strip("/") for name in found.prefixes
            )

    def listed(self, prefix: str) -> dict[str, Listed]:
        """Every object below ``prefix``, which ends with a slash, by relative path. One request for
        every thousand.
        """
        with google_errors_as_lc_errors(self.where(prefix)):
            found = self._bucket.list_blobs(
                prefix=self._name(prefix), fields="items(name,size,crc32c,updated),nextPageToken"
            )
            return {
                blob.name.removeprefix(self._name(prefix)): Listed(
                    int(blob.size), blob.crc32c, blob.updated.timestamp()
                )
                for blob in found
            }

    def remove(self, paths: Sequence[str]) -> None:
        """Remove objects; some may not exist. One request for every hundred."""
        from google.api_core.exceptions import NotFound

        for start in range(0, len(paths), REMOVED_AT_ONCE):
            with (
                google_errors_as_lc_errors(self.where(paths[start])),
                contextlib.suppress(NotFound),
                self._bucket.client.batch(),
            ):
                for path in paths[start : start + REMOVED_AT_ONCE]:
                    self._blob(path).delete()

    def upload(self, folder: Path, paths: Sequence[str], prefix: str) -> None:
        """Copy files below ``folder`` to objects below ``prefix``, several at a time, with
        checksums.
        """
        # 0.4 s that a lake in a folder need not pay.
        from google.cloud.storage import transfer_manager

        pairs = [(str(folder / path), self._blob(f"{prefix}/{path}", PART_BYTES)) for path in paths]
        with google_errors_as_lc_errors(self.where(prefix)):
            transfer_manager.upload_many(
                pairs,
                raise_exception=True,
                worker_type=transfer_manager.THREAD,
                max_workers=TRANSFERS,
                upload_kwargs={"checksum": "crc32c"},
            )

    def download(self, prefix: str, folder: Path, facts: Sequence[FileFact]) -> None:
        """Copy objects below ``prefix`` to files below ``folder``; each appears completely, with
        the content in its receipt, or not at all.

        Raises:
            DamagedInput: when one has other content.
            StorageFull: when the disk is full.
        """
        from google.cloud.storage import transfer_manager

        drafts = {fact: staging_path(folder / fact.path) for fact in facts}
        try:
            with os_errors_as_lc_errors(folder), google_errors_as_lc_errors(self.where(prefix)):
                for draft in drafts.values():
                    draft.parent.mkdir(parents=True, exist_ok=True)
                transfer_manager.download_many(
                    [
                        (self._blob(f"{prefix}/{fact.path}"), str(draft))
                        for fact, draft in drafts.items()
                    ],
                    raise_exception=True,
                    worker_type=transfer_manager.THREAD,
                    max_workers=TRANSFERS,
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

    def _blob(self, path: str, part_bytes: int | None = None) -> Any:
        return self._bucket.blob(self._name(path), chunk_size=part_bytes)

    def _name(self, path: str) -> str:
        return f"{self._names[1]}{path}"


def crc32c(path: Path) -> str:
    """CRC32C of a file as the service gives it: big-endian, base64."""
    import google_crc32c

    checksum = google_crc32c.Checksum()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            checksum.update(block)
    return base64.b64encode(checksum.digest()).decode("ascii")


def _client() -> Any:
    """A client for the emulator in the environment, or for the service with the application's
    credentials.
    """
    from google.cloud import storage

    return storage.Client()
