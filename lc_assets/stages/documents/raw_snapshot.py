"""`raw_snapshot`: list the files of a source's partition, without copying them.

One manifest line per file: path, size, and what identifies its content. The manifest's digest is
the data version, so everything downstream is stale exactly when a file changed.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.stage import (
    UPSTREAM,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import MANIFEST, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.upstream import BY_TIME, Upstream, UpstreamFile, with_retries
from lc_assets.lake.versions import Published
from lc_assets.records import frozen
from lc_assets.sources.opening import file_source, upstream_of
from lc_assets.sources.redpajama_v2 import RedPajamaSource, part_path
from lc_assets.sources.settings import source_of_key
from lc_assets.stages import watching
from lc_assets.vocabulary import (
    BUCKETS,
    LANGUAGES,
    Shard,
    SnapshotId,
    is_line_id,
    parse_document_id,
)

MANIFEST_FILE = "manifest.parquet"


class ShardFiles(msgspec.Struct, frozen=True, gc=False):
    """The files of one shard, by part; a part that is missing upstream is None."""

    shard: Shard
    parts: dict[str, UpstreamFile | None]

    @property
    def of_documents(self) -> list[str]:
        """Its parts that hold documents: one, but ``documents/NAME/`` for each small file."""
        return [part for part in self.parts if part.startswith("documents")]

    @property
    def documents(self) -> dict[str, UpstreamFile | None]:
        """Its files of documents, by what their documents' own ids begin with: nothing, but
        ``NAME/`` where small files share the shard.
        """
        return {part[len("documents/") :]: self.parts[part] for part in self.of_documents}


@frozen
class LookTask:
    """Read the identities of one shard's files, whose paths are given by part."""

    upstream: Upstream
    shard: Shard
    paths: dict[str, str]
    trust_times: bool = False

    def __str__(self) -> str:
        return self.shard.tag


