"""The parts of a made-up scale that build something, each leaves it for those after it
(`scale_parts`).
"""

from pathlib import Path

from lc_assets.builds.tables import write_table
from lc_assets.counts import Counts
from lc_assets.formats.arrays.grid import create_grid
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.rows.row_plans import plan_rows
from lc_assets.stages.rows.token_grid import (
    ROWS_FILE,
    of_split,
)
from lc_assets.vocabulary import GPT2_VOCAB_SIZE, SPLITS, parse_snapshot
from lc_assets_tests.benchmarks import scaled_lake as made, scaled_versions as versions
from lc_assets_tests.benchmarks.scaled_lake import RECIPE, Bench, Measured
from lc_assets_tests.benchmarks.scaled_versions import Publisher


def manifests(bench: Bench) -> Measured:
    """`raw` of every snapshot, by its verb, claims included; files."""
    return lambda: sum(
        stage_named("raw_snapshot")
        .build(bench.context, parse_snapshot(name))
        .published.receipt.counts.extra["files"]
        for name in bench.scale.snapshots
    )


def manifests_read(bench: Bench) -> Measured:
    """Every manifest, one after another, as `filtered` reads it; shards."""
    return lambda: sum(
        len(raw.read_manifest(bench.lake.partition("raw_snapshot", name).require()))
        for name in bench.scale.snapshots
    )


def documents(bench: Bench) -> Measured:
    """Nothing that is measured: what stands between manifests and row tables is made up."""

    def make() -> int:
        versions.write_documents(bench.lake, bench.scale)
        return 1

    return make


def keys(bench: Bench) -> Measured:
    """`document_keys` of every snapshot, with made-up digests and sketches; documents."""

    def index() -> int:
        for snapshot in bench.scale.snapshots:
            versions.write_keys(bench.lake, bench.scale, snapshot)
        return len(bench.scale.snapshots) * bench.scale.n_documents

    return index


def bands_of_a_snapshot(bench: Bench) -> Measured:
    """`signature_bands` of one snapshot, by its verb, claims included: as many small files as there
    are shards; documents.
    """
    return lambda: (
        stage_named("signature_index")
        .build(bench.context, parse_snapshot(bench.scale.whole))
        .counts.kept
    )


def near_pairs_of_a_snapshot(bench: Bench) -> Measured:
    """`near_pairs` of one snapshot, by its verb, claims included: documents in as many small files
    as there are shards; documents.
    """

    def pair() -> int:
        built = stage_named("near_duplicate_pairs").build(
            bench.context, parse_snapshot(bench.scale.whole)
        )
        assert built.counts.kept >= bench.scale.n_documents // 25
        return bench.scale.n_documents

    return pair


def removals(bench: Bench) -> Measured:
    """Nothing that is measured: what is removed, and the receipts of tokens."""

    def make() -> int:
        versions.write_removals(bench.lake, bench.scale)
        return 1

    return make


def rows(bench: Bench) -> Measured:
    """`grid`'s row tables, planned and written, but no row; rows."""

    def lay() -> int:
        publisher, n_rows = Publisher.into(bench.lake), 0
        for snapshot in bench.scale.snapshots:
            table = plan_rows(made.tokenized_of(bench.scale, snapshot), RECIPE.token_grid)

            def write(home: Path, _: object, table=table) -> None:
                write_table(home / ROWS_FILE, table)
                for split in SPLITS:
                    create_grid(
                        home / f"{split}.zarr",
                        RECIPE.token_grid.layout(of_split(table, split).num_rows, GPT2_VOCAB_SIZE),
                    )

            counts = {f"{split} rows": of_split(table, split).num_rows for split in SPLITS}
            publisher.publish(
                "token_grid",
                snapshot,
                write,
                counts=Counts(seen=table.num_rows, kept=table.num_rows, extra=counts),
            )
            n_rows += table.num_rows
        return n_rows

    return lay


def row_index(bench: Bench) -> Measured:
    """`lineage` of every snapshot, by its verb, claims included; rows."""
    names = [parse_snapshot(name) for name in bench.scale.snapshots]
    return lambda: sum(
        stage_named("row_lineage").build(bench.context, name).counts.kept for name in names
    )


def order(bench: Bench) -> Measured:
    """`longcrawl`: the riffle of all row tables, by its verb, claims included; rows."""
    return lambda: stage_named("longcrawl").build(bench.context, "all").counts.kept


def rest(bench: Bench) -> Measured:
    """Nothing that is measured: what is behind the order."""

    def make() -> int:
        versions.write_rest(bench.lake)
        return 1

    return make
