"""Errors of libraries and of the operating system, turned into this package's.

Each context manager here is named for what it does. The library's error stays the cause; where it
could hold credentials, its text without them does. Libraries are imported where something failed,
or where the caller has imported them already.

Here: what is raised by Arrow, decompressors, fsspec, DuckDB, clients of buckets and the operating
system. Not here: what a tokenizer raises (`lc_assets.tokens.tokenizers`, which knows no files).
"""

import contextlib
import errno
import gzip
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from lc_assets.errors import (
    BadInput,
    Busy,
    CorruptFile,
    LcError,
    NotWritable,
    StorageFull,
    Unreachable,
    without_secrets,
)

NOT_PARQUET = "not a readable Parquet file"
DAMAGED = "cut short or damaged; fetch it again"

_FULL = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EFBIG: ("a file would be larger than is allowed (ulimit -f)", "raise that limit"),
}
"""What is said, and what to do."""
_REFUSED = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
)
_OVERTAKEN = "another run has published this partition meanwhile; run this again"
_NO_OBJECT = "is missing, or the bucket is"
_NOT_ALLOWED = "not allowed; look at the credentials and at the bucket's permissions"
_GONE = (404, 410)
"""HTTP's answers for a file that does not exist."""


@contextlib.contextmanager
def library_errors_as_corrupt_file(
    where: object, problem: str = NOT_PARQUET, *, system_errors_too: bool = False
) -> Iterator[None]:
    """Raise `CorruptFile` where Arrow, a decompressor or FastWARC refuses a file's bytes.

    Args:
        where: names the file.
        problem: what to say of it.
        system_errors_too: whether an error of the operating system, such as a missing file, is
            damage as well: it is for a file that a receipt lists. Otherwise it passes.
    """
    try:
        yield
    except LcError:
        raise  # some are OSErrors or ValueErrors as well
    except _damage_errors() as error:
        raise CorruptFile(f"{where}: {problem}: {error}") from error
    except OSError as error:
        # Arrow and FastWARC report damage by a plain OSError without a number.
        is_damage = type(error) is OSError and error.errno is None
        if not is_damage and not system_errors_too:
            raise
        raise CorruptFile(f"{where}: {problem}: {error}") from error


@contextlib.contextmanager
def os_errors_as_lc_errors(path: Path) -> Iterator[None]:
    """Raise `StorageFull` or `NotWritable` where the disk, a quota or a file's allowed size is
    full, or a folder may not be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _storage_full(error.errno, path) from error
        if error.errno in _REFUSED:
            raise NotWritable(
                f"{error.filename or path}: {os.strerror(error.errno)}, while writing {path}: "
                "nothing was published; look at owner, permissions and mount of that folder and "
                "run it again"
            ) from error
        raise


@contextlib.contextmanager
def duckdb_errors_as_lc_errors(scratch: Path) -> Iterator[None]:
    """Raise `StorageFull`, `BadInput` or `CorruptFile` where DuckDB has no disk, no memory, or
    cannot read a table.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        for number in _FULL:
            if os.strerror(number) in first_line:
                raise _storage_full(number, scratch) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise BadInput(
                f"the query needs more memory, or more disk below the output: {first_line}"
            ) from error
        if isinstance(error, duckdb.IOException | duckdb.InvalidInputException):
            raise CorruptFile(f"a table cannot be read: {first_line}") from error
        raise


@contextlib.contextmanager
def google_errors_as_lc_errors(where: str) -> Iterator[None]:
    """Raise `Busy`, `CorruptFile`, `NotWritable` or `Unreachable` where Google Cloud Storage
    refuses something.
    """
    from google.api_core import exceptions as api
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption
    from requests.exceptions import RequestException

    try:
        yield
    except api.PreconditionFailed as error:
        raise Busy(f"{where}: {_OVERTAKEN}") from error
    except api.NotFound as error:
        raise CorruptFile(f"{where}: {_NO_OBJECT}") from error
    except (api.Forbidden, api.Unauthorized) as error:
        raise NotWritable(f"{where}: {_NOT_ALLOWED}") from error
    except DataCorruption as error:
        raise CorruptFile(
            f"{where}: arrived with another checksum than was sent; run it again"
        ) from error
    except GoogleAuthError as error:
        raise Unreachable(
            f"{where}: no credentials: run `gcloud auth application-default login`, or name a key "
            "file"
        ) from error
    except (api.GoogleAPIError, RequestException) as error:
        raise Unreachable(
            f"{where}: {type(error).__name__}; look whether the address is right and run it again"
        ) from error


