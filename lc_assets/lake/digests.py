"""SHA-256 digests of files, folders and values, in 64 hexadecimal digits; CRC-32 of files.

A folder's digest covers the sorted list of its files' relative paths, sizes and digests, so it
depends on neither the order of writing nor the folder's location. Files are identified by their
SHA-256, and compared with what was written by their CRC-32, which takes a seventh of the time.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from zlib_ng import zlib_ng

from lc_assets.errors import BadInput

_OUTSIDE = re.compile(r"(?:^|/)(?:\.{0,2})(?:/|$)|\0")
"""An empty name, ``.`` or ``..`` anywhere in a path; an absolute path begins with an empty name."""

SHORT = 12
"""Hexadecimal digits of a digest in messages and folder names (48 bits)."""

BLOCK_BYTES = 1 << 18
"""Read at a time: fits into a processor's cache."""

ASIDE = (".sweep.parquet", "shards.jsonl", ".crc32")
"""Suffixes of files that later stages do not depend on: verified like all others, but not part of
the digest that makes later stages stale.

Another threshold that keeps the same documents changes the sweep and the shards' fingerprints;
nothing downstream has to be rebuilt for that.
"""


class FileFact(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One file of a published folder.

    Attributes:
        path: relative, with ``/``.
        n_bytes: its size.
        sha256: in hexadecimal digits.
        crc32: gzip's (RFC 1952), in hexadecimal digits; empty in receipts of older releases.

    Raises:
        BadInput: when the path leads out of the folder, since receipts say where files are fetched
            to.
    """

    path: str
    n_bytes: int
    sha256: str
    crc32: str = ""

    def __post_init__(self) -> None:
        if _OUTSIDE.search(self.path):
            raise BadInput(f"{self.path[:200]!r} is not a path of a file within a folder")


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a local file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def crc32_of_file(path: Path, *others: Any) -> str:
    """CRC-32 of a local file, see `crc32_of`."""
    with path.open("rb", buffering=0) as stream:
        return crc32_of(stream, *others, n_bytes=os.fstat(stream.fileno()).st_size)


def crc32_of(stream: Any, *others: Any, n_bytes: int = BLOCK_BYTES) -> str:
    """CRC-32 of what is left of a stream, of about ``n_bytes``, in hexadecimal digits; ``others``
    are updated with the same blocks.
    """
    crc32 = 0
    # A new block each time would cost as much as reading.
    block = memoryview(bytearray(min(BLOCK_BYTES, max(n_bytes, 1))))
    while n_read := stream.readinto(block):
        crc32 = zlib_ng.crc32(block[:n_read], crc32)
        for hasher in others:
            hasher.update(block[:n_read])
    return f"{crc32:08x}"


def fact_of(folder: Path, path: str, known: FileFact | None = None) -> FileFact:
    """Facts of one file, relative to ``folder``; reads all of it, unless those that are ``known``
    are of the same size.
    """
    n_bytes, sha256 = (folder / path).stat().st_size, hashlib.sha256()
    if known is not None and known.n_bytes == n_bytes:
        return known
    crc32 = crc32_of_file(folder / path, sha256)
    return FileFact(path, n_bytes, sha256.hexdigest(), crc32)


def is_unchanged(path: Path, fact: FileFact) -> bool:
    """Whether there is a file with these bytes; reads all of it, for its CRC-32 where the fact has
    one, else for its SHA-256.
    """
    if not path.is_file() or path.stat().st_size != fact.n_bytes:
        return False
    if fact.crc32:
        return crc32_of_file(path) == fact.crc32
    return sha256_of_file(path) == fact.sha256


def matching(files: Iterable[FileFact], patterns: Sequence[str]) -> list[FileFact]:
    """The files whose paths match one of the patterns: names, of which there may be ten thousand,
    or patterns with ``*`` (`fnmatch`).
    """
    names = set(patterns)
    wild = [pattern for pattern in patterns if "*" in pattern]
    return [
        fact
        for fact in files
        if fact.path in names or (wild and any(fnmatchcase(fact.path, of) for of in wild))
    ]


def digest_of_facts(facts: Iterable[FileFact]) -> str:
    """One digest of a list of files, without those that are `ASIDE`."""
    counted = [fact for fact in sorted(facts) if not fact.path.endswith(ASIDE)]
    return digest_of([[fact.path, fact.n_bytes, fact.sha256] for fact in counted])


def digest_of(value: Any) -> str:
    """Digest of a JSON-like value; the order of dictionaries does not matter.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(
        msgspec.to_builtins(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_set(marks: Iterable[tuple[str, str]]) -> str:
    """Digest of names and their marks in any order: the sum of each pair's SHA-256, in linear time
    without sorting.

    It detects accidental changes, not attacks: names with a given sum can be constructed.

    >>> digest_of_set([("a", "1"), ("b", "2")]) == digest_of_set([("b", "2"), ("a", "1")])
    True
    >>> digest_of_set([("a", "1"), ("b", "2")]) == digest_of_set([("a", "2"), ("b", "1")])
    False
    """
    total = sum(
        int.from_bytes(hashlib.sha256(f"{len(name)} {name}{mark}".encode()).digest())
        for name, mark in marks
    )
    return f"{total % (1 << 256):064x}"


def short(digest: str) -> str:
    """The first digits of a digest."""
    return digest[:SHORT]


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Sorted names whose values differ between two flat mappings, or that only one of them has."""
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
