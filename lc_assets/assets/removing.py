"""Assets of what does not go on although it is worth keeping: near duplicates, evaluation items,
the withdrawn.
"""

from collections import Counter

import dagster as dg
import pyarrow.compute as pc

from lc_assets.assets import columns, plots
from lc_assets.assets.documents import document_keys, filtered_documents, raw_snapshot
from lc_assets.assets.reporting import report, table
from lc_assets.formats.redpajama.minhash import SCHEMA
from lc_assets.partitions import ALL_SNAPSHOTS, SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.decontamination import contaminated_documents as contamination
from lc_assets.stages.decontamination.evidence import EVIDENCE
from lc_assets.stages.deduplication import document_signatures as signing
from lc_assets.stages.deduplication import near_duplicate_pairs as near_pairs
from lc_assets.stages.deduplication import removed_documents as removals
from lc_assets.stages.deduplication import signature_index as signature_bands
from lc_assets.stages.deduplication.banded_documents import BANDED
from lc_assets.stages.documents import clean_documents as cleaning
from lc_assets.stages.tables import WITHDRAWN, read_table
from lc_assets.stages.withdrawal import affected
from lc_assets.stages.withdrawal import snapshot_withdrawals as withdrawals
from lc_assets.stages.withdrawal import withdrawn_documents as withdrawing
from lc_assets.vocabulary import parse_snapshot

