"""Where the files of a shard are, relative to the root of the data set, and which shards a snapshot
has. Every path is made of a parsed `Shard` or `SnapshotId`, so nothing from a listing becomes part
of a path unchecked.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.vocabulary import Shard, SnapshotId

LISTING: Final = re.compile(r"[a-z]{2}-(?P<snapshot>.+)-(?:head_middle|tail)\.txt", re.ASCII)
"""Name of a listing."""


def documents_path(shard: Shard) -> str:
    """Path of a shard's documents.

    >>> documents_path(Shard.parse("2023-06/0000/en_head"))
    'documents/2023-06/0000/en_head.json.gz'
    """
    return f"documents/{shard.tag}.json.gz"


def signals_path(shard: Shard) -> str:
    """Path of a shard's quality signals.

    >>> signals_path(Shard.parse("2023-06/0000/en_head"))
    'quality_signals/2023-06/0000/en_head.signals.json.gz'
    """
    return f"quality_signals/{shard.tag}.signals.json.gz"


def duplicates_path(shard: Shard) -> str:
    """Path of a shard's duplicates.

    >>> duplicates_path(Shard.parse("2023-06/0000/en_head"))
    'duplicates/2023-06/0000/en_head.duplicates.parquet'
    """
    return f"duplicates/{shard.tag}.duplicates.parquet"


def minhash_path(shard: Shard) -> str:
    """Path of a shard's MinHash signatures.

    >>> minhash_path(Shard.parse("2023-06/0000/en_head"))
    'minhash/2023-06/0000/en_head.minhash.parquet'
    """
    return f"minhash/{shard.tag}.minhash.parquet"


def listing_path(snapshot: SnapshotId, language: str, *, tail: bool = False) -> str:
    """Path of the listing of one language of a snapshot: head and middle together, or the tail.

    >>> from lc_assets.vocabulary import parse_snapshot
    >>> listing_path(parse_snapshot("2023-06"), "en")
    'listings/en-2023-06-head_middle.txt'
    """
    return f"listings/{language}-{snapshot}-{'tail' if tail else 'head_middle'}.txt"


def listed_snapshots(root: Path) -> set[str]:
    """Snapshots that the listings in a folder are of; none when it has no listings."""
    found = (LISTING.fullmatch(path.name) for path in (root / "listings").glob("*.txt"))
    return {name["snapshot"] for name in found if name is not None}


def parse_listing(content: bytes, *, snapshot: SnapshotId, where: str) -> list[Shard]:
    r"""Read a listing: one shard's tag per line, in the listing's order; blank lines do not count.

    >>> from lc_assets.vocabulary import parse_snapshot
    >>> parse_listing(b"2023-06/0000/en_head\n", snapshot=parse_snapshot("2023-06"), where="listing")[0].name
    '0000-en_head'

    Raises:
        BadInput: at a line that is no tag, is of another snapshot, or was listed before; names
            listing and line.
    """
    first_seen: dict[Shard, int] = {}
    for number, shard in _numbered_shards(content, where):
        if shard.snapshot != snapshot:
            raise BadInput(
                f"{where}, line {number}: {shard.tag} is of snapshot {shard.snapshot}, wanted "
                f"shards of {snapshot} only"
            )
        if shard in first_seen:
            raise BadInput(
                f"{where}, line {number}: {shard.tag} is listed a second time, first on line "
                f"{first_seen[shard]}; remove one"
            )
        first_seen[shard] = number
    return list(first_seen)


def write_listing(path: Path, shards: Iterable[Shard]) -> None:
    """Write a listing, in the order given, into an existing folder."""
    path.write_bytes("".join(f"{shard.tag}\n" for shard in shards).encode())


def _numbered_shards(content: bytes, where: str) -> Iterator[tuple[int, Shard]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield number, _shard(line, f"{where}, line {number}")


def _shard(line: bytes, where: str) -> Shard:
    try:
        return Shard.parse(line.strip().decode("ascii"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: not a shard tag: {line[:80]!r} is not ASCII") from error
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
