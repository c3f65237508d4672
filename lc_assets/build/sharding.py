"""Shards of a version: what each is made of, and which of them an older version holds already.

A version's name covers all of its inputs, so one file that changes upstream makes a new version of
its whole snapshot. A shard has a fingerprint of its own: stage, code version, settings, and what it
reads itself. A version says in ``shards.jsonl``, a line per shard, which fingerprint each was made
by, what was counted, and which files it is; a new version takes those files over where the
fingerprint is the same (docs/decisions/0009).

Here: fingerprints, records, and finding older shards. Not here: taking them over and doing the
    others
(`lc_assets.build.shard_runs`).
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import UNDECODABLE, CorruptFile, LcError
from lc_assets.lake.digests import FileFact, digest_of, fact_of
from lc_assets.lake.partition import Partition
from lc_assets.lake.receipts import Fingerprint
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish_bytes

SHARDS_FILE: Final = "shards.jsonl"


class Read(msgspec.Struct, frozen=True):
    """One thing that a shard is made of.

    Attributes:
        what: what it is to the shard, such as ``documents``.
        identity: what changes when its content does: a digest, or what a server says; empty when it
            is missing.
        n_bytes: its size; 0 when it is missing, or nobody tells.
    """

    what: str
    identity: str
    n_bytes: int = 0


Reads = tuple[Read, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How a stage's versions fall into shards.

    Attributes:
        reads: what each shard reads, by its name, out of the inputs of a version and its key; from
            manifests and receipts, without reading a document. Together with the stage's settings
            it must determine every byte of the shard.
        suffixes: ends of the names of a shard's files, behind the shard's name; the work may leave
            some out.
        idle: whether settings leave nothing to do, so that no shard is read.
    """

    reads: Callable[[Mapping[str, Published], str], dict[str, Reads]]
    suffixes: tuple[str, ...]
    idle: Callable[[Mapping[str, Any]], bool] = lambda _params: False


class ShardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``shards.jsonl``: one finished shard.

    Attributes:
        shard: its name.
        made_of: digest of all that determined its bytes, see `fingerprints`.
        counts: what was seen, kept and dropped in it.
        files: its files, relative to the version's folder.
    """

    shard: str
    made_of: str
    counts: Counts
    files: tuple[FileFact, ...]


@dataclass(frozen=True, slots=True)
class Older:
    """A finished shard of an older version."""

    version: Published
    record: ShardRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """The shards of a version that is to be made.

    Attributes:
        made_of: fingerprint of each, by name.
        reads: what each reads.
        older: those that an older version holds.
        suffixes: ends of the names of a shard's files.
    """

    made_of: Mapping[str, str]
    reads: Mapping[str, Reads]
    older: Mapping[str, Older] = field(default_factory=dict)
    suffixes: tuple[str, ...] = ()

    def n_bytes(self, names: Iterable[str]) -> int:
        """Size of what these shards read."""
        return sum(max(read.n_bytes, 0) for name in names for read in self.reads.get(name, ()))

    @property
    def to_do(self) -> list[str]:
        """Names of those that no older version holds."""
        return [name for name in self.made_of if name not in self.older]


def shards_of(
    sharding: Sharding,
    fingerprint: Fingerprint,
    inputs: Mapping[str, Published],
    partition: Partition,
) -> Shards:
    """The shards of the version of this fingerprint, and what of them the place's finished versions
    hold.

    Raises:
        CorruptFile: when an input's manifest cannot be read.
    """
    reads = {} if sharding.idle(fingerprint.params) else sharding.reads(inputs, fingerprint.key)
    made_of = fingerprints(fingerprint, reads)
    return Shards(
        made_of=made_of, reads=reads, older=_older(made_of, partition), suffixes=sharding.suffixes
    )


def fingerprints(fingerprint: Fingerprint, reads: Mapping[str, Reads]) -> dict[str, str]:
    """Digest, for each shard, of stage, partition, code version, settings, name, and what it reads.

    Args:
        fingerprint: of the version; its inputs do not count, they are of all shards together.
        reads: by shard.
    """
    common = digest_of(
        [fingerprint.stage, fingerprint.key, fingerprint.code_version, fingerprint.params]
    )
    return {
        name: digest_of(
            [common, name, [[read.what, read.identity, read.n_bytes] for read in found]]
        )
        for name, found in reads.items()
    }


def documents_read(published: Published, suffix: str) -> dict[str, Read]:
    """The documents of each shard of a version, as its receipt has them, by the shard's name;
    ``suffix`` is what their files end in.
    """
    files = (fact for fact in published.receipt.files if fact.path.endswith(suffix))
    return {
        fact.path.removesuffix(suffix): Read("documents", fact.sha256, fact.n_bytes)
        for fact in files
    }


def facts_by_path(published: Published) -> dict[str, FileFact]:
    """Facts of a version's files, by their paths."""
    return {fact.path: fact for fact in published.receipt.files}


def write_records(folder: Path, records: Iterable[ShardRecord]) -> None:
    """Publish what became of a version's shards, sorted by name."""
    lines = (
        msgspec.json.encode(record, order="deterministic") + b"\n"
        for record in sorted(records, key=lambda record: record.shard)
    )
    publish_bytes(folder / SHARDS_FILE, b"".join(lines))


def read_records(path: Path) -> list[ShardRecord]:
    """Read what `write_records` wrote.

    Raises:
        CorruptFile: when it is missing or a line is no record.
    """
    try:
        return msgspec.json.Decoder(ShardRecord).decode_lines(path.read_bytes())
    except (FileNotFoundError, *UNDECODABLE, LcError) as error:
        raise CorruptFile(f"{path}: not readable records of shards: {error}") from error


def records_of(published: Published) -> dict[str, ShardRecord]:
    """What a version says of its shards, by name; nothing when it does not, or not as its receipt
    has it.
    """
    promised = facts_by_path(published).get(SHARDS_FILE)
    if promised is None:
        return {}
    folder = published.only(SHARDS_FILE)
    with contextlib.suppress(FileNotFoundError, CorruptFile):
        if fact_of(folder, SHARDS_FILE) == promised:
            return {record.shard: record for record in read_records(folder / SHARDS_FILE)}
    return {}


def _older(made_of: Mapping[str, str], partition: Partition) -> dict[str, Older]:
    found: dict[str, Older] = {}
    for version in partition.versions():
        if len(found) == len(made_of):
            break
        records = records_of(version)
        for name in made_of.keys() & records.keys() - found.keys():
            if records[name].made_of == made_of[name]:
                found[name] = Older(version, records[name])
    return found