def write_raw_snapshot(_context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the manifest of one partition."""
    table = staging.outside["upstream"]
    write_table(staging.folder / MANIFEST_FILE, table)
    return counts_of(table)


def look_at_snapshot(context: BuildContext, snapshot: SnapshotId) -> list[ShardFiles]:
    """Look at the files of every shard of a partition, sorted by shard."""
    sources, settings = context.recipe.sources, context.recipe.raw_snapshot
    source = file_source(sources, snapshot) or RedPajamaSource(
        upstream=upstream_of(sources, snapshot, context.upstream),
        languages=settings.languages,
        buckets=settings.buckets,
        numbers=settings.shards,
        minhash=settings.minhash,
    )
    tasks = [
        LookTask(source.upstream, shard, paths, settings.trust_file_times)
        for shard, paths in source.shards(snapshot).items()
    ]
    found = [files for _, files in context.executor.run(look, tasks, what=f"look at {snapshot}")]
    _require_published_bytes(source.upstream, tasks, found)
    return sorted(found, key=lambda files: files.shard)


def _require_published_bytes(
    upstream: Upstream, tasks: list[LookTask], found: list[ShardFiles]
) -> None:
    """Refuse damaged files of a version, the output of an earlier command.

    Raises:
        DamagedInput: when one is missing or differs from the version's receipt; names it.
    """
    known = {file.path: file.identity for files in found for file in files.parts.values() if file}
    folders: dict[Path, dict[str, str]] = {}
    for path in (path for task in tasks for path in task.paths.values()):
        file = upstream.local_path(path)
        if file is not None:
            folders.setdefault(file.parent, {})[file.name] = known.get(path, "")
    for folder, identities in folders.items():
        if (folder / RECEIPT).is_file():
            version = Published.at(folder)
            same = {
                fact.path
                for fact in version.receipt.files
                if identities.get(fact.path) == f"sha256:{fact.sha256}"
            }
            version.only(*(identities.keys() - same))


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
            "path": file.path if file else missing_path(files.shard, part),
            "n_bytes": file.n_bytes if file else None,
            "identity": file.identity if file else None,
        }
        for files in found
        for part, file in files.parts.items()
    ]
    return pa.Table.from_pylist(lines, schema=MANIFEST)


def read_manifest(raw: Published) -> list[ShardFiles]:
    """The shards of a published manifest with their files, sorted by shard."""
    table = read_table(raw.folder / MANIFEST_FILE, MANIFEST.names)
    parts: dict[str, dict[str, UpstreamFile | None]] = {}
    # By columns: no dictionary a line.
    for shard, part, path, n_bytes, identity in zip(
        *(table[name].to_pylist() for name in MANIFEST.names), strict=True
    ):
        parts.setdefault(shard, {})[part] = (
            None if identity is None else UpstreamFile(path, n_bytes, identity)
        )
    return [ShardFiles(Shard.of_tag(tag), parts[tag]) for tag in sorted(parts)]


def missing_path(shard: Shard, part: str) -> str:
    """Where a shard's file would be; of a source of files, the shard's name."""
    return part_path(part, shard) if shard.bucket else shard.tag


def require_unchanged(upstream: Upstream, file: UpstreamFile) -> None:
    """Reject a file that differs from the manifest: in its CRC-32 where this process has read it
    before, else in its identity.

    Raises:
        Mismatch: names the file.
    """
    trusts_times = file.identity.startswith(BY_TIME)
    now = upstream.look(file.path, trust_times=trusts_times, expected=file.identity)
    if now != file:
        raise Mismatch(
            f"{upstream.root}/{file.path} has changed since the manifest was made: materialize "
            "`raw_snapshot` of this snapshot again"
        )


def place_in_source(lake: Lake, identity: str) -> str:
    """Human-readable file and line, row or record of a document.

    Raises:
        BadInput: when it is not a document id.
    """
    shard, line = parse_document_id(identity)
    raw = None if shard.bucket else lake.partition(STAGE.name, shard.snapshot).current()
    found = {files.shard: files.documents for files in read_manifest(raw)} if raw else {}
    names = (name for name in found.get(shard, {}) if str(line).startswith(name))
    name = next(names, "")
    if name and is_line_id(own := str(line).removeprefix(name)):
        line = int(own.removeprefix("line-"))
    where = f"line {line:,} (from 0)" if isinstance(line, int) else f"id {line.removeprefix(name)}"
    file = found.get(shard, {}).get(name)
    return f"{file.path if file else missing_path(shard, 'documents')}, {where}"


def counts_of(table: pa.Table) -> Counts:
    """Count a manifest's shards: those with a file of documents are kept."""
    lines = table.to_pylist()
    lost = {(line["shard"], _kind_of(line)) for line in lines if line["identity"] is None}
    missing = Counter(part for _, part in lost)
    n_shards = len({line["shard"] for line in lines})
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
    message = f"{counts.seen:,} shards are whole"
    if not counts.seen:
        message = "no shard is listed for these languages, buckets and shard numbers"
    elif lost:
        message = (
            f"missing: {lost} of {counts.seen:,} shards; `filtering` applies its policies to them"
        )
    return CheckResult(
        passed=counts.seen > 0 and not lost,
        message=message,
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


def bytes_by_part(raw: Published) -> dict[str, float]:
    """Size upstream of each part of a snapshot: documents, signals, duplicates."""
    sizes = Counter[str]()
    for line in read_table(raw.folder / MANIFEST_FILE, ["part", "n_bytes"]).to_pylist():
        sizes[_kind_of(line)] += max(line["n_bytes"] or 0, 0)
    return {part: float(size) for part, size in sizes.items()}


def _kind_of(line: dict[str, Any]) -> str:
    """The part of a line, without the name of a file."""
    return str(line["part"]).partition("/")[0]


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    """The settings of `raw_snapshot`; order and repetitions of languages, buckets and shards do not
    matter. For sources of files, only the manifest matters.
    """
    if source_of_key(recipe.sources, key).kind == "files":
        return {"kind": "files"}
    settings = recipe.raw_snapshot
    return plain(
        msgspec.structs.replace(
            settings,
            languages=tuple(name for name in LANGUAGES if name in settings.languages),
            buckets=tuple(name for name in BUCKETS if name in settings.buckets),
            shards=tuple(sorted(set(settings.shards))),
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
    outside={"upstream": lambda context, key: manifest_of(look_at_snapshot(context, key))},
    params=_params,
    checks=(the_manifest_adds_up, every_listed_file_is_there),
    columns=MANIFEST,
    job="snapshot_documents",
    pool=UPSTREAM,
    kinds=("json", "parquet"),
    counted="shards",
    write=write_raw_snapshot,
    state=_state,
)
"""The files of one partition of a source."""
