"""Damage single files of an upstream, build, and compare the results.

Files are those of `lc_assets_tests.builders.tiny_upstream`; paths are of one shard's parts. Results
are compared by digests: equal digests mean equal bytes.
"""

import gzip
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    BuildContext,
    Built,
    CheckResult,
)
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.vocabulary import Shard

BEFORE_TOKENS = (
    "raw_snapshot",
    "filtered_documents",
    "document_signatures",
    "document_keys",
    "signature_index",
    "near_duplicate_pairs",
    "heldout_pairs",
    "contaminated_documents",
    "withdrawn_documents",
    "snapshot_withdrawals",
    "removed_documents",
)
"""Stages that a snapshot's tokens depend on."""

PER_SNAPSHOT = tuple(
    found.name
    for found in STAGES
    if found.name == "withdrawn_documents"
    or (found.partitioned_by == "snapshot" and found.wanted(Recipe()))
)
"""Stages of one snapshot, and the one of all snapshots that lies between them."""


def file_of(upstream: Path, part: str, tag: str) -> Path:
    """Return the path of one part of one shard."""
    return upstream / part_path(part, Shard.parse(tag))


def cut_short(path: Path) -> None:
    """Leave the first two thirds of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def emptied(path: Path) -> None:
    """Truncate a file to zero bytes."""
    path.write_bytes(b"")


def not_gzip(path: Path) -> None:
    """Replace a file by a server's error page."""
    path.write_bytes(b"<html><body>503 Service Unavailable</body></html>\n" * 20)


def flipped(path: Path, at: int | None = None) -> None:
    """Flip one bit: of the byte in the middle, or at ``at``."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 0x10
    path.write_bytes(content)


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a gzipped file, with their line ends."""
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def edit_lines(path: Path, edit: Callable[[list[bytes]], Iterable[bytes]]) -> None:
    """Write a gzipped file again with other lines."""
    path.write_bytes(gzip.compress(b"".join(edit(lines_of(path))), mtime=0))


def field_changed(line: bytes, **fields: Any) -> bytes:
    """Return a JSON line with some fields replaced."""
    return msgspec.json.encode(msgspec.json.decode(line) | fields) + b"\n"


def build_snapshot(
    context: BuildContext, snapshot: str, stages: Sequence[str] = PER_SNAPSHOT
) -> dict[str, Built]:
    """Build some stages of one snapshot, in the chain's order."""
    keys = {
        name: snapshot if stage_named(name).partitioned_by == "snapshot" else GLOBAL
        for name in stages
    }
    return {name: stage_named(name).build(context, key) for name, key in keys.items()}


def digests(built: Mapping[str, Built]) -> dict[str, str]:
    """Data versions by name."""
    return {name: found.published.digest for name, found in built.items()}


def finding(built: Built, claim: str) -> CheckResult:
    """Return the result of one of a build's checks."""
    (found,) = [found for found in built.findings if found.check == claim]
    return found


def adds_up(built: Built) -> bool:
    """Whether the documents seen are those kept plus those dropped for each reason."""
    return built.counts.seen == built.counts.kept + sum(built.counts.dropped.values())


def unpublished(lake: Lake, *stages: str) -> bool:
    """Whether none of these stages has a published partition or any receipt."""
    names = [stage_named(stage).name for stage in stages]
    return not any(
        lake.published(name) or list(lake.root.glob(f"{name}/*/*/receipt.json")) for name in names
    )


def at_upstream(context: BuildContext, upstream: Path, lake: Path) -> BuildContext:
    """Return a context with the same settings, another upstream and another lake."""
    return replace(context, upstream=Upstream(str(upstream)), lake=Lake(lake))


def with_policies(context: BuildContext, **policies: Any) -> BuildContext:
    """Return a context with other settings of the filter."""
    filtering = msgspec.structs.replace(context.recipe.filtered_documents, **policies)
    return replace(
        context, recipe=msgspec.structs.replace(context.recipe, filtered_documents=filtering)
    )


def copied(upstream: Path, to: Path) -> Path:
    """Copy an upstream, to damage the copy."""
    shutil.copytree(upstream, to)
    return to
