"""Files to read from: in a folder, on a web server or in a bucket. Read only, streamed.

fsspec does the transport, for S3 and Azure with obstore; this module identifies files
(`UpstreamFile`) without copying them, and translates transport errors. Paths below the root are
made from parsed names only, so none can leave it.

A file that is missing upstream may be counted and skipped by a stage. A file that could not be
fetched (`Unreachable`) is retried and then stops the stage: if it were counted as missing, a short
outage would silently shrink a data set.
"""

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from lc_assets.errors import BadInput, CorruptFile, LcError, Unreachable, without_secrets
from lc_assets.foreign_errors import transport_errors_as_unreachable, without_address
from lc_assets.lake.bucket import OTHERS
from lc_assets.lake.digests import crc32_of
from lc_assets.lake.per_process import PerProcess
from lc_assets.line_ranges import LinesOfRange, parsed

Task = TypeVar("Task")
Result = TypeVar("Result")

BLOCK_BYTES = 8 << 20
"""Read-ahead of a streamed file."""

BY_TIME = "mtime:"
"""Prefix of an identity that is a modification time."""

_CRC32: dict[str, str] = {}
"""CRC-32 of the contents that this process has read, by identity."""

_IDENTITIES = ("md5Hash", "md5", "Content-MD5", "crc32c", "ETag", "etag", "e_tag")
"""Fields in which fsspec's file systems give a checksum or version of a file, the best first."""

_BEYOND = 416
"""HTTP's status for a range that begins after a file's end."""

NO_RANGES = (
    f"the server sends whole files only, but files above {BLOCK_BYTES:,} bytes are read in parts: "
    "serve them with one that answers range requests (nginx, Apache, a bucket; not `python -m "
    "http.server`), or from a folder"
)

PAUSES_SECONDS = (1.0, 10.0, 60.0)
"""Seconds to wait before each retry."""


class UpstreamFile(msgspec.Struct, frozen=True, gc=False):
    """One file upstream. It contains only strings and numbers, so the garbage collector does not
    track the 150,000 files of a snapshot.

    Attributes:
        path: relative to the upstream's root.
        n_bytes: size, or -1 when the server does not give it.
        identity: changes when the content does: a server's ``md5:…`` or ``etag:…``; without
            one, the ``sha256:…`` of the content; or ``mtime:…`` of a local file, on request.
    """

    path: str
    n_bytes: int
    identity: str


