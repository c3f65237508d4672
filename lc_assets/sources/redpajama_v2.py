"""RedPajama-V2 as published, in a folder, on a server or in a bucket: listings name the shards of a
snapshot, and each shard has files of documents, signals, duplicates and MinHash signatures.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from lc_assets.errors import BadInput
from lc_assets.lake.upstream import Upstream
from lc_assets.records import record
from lc_assets.vocabulary import BUCKETS, LANGUAGES, Shard, SnapshotId

LISTING = re.compile(r"[a-z]{2}-(?P<snapshot>.+)-(?:head_middle|tail)\.txt", re.ASCII)
"""Name of a listing."""


PARTS: Mapping[str, str] = MappingProxyType(
    {
        "documents": "documents/{}.json.gz",
        "signals": "quality_signals/{}.signals.json.gz",
        "duplicates": "duplicates/{}.duplicates.parquet",
        "minhash": "minhash/{}.minhash.parquet",
    }
)
"""Part of a shard → path of its file, by the shard's tag."""


def part_path(part: str, shard: Shard) -> str:
    """Path of a shard's documents, signals, duplicates or MinHash signatures.

    >>> part_path("signals", Shard.parse("2023-06/0000/en_head"))
    'quality_signals/2023-06/0000/en_head.signals.json.gz'
    """
    return PARTS[part].format(shard.tag)


def listing_path(snapshot: SnapshotId, language: str) -> str:
    """Path of the listing of one language of a snapshot: head and middle together.

    >>> from lc_assets.vocabulary import parse_snapshot
    >>> listing_path(parse_snapshot("2023-06"), "en")
    'listings/en-2023-06-head_middle.txt'
    """
    return f"listings/{language}-{snapshot}-head_middle.txt"


def listed_snapshots(root: Path) -> set[str]:
    """Snapshots that the listings in a folder are of; none when it has no"""
    found = (LISTING.fullmatch(path.name) for path in (root / "listings").glob("*.txt"))
    return {name["snapshot"] for name in found if name is not None}


def parse_listing(content: bytes, *, snapshot: SnapshotId, where: str) -> list[Shard]:
    r"""Read a listing: one shard's tag per line, in the listing's order; blank lines do not count.

    >>> from lc_assets.vocabulary import parse_snapshot
    >>> snapshot = parse_snapshot("2023-06")
    >>> parse_listing(b"2023-06/0000/en_head\n", snapshot=snapshot, where="listing")[0].name
    '0000-en_head'

    Raises:
        BadInput: at a line that is no tag, is of another snapshot, or was listed before; names
            listing and line.
    """
    first_seen: dict[Shard, int] = {}
    for number, shard in _numbered_shards(content, where):
        if shard.snapshot != snapshot:
            raise BadInput(
                f"{where}, line {number}: {shard.tag} is of snapshot {shard.snapshot}, expected "
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
        try:
            if line.strip():
                yield number, Shard.parse(line.strip().decode("ascii"))
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{where}, line {number}: not a shard tag: {line[:80]!r} is not ASCII"
            ) from error
        except BadInput as error:
            raise BadInput(f"{where}, line {number}: {error}") from error


LISTING_BYTES = 64 << 20
"""RedPajama-V2's largest listing has about 10,000 lines of 22 bytes."""


@record
class RedPajamaSource:
    """RedPajama-V2, or data in its layout.

    Attributes:
        upstream: root of the files.
        languages: languages whose listings are read.
        buckets: perplexity buckets to include.
        numbers: shard numbers to include; all if empty.
        minhash: whether to include the MinHash files.
    """

    upstream: Upstream
    languages: Collection[str] = LANGUAGES
    buckets: Collection[str] = BUCKETS
    numbers: Collection[int] = ()
    minhash: bool = False

    def shards(self, snapshot: SnapshotId) -> dict[Shard, dict[str, str]]:
        """Paths of the files of each shard that is listed and wanted, by part.

        Raises:
            BadInput: when there is no listing for any wanted language; names where it looked.
            Unreachable: when upstream does not answer.
        """
        paths = [listing_path(snapshot, language) for language in self.languages]
        contents = {path: self.upstream.read(path, most_bytes=LISTING_BYTES) for path in paths}
        if not any(content is not None for content in contents.values()):
            raise BadInput(
                f"{self.upstream.root}: nothing is listed for snapshot {snapshot}: none of "
                f"{', '.join(paths)} exists"
            )
        parts = [part for part in PARTS if part != "minhash" or self.minhash]
        return {
            shard: {part: part_path(part, shard) for part in parts}
            for path, content in contents.items()
            if content is not None
            for shard in parse_listing(
                content, snapshot=snapshot, where=f"{self.upstream.root}/{path}"
            )
            if shard.bucket in self.buckets and (not self.numbers or shard.number in self.numbers)
        }
