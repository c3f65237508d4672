"""`raw_snapshot`: list the files of a source's partition, without copying them.

One manifest line per file: path, size, and what identifies its content. The manifest's digest is
the data version, so everything downstream is stale exactly when a file changed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets.build.building import build
from lc_assets.build.recipe import Recipe, plain
from lc_assets.build.stage import (
    UPSTREAM,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import MANIFEST, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.lake.versions import Published
from lc_assets.sources.opening import Source, file_source, upstream_of
from lc_assets.sources.redpajama_v2 import PARTS, RedPajamaSource
from lc_assets.sources.settings import source_of_key
from lc_assets.stages import watching
from lc_assets.vocabulary import BUCKETS, LANGUAGES, Shard, SnapshotId, parse_document_id

MANIFEST_FILE = "manifest.parquet"


class ShardFiles(msgspec.Struct, frozen=True, gc=False):
    """The files of one shard, by part; a part that is missing upstream is None."""

    shard: Shard
    parts: dict[str, UpstreamFile | None]


@dataclass(frozen=True, slots=True)
class LookTask:
    """Read the identities of one shard's files, whose paths are given by part."""

    upstream: Upstream
    shard: Shard
    paths: dict[str, str]
    trust_times: bool = False

    def __str__(self) -> str:
        return self.shard.tag


def write_raw_snapshot(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the manifest of one partition.

    Raises:
        BadInput: when the source has no files for it.
        Unreachable: when the source cannot be reached.
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


def source_of(context: BuildContext, snapshot: SnapshotId) -> Source:
    """The source that a partition belongs to, opened."""
    sources, wanted = context.recipe.sources, context.recipe.raw_snapshot
    return file_source(sources, snapshot) or RedPajamaSource(
        upstream=upstream_of(sources, snapshot, context.upstream),
        languages=wanted.languages,
        buckets=wanted.buckets,
        numbers=wanted.shards,
        minhash=wanted.minhash,
    )


def look_at_snapshot(context: BuildContext, snapshot: SnapshotId) -> list[ShardFiles]:
    """Look at the files of every shard of a partition, sorted by shard."""
    source = source_of(context, snapshot)
    tasks = [
        LookTask(source.upstream, shard, paths, context.recipe.raw_snapshot.trust_file_times)
        for shard, paths in source.shards(snapshot).items()
    ]
    found = (files for _, files in context.executor.run(look, tasks, what=f"look at {snapshot}"))
    return sorted(found, key=lambda files: files.shard)


@with_retries
def look(task: LookTask) -> ShardFiles:
    """List the files of one shard."""
    return ShardFiles(
        task.shard,
        {
            part: task.upstream.look(path, trust_times=task.trust_times)
            for part, path in task.paths.items()
        },
    )


def manifest_of(found: list[ShardFiles]) -> pa.Table:
    """The manifest's table: a line per file, also for the missing ones."""
    lines = [
        {
            "shard": files.shard.tag,
            "part": part,
            "path": file.path if file else _missing_path(files.shard, part),
            "n_bytes": file.n_bytes if file else None,
            "identity": file.identity if file else None,
        }
        for files in found
        for part, file in files.parts.items()
    ]
    return pa.Table.from_pylist(lines, schema=MANIFEST)


def _missing_path(shard: Shard, part: str) -> str:
    return PARTS[part](shard) if shard.bucket else shard.tag


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
        yield ShardFiles(Shard.of_tag(tag), parts[tag])


def place_in_source(lake: Lake, identity: str) -> str:
    """Human-readable file and line, row or record of a document.

    Raises:
        BadInput: when it is not a document id.
    """
    shard, line = parse_document_id(identity)
    where = f"line {line:,} (from 0)" if isinstance(line, int) else f"id {line}"
    if shard.bucket:
        return f"{PARTS['documents'](shard)}, {where}"
    raw = lake.partition(STAGE.name, shard.snapshot).current()
    found = {files.shard: files for files in read_manifest(raw)} if raw else {}
    file = found[shard].parts["documents"] if shard in found else None
    return f"{file.path if file else shard.tag}, {where}"


def _write(staging: StagingFolder, table: pa.Table) -> Counts:
    write_table(staging.folder / MANIFEST_FILE, table)
    return counts_of(table)


def counts_of(table: pa.Table) -> Counts:
    """Count a manifest's shards: those with a file of documents are kept."""
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
    """Shards are listed, and each has the expected files; missing ones are counted."""
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
        passed=counts.seen > 0 and not lost,
        message=f"missing: {lost} of {counts.seen:,} shards; `filtering` applies its policies to "
        "them"
        if lost
        else words,
        values={f"{part} missing": count for part, count in missing.items()},
        severity="warning",
    )


def the_manifest_adds_up(check_input: CheckInput) -> CheckResult:
    """The manifest matches the receipt's counts and lists each file once."""
    table = read_table(check_input.folder / MANIFEST_FILE, MANIFEST.names)
    counted = counts_of(table)
    paths = table["path"].to_pylist()
    once = len(set(paths)) == len(paths)
    return CheckResult(
        passed=counted == check_input.counts and once,
        message=f"{counted.seen:,} shards, {counted.extra['files']:,} files, "
        f"{counted.extra['bytes']:,} bytes" + ("" if once else "; a file is listed twice"),
        values={
            "shards": counted.seen,
            "files": counted.extra["files"],
            "bytes": counted.extra["bytes"],
        },
    )


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    """The settings of `raw_snapshot`; order and repetitions of languages, buckets and shards do not
    matter. For sources of files, only the manifest matters.
    """
    if source_of_key(recipe.sources, key).kind == "files":
        return {"kind": "files"}
    asked = recipe.raw_snapshot
    languages = tuple(name for name in LANGUAGES if name in asked.languages)
    buckets = tuple(name for name in BUCKETS if name in asked.buckets)
    return plain(
        msgspec.structs.replace(
            asked, languages=languages, buckets=buckets, shards=tuple(sorted(set(asked.shards)))
        )
    )


def _state(context: BuildContext, snapshot: SnapshotId) -> str:
    sources = context.recipe.sources
    return watching.state_of(
        upstream_of(sources, snapshot, context.upstream),
        snapshot,
        context.recipe.raw_snapshot,
        sources=sources,
    )


STAGE = Stage(
    name="raw_snapshot",
    description=(
        "Manifest of one partition of a source: its files with sizes and identities; "
        "nothing is copied."
    ),
    code_version="1",
    reads={},
    params=_params,
    checks=(the_manifest_adds_up, every_listed_file_is_there),
    group="documents",
    job="snapshot_documents",
    pool=UPSTREAM,
    kinds=("json", "parquet"),
    counted="shards",
    write=write_raw_snapshot,
    state=_state,
    show=later("lc_assets.stages.shown.documents:raw_snapshot"),
)
"""The files of one partition of a source."""


def bytes_by_part(raw: Published) -> dict[str, float]:
    """Size upstream of each part of a snapshot: documents, signals, duplicates."""
    sizes: dict[str, float] = {}
    for line in read_table(raw.folder / MANIFEST_FILE, ["part", "n_bytes"]).to_pylist():
        sizes[line["part"]] = sizes.get(line["part"], 0.0) + max(line["n_bytes"] or 0, 0)
    return sizes
