"""A made-up lake of RedPajama-v2's metadata scale, or of a share of it: all tables, indices and
receipts, hardly any payload.

The share is of the shards of a snapshot, so that there are always 84 snapshots and what a shard
holds stays the same: at 1, 84 snapshots × 5,000 shards × 2 buckets, 30 million documents that were
kept, 6.66 million rows. Versions are written with true receipts by the settings of the default
recipe, so a planner calls all of them current.

===========================  =========================================================================================
whole                        `raw`, `keys`, `grid`'s row tables, `lineage`, `longcrawl`, `mixes` (no GPT indices)
of one snapshot whole        `filtered` and `signatures`: small tables per shard, as claims and `near_pairs` want them
promised by receipts only    the other snapshots' `filtered`, `signatures`, `tokens`: millions of files, of which only
                             ``shards.jsonl`` is written; `megatron`, `flat`, `card` and the tables
                             of duplicates
===========================  =========================================================================================

Here: what is made up. Not here: versions (`scaled_versions`), and what is measured on them
    (`scale_parts`).
"""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import RawSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import KEYED, TOKENIZED
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import UpstreamFile
from lc_assets.sources import redpajama_v2
from lc_assets.sources.opening import known_snapshots
from lc_assets.vocabulary import ROW_TOKENS, Shard

Measured = Callable[[], int]
"""The work whose time is taken; says on how many items it was."""

SHARDS, DOCUMENTS, ROWS = 5_000, 30_000_000, 6_661_465
BUCKETS = ("head", "middle")
PAGES_PER_HOST = 9
SHARD_BYTES = {"documents": 40_000_000, "quality_signals": 7_000_000, "duplicates": 60_000}
"""About what a file of RedPajama-v2 has: 170 TB, 28 TB and 260 GB over 84 × 5,000 shards of five
languages.
"""
MADE_AT_ONCE = 1 << 15
MAKING_UP = [0.0]
"""CPU seconds that went into names that a service would have listed: not the work that is measured.
"""
RECIPE = Recipe(raw_snapshot=RawSettings(trust_file_times=True))
"""The default, but that a file's time is trusted: there is no content that could be read."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a lake is made up; counts are of one snapshot."""

    share: float

    @property
    def snapshots(self) -> Sequence[str]:
        """Names of all snapshots, at any scale."""
        return known_snapshots()

    @property
    def whole(self) -> str:
        """The snapshot of which the files of every shard are there: the oldest, which nothing else
        is compared with.
        """
        return self.snapshots[0]

    @property
    def n_shards(self) -> int:
        """Shards, each of two buckets."""
        return round(SHARDS * self.share)

    @property
    def n_documents(self) -> int:
        """Documents that were kept."""
        return round(DOCUMENTS * self.share / len(self.snapshots))

    @property
    def n_rows(self) -> int:
        """Rows."""
        return round(ROWS * self.share / len(self.snapshots))

    def tags(self, snapshot: str) -> list[str]:
        """Tags of the shards, sorted."""
        return [
            f"{snapshot}/{number:04d}/en_{bucket}"
            for number in range(self.n_shards)
            for bucket in BUCKETS
        ]

    def names(self) -> list[str]:
        """Names of the shards, sorted; the same of each snapshot."""
        return [Shard.parse(tag).name for tag in self.tags("2023-06")]


@dataclass(frozen=True, slots=True)
class MadeUpUpstream:
    """What answers like an upstream that can be listed; sizes and identities are made of paths."""

    scale: Scale
    root: str = "made up"

    # As `Upstream` is asked.
    def read(self, path: str, *, most_bytes: int) -> bytes | None:  # noqa: ARG002
        """A listing, of English only."""
        snapshot = path.removeprefix("listings/en-").removesuffix("-head_middle.txt")
        return (
            "".join(f"{tag}\n" for tag in self.scale.tags(snapshot)).encode()
            if path.startswith("listings/en-")
            else None
        )

    # As `Upstream` is asked.
    def look(self, path: str, *, trust_times: bool = False) -> UpstreamFile:  # noqa: ARG002
        """A file."""
        return UpstreamFile(
            path,
            SHARD_BYTES[path.partition("/")[0]] + zlib.crc32(path.encode()) % 50_000,
            mark_of(path),
        )

    # As `Upstream` is asked.
    def local_path(self, path: str) -> None:
        """Nothing is on a disk."""

    def marks(self, folder: str) -> dict[str, str]:
        """What is below a folder; what it takes to make these names up is noted."""
        begun = time.process_time()
        found = self._marks(folder)
        MAKING_UP[0] += time.process_time() - begun
        return found

    def _marks(self, folder: str) -> dict[str, str]:
        if folder == "listings":
            return {
                f"listings/en-{snapshot}-head_middle.txt": mark_of(snapshot)
                for snapshot in self.scale.snapshots
            }
        kind, _, snapshot = folder.partition("/")
        parts = {"quality_signals": "signals"}
        part = parts.get(kind, kind)
        known = part in ("documents", "signals", "duplicates")
        shards = map(Shard.parse, self.scale.tags(snapshot)) if known else ()
        return {path: mark_of(path) for path in (redpajama_v2.part_path(part, of) for of in shards)}