@contextlib.contextmanager
def object_store_errors_as_lc_errors(where: str) -> Iterator[None]:
    """Raise `Busy`, `CorruptFile`, `NotWritable` or `Unreachable` where S3 or Azure refuses
    something. The library's errors hold whole addresses.
    """
    from obstore import exceptions as api

    try:
        yield
    except (api.AlreadyExistsError, api.PreconditionError) as error:
        raise Busy(f"{where}: {_OVERTAKEN}") from without_address(error)
    except FileNotFoundError as error:
        raise CorruptFile(f"{where}: {_NO_OBJECT}") from without_address(error)
    except (api.PermissionDeniedError, api.UnauthenticatedError) as error:
        raise NotWritable(f"{where}: {_NOT_ALLOWED}") from without_address(error)
    except api.BaseError as error:
        said = str(error).partition("\n")[0]
        raise Unreachable(
            f"{where}: {said}; look whether address and credentials are right and run it again"
        ) from without_address(error)


@contextlib.contextmanager
def transport_errors_as_unreachable(where: str, *, midway: bool = False) -> Iterator[None]:
    """Raise `Unreachable` where fsspec cannot reach a file, `BadInput` where its host does not
    exist, and `FileNotFoundError` where a server says itself that there is none.

    ``midway`` words the message for a file whose bytes stopped coming.
    """
    try:
        yield
    except LcError:
        raise  # some are OSErrors as well
    except FileNotFoundError as error:
        # fsspec says "not found" whatever went wrong over HTTP.
        cause = error.__cause__
        if cause is not None and isinstance(cause, _transport_errors()) and not _is_gone(cause):
            raise _unreachable(where, cause, midway=False) from without_address(error)
        raise FileNotFoundError(without_secrets(where)) from without_address(error)
    except _transport_errors() as error:
        if _is_gone(error):
            raise FileNotFoundError(without_secrets(where)) from without_address(error)
        raise _unreachable(where, error, midway) from without_address(error)


def _storage_full(number: int, path: Path) -> StorageFull:
    problem, remedy = _FULL[number]
    return StorageFull(
        f"{problem} while writing {path}: nothing was published; {remedy} and run it again"
    )


def _damage_errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa
    from isal import igzip_lib

    isal_error = cast("type[Exception]", igzip_lib.IsalError)
    return (pa.ArrowException, UnicodeDecodeError, EOFError, gzip.BadGzipFile, isal_error)


def without_address(error: BaseException) -> OSError:
    """An error's text for a traceback. The errors of transports hold whole addresses, and so
    credentials.
    """
    return OSError(without_secrets(f"{type(error).__name__}: {error}"))


def _unreachable(where: str, error: BaseException, midway: bool) -> LcError:
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    if _is_unknown_host(error):
        return BadInput(
            f"cannot reach {where}: no such host; correct the address (LC_UPSTREAM, --upstream, or "
            "the source's path), or check the network"
        )
    if midway:
        return Unreachable(f"{where}: could not be read to its end: {said}")
    return Unreachable(
        f"cannot reach {where}: {said}; look whether the address is right and run it again"
    )


def _is_unknown_host(error: BaseException | None) -> bool:
    """Whether a name server says that there is no such host: waiting does not help."""
    while error is not None:
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_gone(error: BaseException) -> bool:
    return getattr(error, "status", None) in _GONE


def _transport_errors() -> tuple[type[Exception], ...]:
    import aiohttp

    return (OSError, aiohttp.ClientError, TimeoutError, *_errors_of_buckets())


def _errors_of_buckets() -> Iterator[type[Exception]]:
    """What gcsfs and obstore raise and is no `OSError`; imported only when a bucket is read."""
    for module, name in (
        ("obstore.exceptions", "BaseError"),
        ("gcsfs.retry", "HttpError"),
        ("google.auth.exceptions", "GoogleAuthError"),
    ):
        if module in sys.modules:
            yield getattr(sys.modules[module], name)
