"""RedPajama-V2 as published, in a folder, on a server or in a bucket: listings say which shards a
snapshot has, and each shard has files of documents, signals, duplicates and MinHash signatures.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.formats.redpajama import listings
from lc_assets.lake.upstream import Upstream
from lc_assets.vocabulary import BUCKETS, LANGUAGES, Shard, SnapshotId

PARTS: Final[Mapping[str, Callable[[Shard], str]]] = MappingProxyType(
    {
        "documents": listings.documents_path,
        "signals": listings.signals_path,
        "duplicates": listings.duplicates_path,
        "minhash": listings.minhash_path,
    }
)
LISTING_BYTES: Final = 64 << 20
"""RedPajama-V2's largest listing has about 10,000 lines of 22 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedPajamaSource:
    """RedPajama-V2, or something of its layout.

    Attributes:
        upstream: where.
        languages: whose listings are read.
        buckets: perplexity buckets that are taken.
        numbers: numbers of the shards to take; none means all.
        minhash: whether the MinHash files are taken too.
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
        paths = [listings.listing_path(snapshot, language) for language in self.languages]
        contents = {path: self.upstream.read(path, most_bytes=LISTING_BYTES) for path in paths}
        if not any(content is not None for content in contents.values()):
            raise BadInput(
                f"{self.upstream.root}: nothing is listed for snapshot {snapshot}: none of "
                f"{', '.join(paths)} exists"
            )
        parts = [part for part in PARTS if part != "minhash" or self.minhash]
        return {
            shard: {part: PARTS[part](shard) for part in parts}
            for path, content in contents.items()
            if content is not None
            for shard in listings.parse_listing(
                content, snapshot=snapshot, where=f"{self.upstream.root}/{path}"
            )
            if shard.bucket in self.buckets and (not self.numbers or shard.number in self.numbers)
        }
