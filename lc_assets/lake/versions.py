"""Versions: folders that were finished, with the files that their receipts promise, wherever these
are kept.

A folder without a receipt is no version. Which one is published is not said here
(`lc_assets.lake.lake`).
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.lake.digests import FileFact, digest_of_facts, file_facts, short
from lc_assets.lake.receipts import (
    NOT_COUNTED,
    RECEIPT,
    Fingerprint,
    Receipt,
    decode_json,
    encode_json,
    has_valid_checksum,
)
from lc_assets.publishing import publish_bytes


class FileStore(Protocol):
    """Who keeps the files of versions, where they lie somewhere else than in the version's
    folder.
    """

    def fetch(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """See to it that those files lie in ``home`` whose paths match one of the patterns."""
        ...

    def where(self, home: Path) -> str:
        """Where that is, for people."""
        ...

    def sizes(self, home: Path) -> dict[str, int]:
        """Size of every file that is kept, by its path."""
        ...

    def damage(self, home: Path, receipt: Receipt) -> list[str]:
        """How what is kept differs from the receipt, one sentence each, as far as copies in
        ``home`` cannot show.
        """
        ...


@dataclass(frozen=True, slots=True)
class FilesAtHand:
    """A lake that is a folder has its files at hand."""

    def fetch(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """Nothing is to be done."""

    def where(self, home: Path) -> str:
        """The folder."""
        return str(home)

    def sizes(self, home: Path) -> dict[str, int]:
        """Size of every file there."""
        return {
            path.relative_to(home).as_posix(): path.stat().st_size
            for path in home.rglob("*")
            if path.is_file()
        }

    # There is nothing beside the folder.
    def damage(self, home: Path, receipt: Receipt) -> list[str]:  # noqa: ARG002
        """There is nothing else to look at."""
        return []


@dataclass(frozen=True, slots=True)
class Published:
    """One published version.

    Attributes:
        home: its folder; of a lake in a bucket it holds what has been fetched so far.
        receipt: what it is.
        store: of the files of a version that lies elsewhere.
    """

    home: Path
    receipt: Receipt
    store: FileStore = field(default=FilesAtHand(), compare=False, repr=False)

    @property
    def folder(self) -> Path:
        """The version's folder with all of its files in it; those that lie in a bucket only are
        fetched first.
        """
        return self.only("*")

    def only(self, *patterns: str) -> Path:
        """The version's folder with those files in it whose relative paths match a pattern, as
        `fnmatch` has it.
        """
        self.store.fetch(self.home, self.receipt, patterns)
        return self.home

    @property
    def where(self) -> str:
        """Where it lies, for people: its folder's path, or a bucket's URL."""
        return self.store.where(self.home)

    @property
    def version(self) -> str:
        """Name of the version."""
        return self.home.name

    @property
    def name(self) -> str:
        """``filtered_documents/2023-06``: how the version is named as an input of others."""
        return f"{self.receipt.fingerprint.stage}/{self.receipt.fingerprint.key}"

    @property
    def digest(self) -> str:
        """The data version."""
        return self.receipt.digest

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Open a version's folder.

        Raises:
            NotPublished: when it holds no receipt, so was never finished.
            CorruptFile: when the receipt cannot be read.
        """
        path = folder / RECEIPT
        _require_finished(path)
        return cls(folder, decode_json(path, Receipt))

    def differences(self) -> list[str]:
        """Say, one sentence each, by which names and sizes its files differ from the receipt; reads
        none of them.
        """
        promised = {fact.path: fact.n_bytes for fact in self.receipt.files}
        found = {
            path: n_bytes
            for path, n_bytes in self.store.sizes(self.home).items()
            if path.split("/")[0] not in NOT_COUNTED
        }
        both = sorted(promised.keys() & found.keys())
        wrong = [
            f"{path}: {found[path]:,} bytes, receipt says {promised[path]:,}"
            for path in both
            if promised[path] != found[path]
        ]
        return [*_missing_and_foreign(promised, found), *wrong]

    def damage(self) -> list[str]:
        """Re-read every file and say, one sentence each, how it differs from the receipt, and the
        receipt from itself; empty when whole.
        """
        if lost := self.store.damage(self.home, self.receipt):
            return self._contradictions() + lost
        promised = {fact.path: fact for fact in self.receipt.files}
        found = {fact.path: fact for fact in file_facts(self.folder, leave_out=NOT_COUNTED)}
        both = sorted(promised.keys() & found.keys())
        wrong = [
            f"{path}: {_difference(promised[path], found[path])}"
            for path in both
            if promised[path] != found[path]
        ]
        return [*self._contradictions(), *_missing_and_foreign(promised, found), *wrong]

    def _contradictions(self) -> list[str]:
        """What the receipt says of itself and cannot be: its digest is that of its files, its
        fingerprint names its folder.
        """
        pairs = {
            "the digest of its files": (digest_of_facts(self.receipt.files), self.digest),
            "the version of its fingerprint": (self.receipt.fingerprint.version, self.version),
        }
        wrong = [
            f"{RECEIPT}: {what} is {short(ours)}, not {short(said)}"
            for what, (ours, said) in pairs.items()
            if ours != said
        ]
        return wrong or (
            []
            if has_valid_checksum(self._receipt_bytes(), self.receipt)
            else [f"{RECEIPT}: its content does not match its checksum"]
        )

    def _receipt_bytes(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return (self.home / RECEIPT).read_bytes()
        return b""


def write_receipt(folder: Path, receipt: Receipt) -> Published:
    """Write the receipt that makes ``folder`` a finished version."""
    publish_bytes(folder / RECEIPT, encode_json(receipt))
    return Published(folder, receipt)


MOST_NAME_BYTES: Final = 200
"""Of a folder of a lake."""


def folder_named(name: str) -> str:
    """The name of a stage's or a partition's folder, as it stands in a release or a mix.

    >>> folder_named("2023-06")
    '2023-06'

    Raises:
        BadInput: when it is none, such as one that leads elsewhere.
    """
    if (
        name in {"", ".", ".."}
        or any(character in name for character in "/\\\0")
        or _is_too_long(name)
    ):
        raise BadInput(f"{name[:200]!r} is not the name of a stage or a partition")
    return name


def version_named(name: str, path: Path | str) -> str:
    """A version's name as it stands in a pointer.

    Raises:
        BadInput: when it is none, such as one that leads elsewhere.
    """
    if not name.isalnum() or _is_too_long(name):
        raise BadInput(f"{path}: {name[:200]!r} is not a version's name")
    return name


def _is_too_long(name: str) -> bool:
    """File systems take 255 bytes and say so by an error of their own; drafts have names that are
    longer still.
    """
    return len(name.encode("utf-8", "replace")) > MOST_NAME_BYTES


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner asks of a receipt: it skips 15,000 files five times as fast as `Receipt` reads
    them.
    """

    fingerprint: Fingerprint
    digest: str
    measured: dict[str, float] = {}


def read_summary(path: Path) -> Receipt:
    """The head of a receipt, without counts and files; kept in memory while the file stands.

    Raises:
        NotPublished: when there is none.
        CorruptFile: when it cannot be read.
    """
    _require_finished(path)
    stat = path.stat()
    return _decoded_head(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=1 << 14)
def _decoded_head(path: Path, _mtime_ns: int, _n_bytes: int) -> Receipt:
    """A receipt without counts and files; 14 kB in memory where a snapshot is one of 84."""
    head = decode_json(path, _Head, called="receipt")
    return Receipt(
        fingerprint=head.fingerprint,
        digest=head.digest,
        files=[],
        counts=Counts(),
        measured=head.measured,
    )


def _require_finished(path: Path) -> None:
    if not path.is_file():
        raise NotPublished(f"{path.parent}: no {RECEIPT}, so this is not a finished version")


def finished_at(folder: Path) -> Published | None:
    """The version in a folder when it was finished; one whose receipt is damaged was not."""
    with contextlib.suppress(NotPublished, CorruptFile):
        return Published.at(folder)
    return None


def _missing_and_foreign(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{path}: missing" for path in sorted(promised.keys() - found.keys()))
    yield from (f"{path}: not in the receipt" for path in sorted(found.keys() - promised.keys()))


def _difference(promised: FileFact, found: FileFact) -> str:
    if promised.n_bytes != found.n_bytes:
        return f"{found.n_bytes:,} bytes, receipt says {promised.n_bytes:,}"
    return f"digest {short(found.sha256)}, receipt says {short(promised.sha256)}"
