"""What the newest of some made-up snapshots costs in near duplicates, in a process of its own;
prints one line of JSON.

Every snapshot has as many small shards as `scaled_lake` gives it, and is whole: documents,
signatures, bands. A twentieth of a snapshot's documents has a near duplicate among its own, and
another twentieth one in the snapshot before it. As a program: ``python -m … FOLDER N_SNAPSHOTS
PERCENT``; what lies in the folder already is gone on from. Seconds are CPU seconds of the newest
snapshot's stages, claims included.
"""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path

from lc_assets.lake.lake import GLOBAL
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import document_signatures as signing
from lc_assets.vocabulary import SnapshotId, parse_snapshot
from lc_assets_tests.benchmarks import scaled_versions as versions
from lc_assets_tests.benchmarks.scale_parts import peak_mb
from lc_assets_tests.benchmarks.scaled_lake import Bench, Scale
from lc_assets_tests.benchmarks.scaled_versions import Publisher

VERBS = {
    "signature_index": stage_named("signature_index").build,
    "near_duplicate_pairs": stage_named("near_duplicate_pairs").build,
    "heldout_pairs": stage_named("heldout_pairs").build,
    "removed_documents": stage_named("removed_documents").build,
}


def stand(bench: Bench, names: list[SnapshotId]) -> None:
    """Make up what these snapshots' duplicates are looked for in."""
    for snapshot in names:
        if bench.lake.partition("snapshot_withdrawals", snapshot).pointer() is not None:
            continue
        stage_named("raw_snapshot").build(bench.context, snapshot)
        versions.write_filtered(bench.lake, bench.scale, snapshot, whole=True)
        suffixes = (signing.MINHASH_SUFFIX,)
        versions.write_promised_shards(
            Publisher.into(bench.lake),
            bench.scale,
            "document_signatures",
            snapshot,
            suffixes,
            whole=True,
        )
        versions.write_keys(bench.lake, bench.scale, snapshot)
        for name in (
            "contaminated_documents",
            "withdrawn_documents",
            "snapshot_withdrawals",
        ):
            key = GLOBAL if name == "withdrawn_documents" else snapshot
            if bench.lake.partition(name, key).pointer() is None:
                Publisher.into(bench.lake).publish(name, key, partial(versions.write_nothing, name))


def main(folder: str, n_snapshots: str, percent: str) -> None:
    """Make up, build the older ones, measure the newest."""
    os.fsync = lambda _: None
    bench = Bench(Scale(float(percent) / 100), Path(folder))
    names = [parse_snapshot(name) for name in bench.scale.snapshots[: int(n_snapshots)]]
    stand(bench, names)
    for snapshot in names[:-1]:
        for verb in VERBS.values():
            verb(bench.context, snapshot)
    found: dict[str, float] = {}
    for name, verb in VERBS.items():
        begun = time.process_time()
        built = verb(bench.context, names[-1])
        found[name] = round(time.process_time() - begun, 3)
        found[f"{name} kept"] = built.counts.kept
    print(
        json.dumps(
            {
                "documents": bench.scale.n_documents,
                "shards": 2 * bench.scale.n_shards,
                "peak_mb": peak_mb(),
                **found,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
