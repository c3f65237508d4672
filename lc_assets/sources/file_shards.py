"""Shards of a partition of plain files: a file is one, unless it is large or small.

Tables, receipts and checks of a shard cost as much as a thousand short documents. So many small
files share shards, and cost what they hold.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import SUFFIXES, TEXT
from lc_assets.vocabulary import is_free_shard_name

KNOWN = (*SUFFIXES, *TEXT)
SHARD_NAME_CHARS = 60
FEW = 64
"""Fewer small files of a partition have a shard each."""

SHARD_BYTES = 4 << 20
SHARD_FILES = 128
"""Files of a shard, on average."""


def shared_shards(sizes: Mapping[str, int], small_bytes: int) -> list[list[str]]:
    """Which files share shards.

    A shard ends before it would exceed `SHARD_BYTES`, and where the digest of a path says so: so
    that a new file changes a few shards, not all that follow.

    Args:
        sizes: bytes of the files of a partition, by path.
        small_bytes: files of fewer bytes are small.

    Returns:
        The paths of each shard of several files, sorted.
    """
    small = sorted(path for path, size in sizes.items() if size < small_bytes)
    found = _cut(small, sizes) if len(small) >= FEW else ()
    return [paths for paths in found if len(paths) > 1]


def _cut(paths: list[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    shard, n_bytes = list[str](), 0
    for path in paths:
        n_bytes += sizes[path]
        if shard and (n_bytes > SHARD_BYTES or _begins(path)):
            yield shard
            shard, n_bytes = [], sizes[path]
        shard.append(path)
    yield shard


def _begins(path: str) -> bool:
    """Whether a shard begins at a file, wherever the one before it began."""
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8]) % SHARD_FILES == 0


def shard_names(paths: Iterable[str]) -> dict[str, str]:
    """A safe and unique shard name for each path.

    >>> shard_names(["a/part-0.jsonl.gz", "b.jsonl", "b.parquet"])
    {'a/part-0.jsonl.gz': 'a-part-0', 'b.jsonl': 'b-19c2b9b9', 'b.parquet': 'b-5bf4417d'}
    """
    plain = {path: _plain_name(path) for path in paths}
    counts = Counter(name.lower() for name in plain.values())
    names = {
        path: name
        if counts[name.lower()] == 1 and len(name) <= SHARD_NAME_CHARS and is_free_shard_name(name)
        else f"{name[:SHARD_NAME_CHARS].strip('-') or 'file'}-{_short_digest(path)}"
        for path, name in plain.items()
    }
    require_unique(list(names.values()))
    return names


def require_unique(names: list[str]) -> None:
    """Refuse names that two shards would have."""
    if twice := sorted(name for name, n in Counter(names).items() if n > 1):
        raise BadInput(
            f"files of one partition would get one shard's name: {', '.join(twice[:10])}"
        )


def _plain_name(path: str) -> str:
    suffix = next((suffix for suffix in KNOWN if path.endswith(suffix)), "")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.removesuffix(suffix)).strip("-_")
    return f"file-{name}" if name.startswith("longpack-") else name


def _short_digest(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:8]
