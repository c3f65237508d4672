"""`raw_snapshot`: state what a snapshot is upstream, without copying it.

One manifest line per file that RedPajama-V2 lists for the snapshot: path, size, and what identifies
its content. The manifest's digest is the data version, so everything downstream is stale exactly
when a file upstream changed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.redpajama import listings
from lc_assets.lake.digests import digest_of
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.lake.versions import Published
from lc_assets.stages.building import (
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    build,
)
from lc_assets.stages.documents.document_settings import RawSettings
from lc_assets.stages.recipe import Recipe, plain
from lc_assets.stages.tables import MANIFEST, read_table, write_table
from lc_assets.vocabulary import BUCKETS, LANGUAGES, Shard, SnapshotId

MANIFEST_FILE = "manifest.parquet"
PARTS = {
    "documents": listings.documents_path,
    "signals": listings.signals_path,
    "duplicates": listings.duplicates_path,
    "minhash": listings.minhash_path,
}
LISTING_BYTES = 64 << 20
"""RedPajama-V2's largest listing has about 10,000 lines of 22 bytes."""


class ShardFiles(msgspec.Struct, frozen=True, gc=False):
    """The files of one shard, by part; a part that is missing upstream is None."""

    shard: Shard
    parts: dict[str, UpstreamFile | None]


@dataclass(frozen=True, slots=True)
class LookTask:
    """Look at one shard's files."""

    upstream: Upstream
    shard: Shard
    parts: tuple[str, ...]
    trust_times: bool = False

    def __str__(self) -> str:
        return self.shard.tag


