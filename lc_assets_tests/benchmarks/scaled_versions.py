"""Versions of a made-up lake, published without their stages, with true receipts
(`lc_assets_tests.benchmarks.scaled_lake`).
"""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds import checks as claims, sharding
from lc_assets.builds.inputs import inputs_of
from lc_assets.builds.stage import Stage
from lc_assets.builds.tables import DROPPED, KEYED, SWEEP
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.redpajama.minhash import Signatures, SignaturesWriter
from lc_assets.lake.digests import FileFact
from lc_assets.lake.lake import Lake, memoized
from lc_assets.lake.receipts import Fingerprint, encode_json, receipt_of, version_files
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.sources.opening import known_snapshots
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import document_signatures as signing, removals
from lc_assets.stages.documents import document_keys as keying, sweeping
from lc_assets.stages.documents.kept_lines import schema_of
from lc_assets.stages.documents.measuring import rules_of
from lc_assets.stages.mixes.blended_mix import MIX_FILE, Mix
from lc_assets.stages.withdrawal import snapshot_withdrawals as withdrawals
from lc_assets.text.duplicates.minhash import RPV2
from lc_assets.text.duplicates.sketches import SKETCH_HASHES
from lc_assets_tests.benchmarks.scaled_lake import RECIPE, Scale, documents_of, keyed_of

NOTHING = Counts()


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes versions without their stages; what they read is looked up once, as it stands when
    the publisher is made.
    """

    lake: Lake
    standing: Lake
    params: dict[tuple[str, str], dict] = field(default_factory=dict)

    @classmethod
    def into(cls, lake: Lake) -> "Publisher":
        """One for the next stages."""
        return cls(lake, memoized(lake))

    def fingerprint(self, stage: Stage, key: str) -> Fingerprint:
        """What a build would make now."""
        digests = stage.digests_of(inputs_of(stage, self.standing, RECIPE, key))
        place = (stage.name, key if stage.partitioned_by == "mix" else "")
        if place not in self.params:
            self.params[place] = stage.resolved(RECIPE, key)
        return stage.fingerprint(self.params[place], key, digests)

    def publish(
        self,
        name: str,
        key: str,
        write: Callable[[Path, Fingerprint], object] = lambda _home, _fingerprint: None,
        *,
        promised: Sequence[FileFact] = (),
        counts: Counts = NOTHING,
    ) -> Published:
        """Write a version's files, and a receipt of these and of others that are only promised."""
        fingerprint, place = (
            self.fingerprint(stage_named(name), key),
            self.lake.partition(name, key),
        )
        home = place.folder / fingerprint.version
        home.mkdir(parents=True)
        write(home, fingerprint)
        files = sorted([*version_files(home), *promised])
        measured = {"seconds": 100.0, "audit_seconds": 10.0, "bytes_read": 1e9}
        published = write_receipt(
            home, receipt_of(home, fingerprint, counts, files=files, measured=measured)
        )
        place.point_at(published)
        return published


def promised(scale: Scale, snapshot: str, *suffixes: str) -> list[FileFact]:
    """Facts of files of every shard that are not there."""
    stem = md5(snapshot.encode(), usedforsecurity=False).hexdigest()
    return [
        FileFact(f"{name}{suffix}", 20_000 + number % 977, f"{stem}{number:028d}{len(suffix):04d}")
        for number, name in enumerate(scale.names())
        for suffix in suffixes
    ]


