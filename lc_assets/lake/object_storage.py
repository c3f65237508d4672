"""Buckets of S3 and containers of Azure, by obstore, which signs, retries and takes credentials and
addresses from the environment: ``AWS_…``, ``AZURE_STORAGE_…``.

An object's generation is its ETag: a write with ``If-Match`` or ``If-None-Match`` is refused when
it has changed. To S3 every part is sent with its SHA-256, which the service compares. Listings hold
no checksums, so a published file is verified by reading it.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from lc_assets.errors import BadInput
from lc_assets.foreign_errors import object_store_errors_as_lc_errors
from lc_assets.lake.bucket import TRANSFERS, Held, Listed

One = TypeVar("One")
Result = TypeVar("Result")

BLOCK_BYTES = 4 << 20
"""At least this much of a download is written at a time."""
RETRIES: dict[str, Any] = {"max_retries": 50, "retry_timeout": timedelta(minutes=2)}
TIMEOUTS = {"timeout": "1h", "read_timeout": "2m", "connect_timeout": "10s"}
"""For a whole file, its next bytes, and a connection."""
_BEYOND = "status code: 416"
"""In the error for a range that begins after a file's end."""

_PROVIDERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "s3": ("S3Store", "AWS", {"checksum_algorithm": "SHA256"}),
    "az": ("AzureStore", "AZURE", {}),
}


class ObjectStorage:
    """A bucket or container of these services; see `lc_assets.lake.bucket.Bucket`."""

    errors = staticmethod(object_store_errors_as_lc_errors)

    def __init__(self, url: str) -> None:
        """Open ``s3://bucket`` or ``az://container``."""
        require_obstore(url)
        from obstore import store

        scheme, _, bucket = url.partition("://")
        kind, provider, config = _PROVIDERS[scheme]
        plain = os.environ.get(f"{provider}_ALLOW_HTTP", "").lower() == "true"
        with self.errors(url):
            self._store = getattr(store, kind)(
                bucket,
                config=config,
                retry_config=RETRIES,
                client_options=TIMEOUTS | {"allow_http": plain},
            )

    def read(self, name: str) -> Held | None:
        """See `Bucket.read`."""
        try:
            found = self._store.get(name)
        except FileNotFoundError:
            return None
        return Held(bytes(found.bytes()), found.meta["e_tag"])

    def generation(self, name: str) -> str:
        """See `Bucket.generation`."""
        try:
            return self._store.head(name)["e_tag"]  # type: ignore[no-any-return]
        except FileNotFoundError:
            return ""

    def write(self, name: str, content: bytes, after: str | None) -> None:
        """See `Bucket.write`."""
        mode = "overwrite" if after is None else {"e_tag": after} if after else "create"
        self._store.put(name, content, mode=mode, attributes={"Content-Type": "application/json"})

    def names(self, pattern: str) -> Iterable[str]:
        """See `Bucket.names`."""
        head, _, tail = pattern.partition("*")
        found = self._store.list_with_delimiter(head)
        if not tail:
            return [found["path"] for found in found["objects"]]
        wanted = [f"{folder.rstrip('/')}{tail}" for folder in found["common_prefixes"]]
        if "*" in tail:
            return [name for inner in wanted for name in self.names(inner)]
        return self._present(wanted)

    def folders(self, prefix: str) -> Iterable[str]:
        """Names of the folders directly below a prefix, with the prefix."""
        return self._store.list_with_delimiter(prefix)["common_prefixes"]  # type: ignore[no-any-return]

    def listed(self, prefix: str) -> Iterator[tuple[str, Listed]]:
        """Every object below a prefix."""
        for page in self._store.list(prefix, chunk_size=1000):
            for one in page:
                yield one["path"], Listed(one["size"], "", one["last_modified"].timestamp())

    def remove(self, names: Sequence[str]) -> None:
        """See `Bucket.remove`."""
        try:
            self._store.delete(list(names))
        except FileNotFoundError:  # Azure names the first that is not there, and may stop there
            self._store.delete(self._present(names))

    def upload(self, pairs: Sequence[tuple[str, Path]], part_bytes: int) -> None:
        """Copy files to objects, `TRANSFERS` at a time, larger ones in parts of this size."""

        def upload(pair: tuple[str, Path]) -> None:
            self._store.put(*pair, chunk_size=part_bytes, max_concurrency=1)

        _each(upload, pairs)

    def download(self, pairs: Sequence[tuple[str, Path]]) -> None:
        """Copy objects to files, `TRANSFERS` at a time."""

        def download(pair: tuple[str, Path]) -> None:
            with pair[1].open("wb") as file:
                for block in self._blocks(pair[0]):
                    file.write(block)

        _each(download, pairs)

    def sha256(self, name: str) -> str:
        """See `Bucket.sha256`."""
        hasher = hashlib.sha256()
        for block in self._blocks(name):
            hasher.update(block)
        return hasher.hexdigest()

    def _present(self, names: Sequence[str]) -> list[str]:
        generations = _each(self.generation, names)
        return [name for name, held in zip(names, generations, strict=True) if held]

    def _blocks(self, name: str) -> Any:
        return self._store.get(name).stream(min_chunk_size=BLOCK_BYTES)


def require_obstore(url: str) -> None:
    """Raise `BadInput` where obstore is not installed, or would wait forever, since this process
    was forked from one that used it.
    """
    if find_spec("obstore") is None:
        raise BadInput(f"{url} needs obstore: pip install 'lc-assets[stores]'")
    if _first_process() != os.getpid():
        raise BadInput(
            f"{url}: obstore was used before this process was forked, and its threads are not "
            "here: start workers by another method, such as "
            "DataLoader(…, multiprocessing_context='forkserver')"
        )


@functools.cache
def _first_process() -> int:
    """The id of the process, of this one and those it was forked from, that asked first."""
    return os.getpid()


def register_file_system(url: str) -> None:
    """Let fsspec read URLs of S3 and Azure by obstore; what lies beyond a file's end is empty."""
    require_obstore(url)
    _register(url.partition("://")[0])


@functools.cache  # fsspec keeps a connection for each class
def _register(scheme: str) -> None:
    import fsspec
    from obstore.exceptions import GenericError
    from obstore.fsspec import FsspecStore

    class Files(FsspecStore):  # type: ignore[misc]
        protocol = scheme
        _cat_ranges = fsspec.asyn.AsyncFileSystem._cat_ranges  # obstore's fails beyond the end

        def _open(self, path: str, *args: Any, **options: Any) -> Any:
            self.info(path)  # for a file that is not there its own fails again when collected
            return super()._open(path, *args, **options)

        async def _cat_file(self, *args: Any, **options: Any) -> bytes:
            try:
                return await super()._cat_file(*args, **options)  # type: ignore[no-any-return]
            except GenericError as error:
                if _BEYOND not in str(error):
                    raise
                return b""

    fsspec.register_implementation(scheme, Files, clobber=True)


def _each(function: Callable[[One], Result], ones: Sequence[One]) -> list[Result]:
    """Call a function with each, several at a time."""
    with ThreadPoolExecutor(TRANSFERS) as pool:
        return list(pool.map(function, ones))