@dataclass(frozen=True)
class Upstream:
    """A folder or a URL to read from.

    Attributes:
        root: a folder, or a URL that fsspec knows: ``https://…``, ``gs://…``, ``s3://…``,
            ``az://…``, ``memory://…``.
    """

    root: str

    def __repr__(self) -> str:
        return without_secrets(f"Upstream({self.root!r})")

    @PerProcess
    def _place(self) -> tuple[Any, str]:
        import fsspec

        if self.root.startswith(OTHERS):
            from lc_assets.lake.object_storage import register_file_system

            register_file_system(self.root)
        try:
            files, root = fsspec.core.url_to_fs(self.root)
        except (ValueError, ImportError) as error:
            raise BadInput(f"cannot read from {self.root!r}: {error}") from without_address(error)
        return files, f"{root.rstrip('/')}/"

    @property
    def _protocols(self) -> set[str]:
        named = self._place[0].protocol
        return {named} if isinstance(named, str) else set(named)

    @property
    def _is_a_web_server(self) -> bool:
        return bool(self._protocols & {"http", "https"})

    def local_path(self, path: str) -> Path | None:
        """Local path of ``path``; None when the root is not a local folder."""
        return Path(self._place[1]) / path if self._protocols & {"file", "local"} else None

    def look(
        self, path: str, *, trust_times: bool = False, expected: str = ""
    ) -> UpstreamFile | None:
        """Identify the file at ``path``; None when there is none.

        Args:
            path: relative to the root; may name a range of lines, see `lc_assets.line_ranges`.
            trust_times: identify a local file by its modification time instead of reading it.
            expected: the identity that it probably has: where this process has read such a file,
                its CRC-32 tells, a seventh of the time.

        Raises:
            Unreachable: when the upstream itself cannot be reached.
        """
        files, stem = self._place
        whole, lines = parsed(path)
        full = f"{stem}{whole}"
        try:
            with transport_errors_as_unreachable(f"{self.root}/{path}"):
                info = files.info(full)
        except FileNotFoundError:
            return None
        n_bytes = -1 if info.get("size") is None else int(info["size"])
        if lines:
            with self.open(whole) as stream:
                n_bytes = LinesOfRange(stream, lines).n_bytes
        return UpstreamFile(path, n_bytes, self._identity(path, info, trust_times, expected))

    def below(self, folder: str) -> list[str] | None:
        """Paths of all files below a folder, sorted, without hidden ones; none when it does not
        exist; None for web servers, which have no folders. Buckets are listed, too.

        Raises:
            Unreachable: when the upstream itself cannot be reached.
            PermissionError: when a folder on disk may not be read; fsspec would leave it out.
        """
        if self._is_a_web_server:
            return None
        files, stem = self._place
        find = _files_below if "file" in self._protocols else files.find
        try:
            with transport_errors_as_unreachable(f"{self.root}/{folder}"):
                found = find(f"{stem}{folder}")
        except FileNotFoundError:
            return []
        paths = sorted(path.removeprefix(stem) for path in found if path.startswith(stem))
        return [path for path in paths if not any(part.startswith(".") for part in path.split("/"))]

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open a file, or a range of its lines, for streaming.

        Raises:
            CorruptFile: when the file is missing; names it.
            Unreachable: when the transfer does not start, or stops before the end.
            BadInput: when the server cannot send a part of a file, and this one is larger than one
                read-ahead.
        """
        files, stem = self._place
        where, (whole, lines) = f"{self.root}/{path}", parsed(path)
        try:
            with (
                transport_errors_as_unreachable(where, midway=True),
                files.open(f"{stem}{whole}", "rb", block_size=BLOCK_BYTES) as stream,
            ):
                yield cast("BinaryIO", LinesOfRange(stream, lines)) if lines else stream
        except FileNotFoundError as error:
            raise CorruptFile(f"{where}: is missing") from without_address(error)
        except LcError:
            raise  # some of ours are OSErrors or ValueErrors too
        except ValueError as error:
            if "range requests" not in str(error):
                raise
            raise BadInput(f"{where}: {NO_RANGES}") from without_address(error)

    def read(self, path: str, *, most_bytes: int) -> bytes | None:
        """The whole of a small file, or None when it is missing.

        Raises:
            CorruptFile: when it is larger than ``most_bytes``.
        """
        if self.look(path) is None:
            return None
        with self.open(path) as stream:
            content = stream.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise CorruptFile(
                f"{self.root}/{path}: larger than {most_bytes:,} bytes, so it is not what it "
                "should be"
            )
        return content

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: when there is none.
            Unreachable: when the upstream itself cannot be reached.
            BadInput: when the server does not give it.
        """
        files, stem = self._place
        where = f"{self.root}/{path}"
        with transport_errors_as_unreachable(where):
            size = files.info(f"{stem}{path}").get("size")
        if size is None:
            raise BadInput(
                f"{where}: the server does not say how large it is: serve it with one that "
                "answers range requests, or from a folder"
            )
        return int(size)

    def ranges(self, pieces: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Bytes ``start`` to ``stop`` (exclusive) of files, cut off at their ends; all requested
        at once.

        Raises:
            FileNotFoundError: when one of the files is not there.
            Unreachable: when a transfer does not start, or stops before the end.
            BadInput: when the server sends whole files instead of parts.
        """
        files, stem = self._place
        paths, starts, stops = zip(*pieces, strict=True) if pieces else ((), (), ())
        found = files.cat_ranges(
            [f"{stem}{path}" for path in paths],
            list(starts),
            list(stops),
            on_error="return",
        )
        for answer, (path, start, stop) in zip(found, pieces, strict=True):
            if isinstance(answer, BaseException) and getattr(answer, "status", None) != _BEYOND:
                with transport_errors_as_unreachable(f"{self.root}/{path}"):
                    raise answer
            if not isinstance(answer, BaseException) and len(answer) > stop - start:
                raise BadInput(f"{self.root}/{path}: {NO_RANGES}")
        return [b"" if isinstance(answer, BaseException) else answer for answer in found]

    def marks(self, folder: str) -> dict[str, str] | None:
        """A mark of every file below ``folder`` that changes when the file does, by path; empty
        when there is no such folder.

        No file is opened or queried by itself: a folder on disk is walked, of a bucket the
        listing's pages are fetched again. A mark is the service's checksum, or size and time.

        Returns:
            Marks by path relative to the root; None for web servers, which cannot be listed.

        Raises:
            Unreachable: when it cannot be reached.
        """
        if self._is_a_web_server:
            return None
        files, stem = self._place
        top = f"{stem}{folder}"
        with transport_errors_as_unreachable(f"{self.root}/{folder}"):
            if "file" in self._protocols:
                return {f"{folder}/{path}": mark for path, mark in _walked(top)}
            files.invalidate_cache()  # of earlier listings in this process
            found = files.find(top, detail=True)
        return {
            f"{folder}/{path.removeprefix(top).lstrip('/')}": _mark(info)
            for path, info in found.items()
        }

    def _identity(
        self, path: str, info: Mapping[str, Any], trust_times: bool, expected: str
    ) -> str:
        if trust_times and "mtime" in info:
            return f"{BY_TIME}{info['mtime']!r}"
        for name in _IDENTITIES:
            if info.get(name):
                return f"{name.lower().removesuffix('hash')}:{info[name]}"
        if expected in _CRC32:
            with self.open(path) as stream:
                if crc32_of(stream) == _CRC32[expected]:
                    return expected
        sha256 = hashlib.sha256()
        with self.open(path) as stream:
            crc32 = crc32_of(stream, sha256)
        identity = f"sha256:{sha256.hexdigest()}"
        _CRC32[identity] = crc32
        return identity


def _files_below(top: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        if isinstance(error, PermissionError):
            raise error

    for folder, _, names in os.walk(top, onerror=refuse):
        yield from (f"{folder.rstrip('/')}/{name}" for name in names)


def _walked(top: str, below: str = "") -> Iterator[tuple[str, str]]:
    """Files of a folder on disk with size and time; a missing folder has none."""
    try:
        entries = os.scandir(f"{top}/{below}")
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir():
                yield from _walked(top, f"{below}{entry.name}/")
            else:
                stat = entry.stat()
                yield f"{below}{entry.name}", f"{stat.st_size}:{stat.st_mtime_ns}"


def _mark(info: Mapping[str, Any]) -> str:
    for name in _IDENTITIES:
        if info.get(name):
            return f"{name}:{info[name]}"
    times = (
        info[name] for name in ("mtime", "updated", "LastModified", "created") if info.get(name)
    )
    return f"{info.get('size')}:{next(times, '')}"


def with_retries(function: Callable[[Task], Result]) -> Callable[[Task], Result]:
    """Make a function of one task retry, after a pause, when upstream is unreachable; the function
    must be repeatable.
    """

    @functools.wraps(function)
    def run(task: Task) -> Result:
        import tenacity

        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Unreachable),
            wait=tenacity.wait_chain(*map(tenacity.wait_fixed, PAUSES_SECONDS)),
            stop=tenacity.stop_after_attempt(len(PAUSES_SECONDS) + 1),
            reraise=True,
        )
        return attempts(function, task)

    return run