def take_stock(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the manifest of one snapshot.

    Raises:
        BadInput: when upstream lists nothing for this snapshot.
        Unreachable: when upstream cannot be reached.
    """
    found = look_at_snapshot(context, snapshot)
    table = manifest_of(found)
    return build(
        context,
        STAGE,
        snapshot,
        lambda staging: _write(staging, table),
        inputs={},
        foreign_inputs={"upstream": digest_of(table.to_pylist())},
    )


def look_at_snapshot(context: BuildContext, snapshot: SnapshotId) -> list[ShardFiles]:
    """Look at every listed shard's files upstream, sorted by shard."""
    settings = context.recipe.raw_snapshot
    parts = tuple(part for part in PARTS if part != "minhash" or settings.minhash)
    tasks = [
        LookTask(context.upstream, shard, parts, settings.trust_file_times)
        for shard in listed_shards(context.upstream, snapshot, settings)
    ]
    found = (files for _, files in context.executor.run(look, tasks, what=f"look at {snapshot}"))
    return sorted(found, key=lambda files: files.shard)


def listed_shards(upstream: Upstream, snapshot: SnapshotId, settings: RawSettings) -> list[Shard]:
    """The shards that upstream lists and the settings want.

    Raises:
        BadInput: when there is no listing for any wanted language; names where it was looked for.
    """
    paths = [listings.listing_path(snapshot, language) for language in settings.languages]
    contents = {path: upstream.read(path, most_bytes=LISTING_BYTES) for path in paths}
    if not any(content is not None for content in contents.values()):
        raise BadInput(
            f"{upstream.root}: nothing is listed for snapshot {snapshot}: none of "
            f"{', '.join(paths)} exists"
        )
    listed = [
        shard
        for path, content in contents.items()
        if content is not None
        for shard in listings.parse_listing(
            content, snapshot=snapshot, where=f"{upstream.root}/{path}"
        )
    ]
    return [
        shard
        for shard in listed
        if shard.bucket in settings.buckets
        and (not settings.shards or shard.number in settings.shards)
    ]


@with_retries
def look(task: LookTask) -> ShardFiles:
    """State the files of one shard."""
    return ShardFiles(
        task.shard,
        {
            part: task.upstream.look(PARTS[part](task.shard), trust_times=task.trust_times)
            for part in task.parts
        },
    )


def manifest_of(found: list[ShardFiles]) -> pa.Table:
    """The manifest's table: a line per file, also for the missing ones."""
    lines = [
        {
            "shard": files.shard.tag,
            "part": part,
            "path": PARTS[part](files.shard),
            "n_bytes": file.n_bytes if file else None,
            "identity": file.identity if file else None,
        }
        for files in found
        for part, file in files.parts.items()
    ]
    return pa.Table.from_pylist(lines, schema=MANIFEST)


def read_manifest(raw: Published) -> list[ShardFiles]:
    """The shards of a published manifest with their files, sorted by shard."""
    return list(_grouped(read_table(raw.folder / MANIFEST_FILE, MANIFEST.names)))


def _grouped(table: pa.Table) -> Iterator[ShardFiles]:
    parts: dict[str, dict[str, UpstreamFile | None]] = {}
    # By columns: no dictionary a line.
    for shard, part, path, n_bytes, identity in zip(
        *(table[name].to_pylist() for name in MANIFEST.names), strict=True
    ):
        parts.setdefault(shard, {})[part] = (
            None if identity is None else UpstreamFile(path, n_bytes, identity)
        )
    for tag in sorted(parts):
        yield ShardFiles(Shard.parse(tag), parts[tag])


def _write(staging: StagingFolder, table: pa.Table) -> Counts:
    write_table(staging.folder / MANIFEST_FILE, table)
    return counts_of(table)


def counts_of(table: pa.Table) -> Counts:
    """Count a manifest's shards: kept are those whose documents are there."""
    lines = table.to_pylist()
    missing = Counter(line["part"] for line in lines if line["identity"] is None)
    n_shards = sum(line["part"] == "documents" for line in lines)
    return Counts(
        seen=n_shards,
        kept=n_shards - missing["documents"],
        dropped={"documents missing": missing["documents"]} if missing["documents"] else {},
        extra={
            "files": sum(line["identity"] is not None for line in lines),
            "bytes": sum(max(line["n_bytes"] or 0, 0) for line in lines),
            "signals missing": missing["signals"],
            "duplicates missing": missing["duplicates"],
        },
    )


def every_listed_file_is_there(check_input: CheckInput) -> CheckResult:
    """Shards are listed, and each has its documents, signals and duplicates upstream; what is
    missing is counted here.
    """
    counts = check_input.counts
    missing = {
        "documents": counts.dropped.get("documents missing", 0),
        "signals": counts.extra["signals missing"],
        "duplicates": counts.extra["duplicates missing"],
    }
    lost = ", ".join(f"{count:,} {part} files" for part, count in missing.items() if count)
    words = (
        f"{counts.seen:,} shards are whole"
        if counts.seen
        else "no shard is listed for these languages, buckets and shard numbers"
    )
    return CheckResult(
        claim="every_listed_file_is_there",
        passed=counts.seen > 0 and not lost,
        words=f"missing: {lost} of {counts.seen:,} shards; `filtering` applies its policies to them"
        if lost
        else words,
        numbers={f"{part} missing": count for part, count in missing.items()},
        severity="warning",
    )


def the_manifest_adds_up(check_input: CheckInput) -> CheckResult:
    """The manifest on disk gives the counts that the receipt states, and lists each file once."""
    table = read_table(check_input.folder / MANIFEST_FILE, MANIFEST.names)
    counted = counts_of(table)
    paths = table["path"].to_pylist()
    once = len(set(paths)) == len(paths)
    return CheckResult(
        claim="the_manifest_adds_up",
        passed=counted == check_input.counts and once,
        words=f"{counted.seen:,} shards, {counted.extra['files']:,} files, "
        f"{counted.extra['bytes']:,} bytes" + ("" if once else "; a file is listed twice"),
        numbers={
            "shards": counted.seen,
            "files": counted.extra["files"],
            "bytes": counted.extra["bytes"],
        },
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The settings of `raw_snapshot`; in what order languages, buckets and shards are named, and whether
    twice, means nothing.
    """
    asked = recipe.raw_snapshot
    languages = tuple(name for name in LANGUAGES if name in asked.languages)
    buckets = tuple(name for name in BUCKETS if name in asked.buckets)
    return plain(
        msgspec.structs.replace(
            asked, languages=languages, buckets=buckets, shards=tuple(sorted(set(asked.shards)))
        )
    )


STAGE = Stage(
    name="raw_snapshot",
    code_version="1",
    upstream=(),
    params=_params,
    claims=(the_manifest_adds_up, every_listed_file_is_there),
)
"""One snapshot as it stands upstream."""


def bytes_by_part(raw: Published) -> dict[str, float]:
    """Size upstream of each part of a snapshot: documents, signals, duplicates."""
    sizes: dict[str, float] = {}
    for line in read_table(raw.folder / MANIFEST_FILE, ["part", "n_bytes"]).to_pylist():
        sizes[line["part"]] = sizes.get(line["part"], 0.0) + max(line["n_bytes"] or 0, 0)
    return sizes
