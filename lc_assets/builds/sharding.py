"""Shards of a version: what each is made of, and which of them an older version holds.

A version's fingerprint covers all of its inputs, so one changed file upstream makes a new version
of the whole snapshot. A shard has its own fingerprint: stage, code version, settings, and its own
inputs. ``shards.jsonl`` of a version lists each shard's fingerprint, counts and files; a newer
version reuses the files where the fingerprint is the same (docs/decisions.md, 0009).
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import UNDECODABLE, CorruptFile, LcError
from lc_assets.lake.digests import FileFact, digest_of, is_unchanged, matching
from lc_assets.lake.partition import Partition
from lc_assets.lake.receipts import AHEAD, Fingerprint, decode_json, encode_json
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished, publish_bytes
from lc_assets.records import frozen, record

if TYPE_CHECKING:
    from lc_assets.builds.ahead import Ahead

SHARDS_FILE = "shards.jsonl"


class Read(msgspec.Struct, frozen=True):
    """One input of a shard.

    Attributes:
        what: its role, such as ``documents``.
        identity: changes when the content does: a digest, or a server's ETag; empty when it is
            missing.
        n_bytes: its size; 0 when it is missing or unknown.
    """

    what: str
    identity: str
    n_bytes: int = 0


Reads = tuple[Read, ...]


@record
class Sharding:
    """How a stage's versions fall into shards.

    Attributes:
        reads: from a version's inputs and its key, the inputs of each shard by its name, taken from
            manifests and receipts. Together with the settings they determine every byte of the
            shard.
        suffixes: of the names of a shard's files, after the shard's name; some may be missing.
        idle: whether these settings make a version without shards.
        ahead: from the context, a version of another stage that is to be written, and this
            version's fingerprint without inputs: which shards can be made ahead in a folder, by
            their names (`lc_assets.builds.ahead`).
    """

    reads: Callable[[Mapping[str, Published], str], dict[str, Reads]]
    suffixes: tuple[str, ...]
    idle: Callable[[Mapping[str, Any]], bool] = lambda _params: False
    ahead: Callable[..., "dict[str, Ahead]"] | None = None


class ShardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``shards.jsonl``: one finished shard.

    Attributes:
        shard: its name.
        made_of: its fingerprint, see `fingerprints`.
        counts: what was seen, kept and dropped in it.
        files: its files, relative to the version's folder.
    """

    shard: str
    made_of: str
    counts: Counts
    files: tuple[FileFact, ...]


@frozen
class Older:
    """A finished shard in a folder: of an older version, or of none, if it was made ahead."""

    home: Path
    record: ShardRecord
    version: Published | None = None


@record
class Shards:
    """The shards of a version that is to be built.

    Attributes:
        made_of: fingerprint of each, by name.
        reads: inputs of each.
        older: those that an older version holds.
        suffixes: of the names of a shard's files.
    """

    made_of: Mapping[str, str]
    reads: Mapping[str, Reads]
    older: Mapping[str, Older] = field(default_factory=dict)
    suffixes: tuple[str, ...] = ()

    def n_bytes(self, names: Iterable[str]) -> int:
        """Size of the inputs of these shards."""
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
    """The shards of a version, and those of them that the partition's finished versions hold.

    Raises:
        CorruptFile: when an input's manifest cannot be read.
    """
    reads = {} if sharding.idle(fingerprint.params) else sharding.reads(inputs, fingerprint.key)
    made_of = fingerprints(fingerprint, reads)
    return Shards(
        made_of=made_of, reads=reads, older=_older(made_of, partition), suffixes=sharding.suffixes
    )


def fingerprints(fingerprint: Fingerprint, reads: Mapping[str, Reads]) -> dict[str, str]:
    """SHA-256 per shard over stage, partition, code version, settings, name, and inputs.

    Args:
        fingerprint: of the version; its inputs, which belong to all shards together, do not count.
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
    """The documents of each shard of a version, by the shard's name, from its receipt; ``suffix``
    ends the names of their files.
    """
    files = (fact for fact in published.receipt.files if fact.path.endswith(suffix))
    return {
        fact.path.removesuffix(suffix): Read("documents", fact.sha256, fact.n_bytes)
        for fact in files
    }


def write_records(folder: Path, records: Iterable[ShardRecord]) -> None:
    """Publish the records of a version's shards, sorted by name."""
    lines = (
        msgspec.json.encode(record, order="deterministic") + b"\n"
        for record in sorted(records, key=lambda record: record.shard)
    )
    publish_bytes(folder / SHARDS_FILE, b"".join(lines))


def read_records(path: Path) -> list[ShardRecord]:
    """Read what `write_records` wrote.

    Raises:
        CorruptFile: when it is missing or a line is not a record.
    """
    try:
        return msgspec.json.Decoder(ShardRecord).decode_lines(path.read_bytes())
    except (FileNotFoundError, *UNDECODABLE, LcError) as error:
        raise CorruptFile(f"{path}: not readable records of shards: {error}") from error


def records_of(published: Published) -> dict[str, ShardRecord]:
    """Records of a version's shards, by name; empty when there are none, or when they differ from
    the receipt.
    """
    for promised in matching(published.receipt.files, [SHARDS_FILE]):
        path = published.only(SHARDS_FILE) / SHARDS_FILE
        if is_unchanged(path, promised):
            return {record.shard: record for record in read_records(path)}
    return {}


def _older(made_of: Mapping[str, str], partition: Partition) -> dict[str, Older]:
    found: dict[str, Older] = {}
    for version in partition.versions():
        if len(found) == len(made_of):
            break
        records = records_of(version)
        for name in made_of.keys() & records.keys() - found.keys():
            if records[name].made_of == made_of[name]:
                found[name] = Older(version.home, records[name], version)
    return _made_ahead(made_of, partition.folder / AHEAD) | found


def record_ahead(folder: Path, made: ShardRecord) -> None:
    """Publish the record of a shard that was made ahead in a folder."""
    publish_bytes(folder / f"{made.shard}.json", encode_json(made))


def _made_ahead(made_of: Mapping[str, str], folder: Path) -> dict[str, Older]:
    found: dict[str, Older] = {}
    for path in finished(folder.glob("*.json")):
        with contextlib.suppress(CorruptFile):
            made = decode_json(path, ShardRecord)
            if made_of.get(made.shard) == made.made_of:
                found[made.shard] = Older(folder, made)
    return found