@dataclass(frozen=True, slots=True)
class Bench:
    """A scale and the lake that is made up at it."""

    scale: Scale
    folder: Path

    @property
    def lake(self) -> Lake:
        """Where it lies."""
        return Lake(self.folder / "lake")

    @property
    def context(self) -> BuildContext:
        """For stages that are built by their own verbs."""
        upstream = MadeUpUpstream(self.scale)
        return BuildContext(
            lake=self.lake, upstream=upstream, recipe=RECIPE, executor=LocalExecutor(workers=1)
        )  # type: ignore[arg-type]


def mark_of(path: str) -> str:
    """What a service says of a file's content."""
    return f"md5:{md5(path.encode(), usedforsecurity=False).hexdigest()}"


def mixed(numbers: np.ndarray, salt: str) -> pa.Array:
    """Digits that look drawn: twenty of them at most, the same each time."""
    values = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
        zlib.crc32(salt.encode()) << 32
    )
    values = (values ^ (values >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return pc.cast(pa.array(values ^ (values >> np.uint64(29))), pa.string())


def documents_of(scale: Scale, snapshot: str, numbers: np.ndarray) -> pa.Table:
    """Who the documents of some numbers are: `tables.IDENTITY`."""
    n_tags = 2 * scale.n_shards
    ends = np.arange(n_tags + 1) * scale.n_documents // n_tags
    tags = np.searchsorted(ends, numbers, "right") - 1
    names = pa.array([f"{tag}.json.gz" for tag in scale.tags(snapshot)])
    lines = pc.cast(pa.array((numbers - ends[tags]) * 997), pa.string())
    hosts = pc.binary_join_element_wise(
        "www.n", mixed(numbers // PAGES_PER_HOST, snapshot), ".com", ""
    )
    pages = pc.binary_join_element_wise(
        "/page-", pc.cast(pa.array(numbers), pa.string()), ".html", ""
    )
    return pa.table(
        {
            "id": pc.binary_join_element_wise(names.take(pa.array(tags)), lines, "/"),
            "url": pc.binary_join_element_wise("https://", hosts, pages, ""),
            "digest": pc.binary_join_element_wise("sha1:", mixed(numbers, f"page {snapshot}"), ""),
            "source_domain": hosts,
            "cc_segment": pc.binary_join_element_wise(
                "crawl-data", snapshot, pc.cast(pa.array(numbers % 5000), pa.string()), "/"
            ),
            "language": pa.repeat("en", len(numbers)),
            "bucket": pa.array(BUCKETS).take(pa.array(tags % 2)),
        }
    )


def keyed_of(scale: Scale, snapshot: str) -> Iterator[pa.Table]:
    """The documents of a snapshot as `keys` lists them, some at a time."""
    for start in range(0, scale.n_documents, MADE_AT_ONCE):
        numbers = np.arange(start, min(start + MADE_AT_ONCE, scale.n_documents))
        documents = documents_of(scale, snapshot, numbers)
        digests = pc.binary_join_element_wise(
            "sha256:", mixed(numbers, f"text {snapshot}"), mixed(numbers, "text"), ""
        )
        for name in ("text_digest", "tokenized_digest"):
            documents = documents.append_column(name, digests)
        dates = pa.repeat("", len(numbers))
        yield documents.append_column("date_download", dates).select(KEYED.names).cast(KEYED)


def tokenized_of(scale: Scale, snapshot: str) -> pa.Table:
    """The documents that become rows, as `grid` reads them; evenly chosen."""
    numbers = np.arange(scale.n_rows) * scale.n_documents // scale.n_rows
    table = documents_of(scale, snapshot, numbers)
    digests = pc.binary_join_element_wise("sha256:", mixed(numbers, f"text {snapshot}"), "")
    table = table.append_column("tokenized_digest", digests)
    for name, values in (
        ("document", numbers % 36),
        ("n_tokens", numbers % 300_000 + ROW_TOKENS),
        ("n_chars", numbers),
        ("n_bytes", numbers),
    ):
        table = table.append_column(name, pa.array(values))
    shards = pc.replace_substring_regex(table["id"], r"^[^/]*/(\d+)/(\w+)\..*$", r"\1-\2")
    return table.select(TOKENIZED.names).cast(TOKENIZED).append_column("token_shard", shards)
