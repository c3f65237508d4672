"""Versions: finished folders with the files that their receipts list, in a folder or a bucket.

A folder without a receipt is not a version. Which version is published is decided by
`lc_assets.lake.partition`.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile, DamagedInput, NotPublished
from lc_assets.lake.digests import FileFact, is_unchanged, matching, short
from lc_assets.lake.receipts import (
    NOT_COUNTED,
    RECEIPT,
    Fingerprint,
    Receipt,
    decode_bytes,
    decode_json,
    encode_json,
    has_valid_checksum,
    version_files,
)
from lc_assets.publishing import publish_bytes
from lc_assets.records import frozen

T = TypeVar("T")

Verifier = Callable[[Path, list[FileFact]], list[FileFact]]
VERIFIER: ContextVar[Verifier | None] = ContextVar("VERIFIER", default=None)
"""While a stage is built: compares files of a version's folder with the facts in its receipt before
they are read; returns those that are damaged or missing.
"""


def damaged_inputs(home: Path, files: list[FileFact]) -> list[FileFact]:
    """Those of a version's files that are damaged or missing, if a stage is being built."""
    verify = VERIFIER.get()
    return verify(home, files) if verify else []


def how_to_repair(where: str) -> str:
    """What to do about a damaged version at a path or URL."""
    return f"build it again with `lc rebuild --repair --verify --lake {where.rsplit('/', 3)[0]}`"


