"""The environment that a cluster's workers must share: code, Python, libraries and folders.

A worker with different code would publish different bytes under this code version, and one that
cannot access the lake would write to an unrelated folder. Both are errors before the first task,
checked once per worker.
"""

import contextlib
import hashlib
import platform
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from lc_assets.errors import WorkerUnfit
from lc_assets.publishing import publish_bytes

SOURCES = {".py", ".toml", ".txt", ".json", ".j2"}
"""Suffixes of the package's files that determine what it writes."""

SIGNS = ".workers"
"""Folder within each output folder, with files by which workers recognize it."""


class Environment(NamedTuple):
    """What must be the same in every worker.

    Attributes:
        python: the full version: some libraries' iteration order and hashes differ between patch
            versions.
        code: SHA-256 of all sources of this package.
        libraries: those that shape bytes with their versions, ``none`` where one is not installed.
        signs: a file in every output folder; its content is its own name.
        sees: input folders, which must exist.
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
    """This process's environment, with signs in the folders until the block ends."""
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
    """Require that this process has the environment of the submitting one; success is remembered.

    Raises:
        WorkerUnfit: names the host and what differs.
    """
    host = socket.gethostname()
    if (found := platform.python_version()) != wanted.python:
        raise WorkerUnfit(
            f"the worker on {host} runs Python {found}, expected {wanted.python}: give it the "
            "image of the submitting process"
        )
    if code_digest() != wanted.code:
        raise WorkerUnfit(
            f"the worker on {host} has another version of lc_assets: give it that of the "
            "submitting process"
        )
    for (name, version), (_, expected) in zip(
        _versions([name for name, _ in wanted.libraries]), wanted.libraries, strict=True
    ):
        if version != expected:
            raise WorkerUnfit(
                f"the worker on {host} has {name} {version}, expected {expected}: its bytes could "
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
    root, digest = Path(str(resources.files("lc_assets"))), hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in SOURCES:
            name = path.relative_to(root).as_posix().encode()
            digest.update(name + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def versions_of(libraries: tuple[str, ...]) -> Mapping[str, str]:
    """Versions of the installed ones of these libraries, by name; looked up once."""
    from importlib import metadata

    found = {}
    for name in libraries:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