def write_shards(
    home: Path,
    fingerprint: Fingerprint,
    reads: Mapping[str, sharding.Reads],
    facts: Sequence[FileFact],
    n_kept: int,
) -> None:
    """``shards.jsonl`` of a version whose shards have those files."""
    by_shard: dict[str, list[FileFact]] = {}
    for fact in facts:
        by_shard.setdefault(fact.path.partition(".")[0], []).append(fact)
    counts = np.diff(np.arange(len(reads) + 1) * n_kept // max(len(reads), 1)).tolist()
    made_of = sharding.fingerprints(fingerprint, reads)
    sharding.write_records(
        home,
        (
            sharding.ShardRecord(
                shard=name,
                made_of=made_of[name],
                counts=Counts(seen=kept, kept=kept, extra={"shards": 1}),
                files=tuple(by_shard[name]),
            )
            for (name, kept) in zip(reads, counts, strict=True)
        ),
    )


def write_documents(lake: Lake, scale: Scale) -> None:
    """Everything between `raw` and the row tables but `keys`."""
    for snapshot in scale.snapshots:
        write_filtered(lake, scale, snapshot, whole=snapshot == scale.whole)
    for name, suffixes in (
        ("document_signatures", (signing.MINHASH_SUFFIX,)),
        ("contaminated_documents", ()),
    ):
        publisher = Publisher.into(lake)
        for snapshot in scale.snapshots:
            whole = name == "document_signatures" and snapshot == scale.whole
            write_promised_shards(publisher, scale, name, snapshot, suffixes, whole=whole)


def write_filtered(lake: Lake, scale: Scale, snapshot: str, *, whole: bool) -> None:
    """`filtered` of one snapshot."""
    counts = Counts(
        seen=scale.n_documents, kept=scale.n_documents, extra={"shards": 2 * scale.n_shards}
    )
    suffixes = (claims.DOCUMENTS_SUFFIX, claims.DROPPED_SUFFIX, sweeping.SWEEP_SUFFIX)
    facts = [] if whole else promised(scale, snapshot, *suffixes)
    publisher = Publisher.into(lake)

    def write(home: Path, fingerprint: Fingerprint) -> None:
        inputs = inputs_of(stage_named("filtered_documents"), lake, RECIPE, snapshot)
        if whole:
            write_shard_tables(home, scale, snapshot)
        write_shards(
            home,
            fingerprint,
            stage_named("filtered_documents").sharding.reads(inputs, snapshot),
            facts or version_files(home),
            scale.n_documents,
        )

    publisher.publish("filtered_documents", snapshot, write, promised=facts, counts=counts)


def write_shard_tables(home: Path, scale: Scale, snapshot: str) -> None:
    """The tables of every shard: about 36 documents of one line, none dropped, a sweep of one
    threshold.
    """
    schema = schema_of(rules_of(RECIPE.filtered_documents))
    documents = documents_of(scale, snapshot, np.arange(scale.n_documents))
    more = {
        name: pa.repeat(f"{name} of a page" + " and more of it" * 5, documents.num_rows)
        for name in ("date_download", "title", "raw_content")
    }
    more |= {
        name: pa.array(np.arange(documents.num_rows) / 7)
        for name in schema.names
        if name not in (*documents.column_names, *more)
    }
    table = pa.table(
        {
            name: documents[name] if name in documents.column_names else more[name]
            for name in schema.names
        },
        schema=schema,
    )
    n_shards = 2 * scale.n_shards
    ends = np.arange(n_shards + 1) * scale.n_documents // n_shards
    for name, start, stop in zip(scale.names(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        pq.write_table(
            table.slice(start, stop - start),
            home / f"{name}{claims.DOCUMENTS_SUFFIX}",
            compression="zstd",
        )
        pq.write_table(DROPPED.empty_table(), home / f"{name}{claims.DROPPED_SUFFIX}")
        sweep = pa.Table.from_pylist(
            [
                dict(
                    zip(
                        SWEEP.names,
                        ("words", "at_least", 16e3, True, stop - start, stop - start),
                        strict=True,
                    )
                )
            ],
            SWEEP,
        )
        pq.write_table(sweep, home / f"{name}{sweeping.SWEEP_SUFFIX}")


def write_signatures(home: Path, scale: Scale, snapshot: str) -> None:
    """Signatures of every shard's documents.

    Every twentieth is the one before it again, another twentieth one of the snapshot before, and
    all texts are the same.
    """
    ids = documents_of(scale, snapshot, np.arange(scale.n_documents))["id"].to_pylist()
    ends = np.arange(2 * scale.n_shards + 1) * scale.n_documents // (2 * scale.n_shards)
    place = list(scale.snapshots).index(snapshot)
    rng, shared, earlier = (
        np.random.default_rng(seed) for seed in ([2, place], [3, place + 1], [3, place])
    )
    for name, start, stop in zip(scale.names(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        numbers = rng.integers(2**32, size=(stop - start, len(RPV2.factors)), dtype=np.uint32)
        numbers[1::20] = numbers[: len(numbers[1::20]) * 20 : 20][: len(numbers[1::20])]
        for draw, first in ((shared, 2), (earlier, 3)):
            numbers[first::20] = draw.integers(
                2**32, size=(30, len(RPV2.factors)), dtype=np.uint32
            )[: len(numbers[first::20])]
        with contextlib.closing(
            SignaturesWriter(home / f"{name}{signing.MINHASH_SUFFIX}", RPV2.label)
        ) as writer:
            signed = np.ones(stop - start, np.bool_)
            writer.add(Signatures(ids=ids[start:stop], numbers=numbers, is_signed=signed), name)


def write_promised_shards(
    publisher: Publisher,
    scale: Scale,
    name: str,
    snapshot: str,
    suffixes: Sequence[str],
    n_kept: int = 0,
    *,
    whole: bool = False,
) -> None:
    """A sharded version of which only the records are written, or `signatures` as a whole."""
    stage, n_kept = stage_named(name), n_kept or scale.n_documents
    facts = [] if whole else promised(scale, snapshot, *suffixes)

    def write(home: Path, fingerprint: Fingerprint) -> None:
        inputs = inputs_of(stage, publisher.lake, RECIPE, snapshot)
        if whole:
            write_signatures(home, scale, snapshot)
        write_shards(
            home,
            fingerprint,
            stage.sharding.reads(inputs, snapshot),
            facts or version_files(home),
            n_kept,
        )

    publisher.publish(
        name,
        snapshot,
        write if suffixes else lambda *_: None,
        promised=facts,
        counts=Counts(seen=n_kept, kept=n_kept),
    )


def write_keys(lake: Lake, scale: Scale, snapshot: str) -> None:
    """`document_keys` of one snapshot, with sketches of texts of which no two are alike."""
    rng = np.random.default_rng([4, list(scale.snapshots).index(snapshot)])

    def write(home: Path, _: Fingerprint) -> None:
        keying.write_keys(home, keyed_of(scale, snapshot), KEYED)
        shape = (scale.n_documents, SKETCH_HASHES)
        sketches = np.sort(rng.integers(2**63, size=shape, dtype=np.uint64), axis=1)
        write_npy(home / keying.SKETCHES_FILE, sketches)

    counts = Counts(seen=scale.n_documents, kept=scale.n_documents)
    Publisher.into(lake).publish("document_keys", snapshot, write, counts=counts)


def write_removals(lake: Lake, scale: Scale) -> None:
    """`signature_bands`, `near_pairs`, `withdrawn`, `withdrawals`, `removals` and `tokens`: nothing
    was near, nothing is withdrawn.
    """
    for name in (
        "signature_index",
        "near_duplicate_pairs",
        "heldout_pairs",
        "withdrawn_documents",
        "snapshot_withdrawals",
        "removed_documents",
    ):
        publisher = Publisher.into(lake)
        for key in ("all",) if name == "withdrawn_documents" else scale.snapshots:
            if key == scale.whole and name in {"signature_index", "near_duplicate_pairs"}:
                continue  # made by its stage
            publisher.publish(
                name,
                key,
                functools.partial(write_nothing, name),
                counts=Counts(seen=scale.n_documents, kept=scale.n_documents),
            )
    publisher = Publisher.into(lake)
    suffixes = (".bin", ".idx", claims.DOCUMENTS_SUFFIX, claims.DROPPED_SUFFIX)
    for snapshot in scale.snapshots:
        write_promised_shards(publisher, scale, "token_documents", snapshot, suffixes, scale.n_rows)


def write_nothing(name: str, home: Path, _: Fingerprint) -> None:
    """The tables of a stage that found nothing."""
    tables = {
        "removed_documents": (removals.TABLE, removals.DECISIONS),
        "snapshot_withdrawals": (withdrawals.TABLE, withdrawals.WITHDRAWALS),
    }
    if name in tables:
        path, schema = tables[name]
        pq.write_table(schema.empty_table(), home / path)


def write_rest(lake: Lake) -> None:
    """What is behind the global order: by receipts."""
    for name in ("longcrawl_flat", "megatron_rows", "blended_mix", "data_set_card"):
        publisher = Publisher.into(lake)
        stage = stage_named(name)
        keys = {
            "snapshot": known_snapshots(),
            "mix": sorted(RECIPE.blended_mix),
            "nothing": ("all",),
        }[stage.partitioned_by]
        for key in keys:
            publisher.publish(name, key, functools.partial(_write_mix, name))


def _write_mix(name: str, home: Path, _: Fingerprint) -> None:
    if name == "blended_mix":
        (home / MIX_FILE).write_bytes(encode_json(Mix(sequence_length=8192, seed=1234, sources=[])))