class VersionFiles:
    """Access to the files of a version in a folder; `lc_assets.lake.bucket_lake` has another."""

    def fetch(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """Make the files available in ``home`` whose paths match one of the patterns, and verified
        if a stage is being built.

        Raises:
            DamagedInput: when a file is missing or differs from its receipt; names it.
        """
        if VERIFIER.get() is None:
            return
        files = receipt.files or Published.at(home).receipt.files  # a summary has none
        for damaged in damaged_inputs(home, matching(files, patterns)):
            path = home / damaged.path
            what = "differs from" if path.is_file() else "is missing but named by"
            raise DamagedInput(
                f"{path}: {what} its receipt, which says {damaged.n_bytes:,} bytes, digest "
                f"{short(damaged.sha256)}: {how_to_repair(self.where(home))}"
            )

    def where(self, home: Path) -> str:
        """Location of the files, for messages: a path or a URL."""
        return str(home)

    def sizes(self, home: Path) -> dict[str, int]:
        """Size of every file by its path."""
        files = (path for path in home.rglob("*") if path.is_file())
        return {path.relative_to(home).as_posix(): path.stat().st_size for path in files}

    def lost(self, home: Path) -> list[str]:
        """Files that are missing or not as long as the receipt says; one `os.stat` per file, as
        planners ask often.
        """
        files = decode_json(home / RECEIPT, Receipt).files
        return [fact.path for fact in files if _size(f"{home}/{fact.path}") != fact.n_bytes]

    def damaged(self, home: Path, receipt: Receipt, *, verify: bool) -> list[str]:
        """Files that are missing or truncated, or, with ``verify``, have other bytes."""
        if not verify:
            return self.lost(home)
        return [fact.path for fact in receipt.files if not is_unchanged(home / fact.path, fact)]

    def damage(self, home: Path, receipt: Receipt) -> list[str]:  # noqa: ARG002 - of buckets
        """How stored files differ from the receipt where the copies in ``home`` do not show it, one
        sentence each.
        """
        return []


@frozen
class Published:
    """One published version.

    Attributes:
        home: its folder; for a lake in a bucket, it contains the files fetched so far.
        receipt: the version's receipt.
        store: gives access to its files.
    """

    home: Path
    receipt: Receipt
    store: VersionFiles = field(default=VersionFiles(), compare=False, repr=False)

    @property
    def folder(self) -> Path:
        """The version's folder with all its files; those that are only in a bucket are fetched."""
        return self.only("*")

    def only(self, *patterns: str) -> Path:
        """The version's folder with those files whose relative paths match a pattern
        (`fnmatch`).
        """
        self.store.fetch(self.home, self.receipt, patterns)
        return self.home

    @property
    def where(self) -> str:
        """Its location, for messages: its folder's path, or a bucket's URL."""
        return self.store.where(self.home)

    @property
    def version(self) -> str:
        """Name of the version."""
        return self.home.name

    @property
    def stage(self) -> str:
        """Name of its stage."""
        return self.receipt.fingerprint.stage

    @property
    def key(self) -> str:
        """Its partition."""
        return self.receipt.fingerprint.key

    @property
    def name(self) -> str:
        """``filtered_documents/2023-06``: its name as an input of other versions."""
        return f"{self.stage}/{self.key}"

    @property
    def digest(self) -> str:
        """The data version."""
        return self.receipt.digest

    @property
    def params(self) -> dict[str, Any]:
        """The settings that it was made by."""
        return self.receipt.fingerprint.params

    @property
    def counts(self) -> Counts:
        """What was seen, kept and dropped; zeros in a summary."""
        return self.receipt.counts

    @classmethod
    def at(cls, folder: Path, where: str = "") -> Self:
        """Open a version's folder, or a copy of what is ``where``, for messages.

        Raises:
            NotPublished: when it has no receipt, so was never finished.
            CorruptFile: when the receipt cannot be read.
        """
        return cls(folder, _read_receipt(folder / RECEIPT, Receipt, where))

    def lost_files(self) -> list[str]:
        """Files that are missing or truncated. In a bucket none are looked for: files are uploaded
        whole, and a listing per plan would be slow.
        """
        return self.store.lost(self.home)

    def damaged_files(self, *, verify: bool) -> list[str]:
        """See `VersionFiles.damaged`; with ``verify`` also a damaged receipt."""
        receipt = [RECEIPT] if verify and self.contradictions() else []
        return receipt + self.store.damaged(self.home, self.receipt, verify=verify)

    def differences(self) -> list[str]:
        """How its files differ from the receipt in names and sizes, one sentence each."""
        found = self.store.sizes(self.home).items()
        return _deviations(
            {fact.path: fact.n_bytes for fact in self.receipt.files},
            {path: n_bytes for path, n_bytes in found if path.split("/")[0] not in NOT_COUNTED},
            lambda promised, found: f"{found:,} bytes, receipt says {promised:,}",
        )

    def damage(self) -> list[str]:
        """Read every file again and describe how it differs from the receipt, and the receipt from
        itself, one sentence each; empty when the version is intact.
        """
        if lost := self.store.damage(self.home, self.receipt):
            return self.contradictions() + lost
        promised, found = (
            {fact.path: (fact.n_bytes, fact.sha256) for fact in facts}
            for facts in (self.receipt.files, version_files(self.folder))
        )
        return self.contradictions() + _deviations(promised, found, _difference)

    def contradictions(self) -> list[str]:
        """How the receipt, which matches its checksum, contradicts the name of its folder."""
        ours = self.receipt.fingerprint.version
        if ours == self.version:
            return []
        return [f"{RECEIPT}: the version of its fingerprint is {ours}, not {self.version}"]


def write_receipt(folder: Path, receipt: Receipt) -> Published:
    """Write the receipt that makes ``folder`` a finished version."""
    publish_bytes(folder / RECEIPT, encode_json(receipt))
    return Published(folder, receipt)


MOST_NAME_BYTES = 200
"""Of the name of a lake's folder. File systems allow 255, and names of unfinished files are
longer.
"""


def folder_named(name: str) -> str:
    """The name of a stage's or a partition's folder, as stated by a release or a mix.

    >>> folder_named("2023-06")
    '2023-06'

    Raises:
        BadInput: when it cannot be one, for example because it leads elsewhere.
    """
    if (
        name in {"", ".", ".."}
        or any(character in name for character in "/\\\0")
        or _is_too_long(name)
    ):
        raise BadInput(f"{name[:200]!r} is not the name of a stage or a partition")
    return name


def version_named(name: str, path: Path | str) -> str:
    """A version's name, as stated by a pointer.

    Raises:
        BadInput: when it cannot be one, for example because it leads elsewhere.
    """
    if not name.isalnum() or _is_too_long(name):
        raise BadInput(f"{path}: {name[:200]!r} is not a version's name")
    return name


def _is_too_long(name: str) -> bool:
    return len(name.encode("utf-8", "replace")) > MOST_NAME_BYTES


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a receipt that a planner needs: decoding skips 15,000 files, five times as fast
    as `Receipt`.
    """

    fingerprint: Fingerprint
    digest: str
    libraries: dict[str, str] = {}
    measured: dict[str, float] = {}


def _size(path: str) -> int | None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return os.stat(path).st_size  # noqa: PTH116 - three times as fast
    return None


def read_summary(path: Path) -> Receipt:
    """A receipt without counts and files; kept in memory until the file changes.

    Raises:
        NotPublished: when there is none.
        CorruptFile: when it cannot be read.
    """
    stat = path.stat() if path.is_file() else None
    return _decoded_head(path, stat and (stat.st_mtime_ns, stat.st_size))


@functools.lru_cache(maxsize=1 << 14)
def _decoded_head(path: Path, _state: tuple[int, int] | None) -> Receipt:
    """Takes 14 kB in memory in a lake of 84 snapshots."""
    head = _read_receipt(path, _Head)
    return Receipt(
        fingerprint=head.fingerprint,
        digest=head.digest,
        files=[],
        counts=Counts(),
        libraries=head.libraries,
        measured=head.measured,
    )


def _read_receipt(path: Path, kind: type[T], where: str = "") -> T:
    if not path.is_file():
        raise NotPublished(f"{path.parent}: no {RECEIPT}, so this is not a finished version")
    return decode_receipt(path.read_bytes(), kind, where or str(path.parent))


def decode_receipt(content: bytes, kind: type[T], where: str) -> T:
    """The receipt of the version at a path or URL, all of it or the fields that ``kind`` has.

    Raises:
        CorruptFile: when it is not JSON, lacks a field or does not match its checksum.
    """
    path, repair = f"{where}/{RECEIPT}", how_to_repair(where)
    try:
        receipt = decode_bytes(content, kind, path, called="receipt")
    except CorruptFile as error:
        raise CorruptFile(f"{error}: {repair}") from error
    if has_valid_checksum(content):
        return receipt
    raise CorruptFile(f"{path}: its content does not match its checksum: {repair}")


def _deviations(
    promised: Mapping[str, Any], found: Mapping[str, Any], difference: Callable[[Any, Any], str]
) -> list[str]:
    """Missing, unlisted and changed files, one sentence each."""
    return [
        *(f"{path}: missing" for path in sorted(promised.keys() - found.keys())),
        *(f"{path}: not in the receipt" for path in sorted(found.keys() - promised.keys())),
        *(
            f"{path}: {difference(promised[path], found[path])}"
            for path in sorted(promised.keys() & found.keys())
            if promised[path] != found[path]
        ),
    ]


def _difference(promised: tuple[int, str], found: tuple[int, str]) -> str:
    if promised[0] != found[0]:
        return f"{found[0]:,} bytes, receipt says {promised[0]:,}"
    return f"digest {short(found[1])}, receipt says {short(promised[1])}"
