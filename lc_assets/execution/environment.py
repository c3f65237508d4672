"""Whether a worker elsewhere may do this process's work: the same code, the same Python, the same
folders. Asked once per worker.

A worker with other code would publish other bytes under this code's name, and one that does not see
the lake would fill a folder that nobody reads. Both are said before anything is done.
"""

import contextlib
import hashlib
import platform
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple

from lc_assets.errors import WorkerUnfit
from lc_assets.publishing import publish_bytes

SIGNS: Final = ".workers"
"""Folder, beside what is published, of the signs by which workers know a shared folder."""


class Environment(NamedTuple):
    """What must be the same here and there.

    Attributes:
        python: version, all of it: iteration order and hashes of some libraries differ between
            small ones.
        code: SHA-256 of all sources of this package.
        libraries: those that shape bytes, each with its version, ``none`` where it is not
            installed.
        signs: a file in every folder that is written to; its content is its own name.
        sees: folders that are read, and must be there.
    """

    python: str
    code: str
    libraries: tuple[tuple[str, str], ...]
    signs: tuple[Path, ...] = ()
    sees: tuple[Path, ...] = ()


@contextlib.contextmanager
def current_environment(
    *, libraries: Sequence[str], folders: Sequence[Path], sees: Sequence[Path]
) -> Iterator[Environment]:
    """What workers must be like, while work is going on; signs are in the folders for as long."""
    signs = tuple(folder / SIGNS / secrets.token_hex(8) for folder in folders)
    try:
        for sign in signs:
            publish_bytes(sign, sign.name.encode())
        yield Environment(
            platform.python_version(), code_digest(), _versions(libraries), signs, tuple(sees)
        )
    finally:
        for sign in signs:
            sign.unlink(missing_ok=True)


@cache
def require_same_environment(wanted: Environment) -> None:
    """Raise unless this process is like the one that asks; what was found right is not looked at
    again.

    Raises:
        WorkerUnfit: says on which host what differs, and what to do.
    """
    host = socket.gethostname()
    if (found := platform.python_version()) != wanted.python:
        raise WorkerUnfit(
            f"the worker on {host} runs Python {found}, wanted {wanted.python}: give it the image "
            "of the process that asks"
        )
    if code_digest() != wanted.code:
        raise WorkerUnfit(
            f"the worker on {host} has another version of lc_assets: give it the one of the "
            "process that asks"
        )
    for (name, version), (_, expected) in zip(
        _versions([name for name, _ in wanted.libraries]), wanted.libraries, strict=True
    ):
        if version != expected:
            raise WorkerUnfit(
                f"the worker on {host} has {name} {version}, wanted {expected}: its bytes could "
                "differ"
            )
    unseen = [
        *(sign.parents[1] for sign in wanted.signs if not _is_seen(sign)),
        *(folder for folder in wanted.sees if not folder.is_dir()),
    ]
    if unseen:
        raise WorkerUnfit(
            f"the worker on {host} does not see {unseen[0]}: mount the same folder there under "
            "the same path"
        )


def _versions(libraries: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = versions_of(tuple(libraries))
    return tuple((name, found.get(name, "none")) for name in libraries)


def _is_seen(sign: Path) -> bool:
    try:
        return sign.read_bytes() == sign.name.encode()
    except OSError:
        return False


@cache
def code_digest() -> str:
    """SHA-256 of all sources of this package, by path; 20 ms, once per process."""
    digest = hashlib.sha256()
    for path, file in sorted(_sources(resources.files("lc_assets"), "")):
        digest.update(path.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{path}{entry.name}/")
        elif entry.name.endswith((".py", ".toml", ".txt", ".j2")):
            yield f"{path}{entry.name}", entry


@cache
def versions_of(libraries: tuple[str, ...]) -> Mapping[str, str]:
    """Versions of libraries by name, those that are installed here; asked once."""
    found = {}
    for name in libraries:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