SHOWN = 10


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet"},
    code_version=signing.STAGE.code_version,
    deps=[raw_snapshot, filtered_documents],
)
def document_signatures(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """MinHash signatures of one snapshot's filtered documents: RedPajama-V2's own where it
    published them, computed else.
    """
    with workshop.open(context.log) as opened:
        built = signing.sign_snapshot(opened, parse_snapshot(context.partition_key))
        counts = {
            name: built.counts.extra.get(name, 0)
            for name in (signing.PUBLISHED, signing.COMPUTED, signing.TOO_SHORT)
        }
        return report(
            built,
            columns=SCHEMA,
            origins=columns.SIGNATURES,
            origin=plots.bars("Where signatures are from", counts, unit="documents"),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"numpy", "parquet"},
    code_version=signature_bands.STAGE.code_version,
    deps=[filtered_documents, document_signatures],
)
def signature_index(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Signatures of one snapshot cut into bands and sorted, once: newer snapshots look up in it
    what is like something of theirs.
    """
    with workshop.open(context.log) as opened:
        built = signature_bands.cut_snapshot(opened, parse_snapshot(context.partition_key))
        counts = {
            name: built.counts.extra.get(name, 0)
            for name in (signature_bands.SIGNED, signature_bands.NOT_SIGNED)
        }
        return report(
            built,
            columns=BANDED,
            origins=columns.BANDED,
            documents=plots.bars("Documents", counts, unit="documents"),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet", "duckdb"},
    code_version=near_pairs.STAGE.code_version,
    deps=[
        dg.AssetDep(asset, partition_mapping=ALL_SNAPSHOTS)
        for asset in (filtered_documents, signature_index)
    ],
)
def near_duplicate_pairs(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Near duplicates of one snapshot among itself and the older ones, each pair compared by its
    texts.
    """
    with workshop.open(context.log) as opened:
        built = near_pairs.pair_snapshot(opened, parse_snapshot(context.partition_key))
        found = read_table(built.published.folder / near_pairs.TABLE, near_pairs.NEAR_PAIRS.names)
        alike = found.take(pc.sort_indices(found["similarity"]))
        return report(
            built,
            counted="pairs",
            columns=near_pairs.NEAR_PAIRS,
            origins=columns.NEAR_PAIRS,
            similarities=plots.shares(
                "How alike the pairs are", found["similarity"], along="Jaccard index", unit="pairs"
            ),
            least_alike=table(alike.slice(0, SHOWN).to_pylist()),
            most_alike=table(alike.slice(max(alike.num_rows - SHOWN, 0)).to_pylist()),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet"},
    code_version=contamination.STAGE.code_version,
    deps=[filtered_documents],
)
def contaminated_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Filtered documents of one snapshot that hold items of the recipe's evaluation sets, and
    where; none when it names none.
    """
    with workshop.open(context.log) as opened:
        built = contamination.find_contamination(opened, parse_snapshot(context.partition_key))
        worst = sorted(
            contamination.evidence_lines(built.published.folder), key=lambda line: -line["coverage"]
        )
        return report(
            built,
            columns=EVIDENCE,
            origins=columns.CONTAMINATED,
            coverage=plots.shares(
                "How much of an item stands in a document",
                [line["coverage"] for line in worst],
                unit="finds",
            ),
            worst=table(worst[:SHOWN]),
        )


@dg.asset(
    group_name="documents",
    kinds={"parquet"},
    code_version=withdrawing.STAGE.code_version,
    deps=[
        dg.AssetDep(asset, partition_mapping=ALL_SNAPSHOTS)
        for asset in (document_keys, near_duplicate_pairs)
    ],
)
def withdrawn_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Documents of all snapshots that must no longer be served, by the recipe's lists: what these
    name, and the same content.
    """
    with workshop.open(context.log) as opened:
        built = withdrawing.withdraw(opened)
        lines = withdrawing.withdrawn_lines(built.published)
        found = affected.affected_by(opened.lake, lines)
        return report(
            built,
            columns=WITHDRAWN,
            origins=columns.WITHDRAWN,
            how=plots.bars(
                "Why they are withdrawn", Counter(line["how"] for line in lines), unit="documents"
            ),
            taken_out=table(affected.by_reason(found)),
            stands_until_rebuilt=table(
                [{"partition": name} for name in affected.partitions(opened.lake, found)]
            ),
            documents=table(lines[:SHOWN]),
        )


@dg.asset(
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet"},
    code_version=withdrawals.STAGE.code_version,
    deps=[withdrawn_documents, document_keys],
)
def snapshot_withdrawals(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """One snapshot's withdrawn documents; where a changed list finds none of its documents, nothing
    behind this is stale.
    """
    with workshop.open(context.log) as opened:
        built = withdrawals.cut_out(opened, parse_snapshot(context.partition_key))
        lines = withdrawals.withdrawals_in(built.published.folder)
        return report(
            built,
            columns=withdrawals.WITHDRAWALS,
            origins=columns.WITHDRAWALS,
            how=plots.bars(
                "Why they are withdrawn", Counter(line["how"] for line in lines), unit="documents"
            ),
            documents=table(lines[:SHOWN]),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet", "duckdb"},
    code_version=removals.STAGE.code_version,
    deps=[
        *(
            dg.AssetDep(asset, partition_mapping=ALL_SNAPSHOTS)
            for asset in (filtered_documents, signature_index, near_duplicate_pairs)
        ),
        contaminated_documents,
        snapshot_withdrawals,
    ],
)
def removed_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Which filtered documents of one snapshot do not go on, for which others, and why; taken back
    by another setting.
    """
    with workshop.open(context.log) as opened:
        built = removals.decide_removals(opened, parse_snapshot(context.partition_key))
        lines = (
            read_table(built.published.folder / removals.TABLE, removals.REMOVALS.names)
            .slice(0, SHOWN)
            .to_pylist()
        )
        return report(
            built,
            columns=removals.REMOVALS,
            origins=columns.REMOVED,
            examples=table(lines),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"json", "parquet"},
    code_version=cleaning.STAGE.code_version,
    deps=[raw_snapshot, filtered_documents, contaminated_documents, removed_documents],
)
def clean_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Documents of one snapshot that no stage removed, as JSON lines or Parquet; on request."""
    with workshop.open(context.log) as opened:
        built = cleaning.write_clean_documents(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            columns=cleaning.CLEAN,
            origins=columns.CLEAN,
            why_dropped=plots.bars(
                "Why documents were removed", dict(built.counts.dropped), unit="documents"
            ),
        )
