"""SHA-256 digests of files, folders and values, in 64 hexadecimal digits.

A folder's digest covers the sorted list of its files' relative paths, sizes and digests, so it
depends on neither the order of writing nor the folder's location.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.errors import BadInput

_OUTSIDE = re.compile(r"(?:^|/)(?:\.{0,2})(?:/|$)|\0")
"""An empty name, ``.`` or ``..`` anywhere in a path; an absolute path begins with an empty name."""

SHORT = 12
"""Hexadecimal digits of a digest in messages and folder names (48 bits)."""

ASIDE = (".sweep.parquet", "shards.jsonl", ".crc32")
"""Suffixes of files that later stages do not depend on: verified like all others, but not part of
the digest that makes later stages stale.

Another threshold that keeps the same documents changes the sweep and the shards' fingerprints;
nothing downstream has to be rebuilt for that.
"""


class FileFact(msgspec.Struct, frozen=True, order=True):
    """One file of a published folder: relative path with ``/``, size in bytes, SHA-256.

    Raises:
        BadInput: when the path leads out of the folder, since receipts say where files are fetched
            to.
    """

    path: str
    n_bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if _OUTSIDE.search(self.path):
            raise BadInput(f"{self.path[:200]!r} is not a path of a file within a folder")


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a local file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_facts(
    folder: Path, *, leave_out: Iterable[str] = (), known: Mapping[str, FileFact] | None = None
) -> list[FileFact]:
    """Facts of every file below ``folder``, sorted by path.

    Args:
        folder: to walk through.
        leave_out: names of files and folders to ignore.
        known: facts by path of files that were read after they were written; those of the same
            size are not read again.
    """
    skipped = set(leave_out)
    relative = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    paths = [path.as_posix() for path in relative if skipped.isdisjoint(path.parts)]
    return sorted(fact_of(folder, path, (known or {}).get(path)) for path in paths)


def fact_of(folder: Path, path: str, known: FileFact | None = None) -> FileFact:
    """Facts of one file, relative to ``folder``; reads all of it, unless those that are ``known``
    are of the same size.
    """
    n_bytes = (folder / path).stat().st_size
    if known is not None and known.n_bytes == n_bytes:
        return known
    return FileFact(path, n_bytes, sha256_of_file(folder / path))


def is_unchanged(folder: Path, fact: FileFact) -> bool:
    """Whether a file is there with these bytes; reads all of it."""
    return (folder / fact.path).is_file() and fact_of(folder, fact.path) == fact


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
