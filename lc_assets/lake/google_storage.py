"""Google Cloud Storage by Google's client, which retries, compares CRC32C of everything that it
sends and receives, and reads ``STORAGE_EMULATOR_HOST``.
"""

import base64
import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lc_assets.foreign_errors import google_errors_as_lc_errors
from lc_assets.lake.bucket import TRANSFERS, Held, Listed

REMOVED_AT_ONCE = 100
"""Objects that one request removes, the most that the service accepts."""


class GoogleStorage:
    """A bucket of this service; see `lc_assets.lake.bucket.Bucket`."""

    errors = staticmethod(google_errors_as_lc_errors)

    def __init__(self, bucket: str, client: Any = None) -> None:
        """Open a bucket, by a `google.cloud.storage.Client` or one for the environment."""
        with self.errors(f"gs://{bucket}"):
            self._bucket = (client or _client()).bucket(bucket)

    def read(self, name: str) -> Held | None:
        """See `Bucket.read`."""
        generation = self.generation(name)
        if not generation:
            return None
        # the download takes it from a header, which an emulator may not send
        content = self._bucket.blob(name).download_as_bytes(
            if_generation_match=int(generation), checksum="crc32c"
        )
        return Held(content, generation)

    def generation(self, name: str) -> str:
        """See `Bucket.generation`."""
        blob = self._bucket.get_blob(name)
        return "" if blob is None else str(blob.generation)

    def write(self, name: str, content: bytes, after: str | None) -> None:
        """See `Bucket.write`."""
        self._bucket.blob(name).upload_from_string(
            content,
            "application/json",
            if_generation_match=None if after is None else int(after or 0),
            checksum="crc32c",
        )

    def names(self, pattern: str) -> Iterable[str]:
        """See `Bucket.names`."""
        found = self._bucket.list_blobs(match_glob=pattern, fields="items(name),nextPageToken")
        return (blob.name for blob in found)

    def folders(self, prefix: str) -> Iterable[str]:
        """Names of the folders directly below a prefix, with the prefix."""
        found = self._bucket.list_blobs(
            prefix=prefix, delimiter="/", fields="prefixes,nextPageToken"
        )
        list(found)  # the prefixes are known when all pages are
        return found.prefixes  # type: ignore[no-any-return]

    def listed(self, prefix: str) -> Iterable[tuple[str, Listed]]:
        """Every object below a prefix."""
        found = self._bucket.list_blobs(
            prefix=prefix, fields="items(name,size,crc32c,updated),nextPageToken"
        )
        for blob in found:
            yield blob.name, Listed(int(blob.size), blob.crc32c, blob.updated.timestamp())

    def remove(self, names: Sequence[str]) -> None:
        """See `Bucket.remove`."""
        from google.api_core.exceptions import NotFound

        for start in range(0, len(names), REMOVED_AT_ONCE):
            with contextlib.suppress(NotFound), self._bucket.client.batch():
                for name in names[start : start + REMOVED_AT_ONCE]:
                    self._bucket.blob(name).delete()

    def upload(self, pairs: Sequence[tuple[str, Path]], part_bytes: int) -> None:
        """Copy files to objects, `TRANSFERS` at a time, larger ones in parts of this size."""
        from google.cloud.storage import transfer_manager

        transfer_manager.upload_many(
            [(str(path), self._bucket.blob(name, chunk_size=part_bytes)) for name, path in pairs],
            raise_exception=True,
            worker_type=transfer_manager.THREAD,
            max_workers=TRANSFERS,
            upload_kwargs={"checksum": "crc32c"},
        )

    def download(self, pairs: Sequence[tuple[str, Path]]) -> None:
        """Copy objects to files, `TRANSFERS` at a time."""
        from google.cloud.storage import transfer_manager

        transfer_manager.download_many(
            [(self._bucket.blob(name), str(path)) for name, path in pairs],
            raise_exception=True,
            worker_type=transfer_manager.THREAD,
            max_workers=TRANSFERS,
        )

    def sha256(self, name: str) -> str:
        """See `Bucket.sha256`."""
        with self._bucket.blob(name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


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
