"""Assets of reports: how long the documents of a snapshot's sets are, and how densely they refer to
what they said before.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from lc_assets.assets import columns, plots
from lc_assets.assets.documents import filtered_documents
from lc_assets.assets.linking import link_claims, longpack_documents
from lc_assets.assets.packing import packed_rows
from lc_assets.assets.removing import removed_documents
from lc_assets.assets.reporting import report, table
from lc_assets.partitions import SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.reports import length_report as lengths
from lc_assets.stages.reports import referral_report as referrals
from lc_assets.stages.reports.length_claims import SHARES_FILE
from lc_assets.stages.reports.referral_claims import DENSITIES_FILE
from lc_assets.stages.reports.report_tables import DENSITIES, GROWTH, LENGTH_SHARES
from lc_assets.stages.tables import read_table
from lc_assets.vocabulary import parse_snapshot


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="reports",
    kinds={"parquet"},
    code_version=lengths.STAGE.code_version,
    deps=[filtered_documents, removed_documents, link_claims, longpack_documents, packed_rows],
)
def length_report(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """How long one snapshot's documents are in tokens: natural ones, LongPack's, pieces of packed
    rows; how roots grew.
    """
    with workshop.open(context.log) as opened:
        built = lengths.report_lengths(opened, parse_snapshot(context.partition_key))
        lines = read_table(built.published.folder / SHARES_FILE, LENGTH_SHARES.names).to_pylist()
        grown = read_table(built.published.folder / lengths.GROWTH_FILE, GROWTH.names).to_pylist()
        return report(
            built,
            columns=LENGTH_SHARES,
            origins=columns.LENGTHS,
            shares=table(lines),
            growth=table(grown),
            where_tokens_are=_by_set(
                "Where the tokens are, by length of documents",
                lines,
                "token_share",
                "share of the set's tokens",
            ),
            at_least_as_long=_by_set(
                "Documents at least as long",
                lines,
                "document_share_from",
                "share of documents",
                logarithmic=True,
            ),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="reports",
    kinds={"parquet"},
    code_version=referrals.STAGE.code_version,
    deps=[length_report, filtered_documents, longpack_documents, packed_rows],
)
def referral_report(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """How densely a sample of one snapshot's documents comes back to what they said before, beside
    the LongPack paper's tables.
    """
    with workshop.open(context.log) as opened:
        built = referrals.report_referrals(opened, parse_snapshot(context.partition_key))
        lines = read_table(built.published.folder / DENSITIES_FILE, DENSITIES.names).to_pylist()
        farthest = lines[-1]["distance"] if lines else ""
        by_set = {
            name: [line for line in lines if line["document_set"] == name]
            for name in dict.fromkeys(line["document_set"] for line in lines)
        }
        drawn: dict[str, Any] = {
            f"pairs_{name}": _by_distance(f"Pairs of mentions, {name}", own)
            for name, own in by_set.items()
        }
        return report(
            built,
            columns=DENSITIES,
            origins=columns.DENSITIES,
            densities=table([line for line in lines if line["counted"] == "pairs"]),
            farthest=_beside_the_paper(
                f"Pairs of mentions, {farthest} sentences apart",
                [line for line in lines if line["distance"] == farthest],
            ),
            **drawn,
        )


def _by_set(
    title: str,
    lines: Sequence[dict[str, Any]],
    column: str,
    unit: str,
    *,
    logarithmic: bool = False,
) -> dg.MetadataValue:
    groups = list(dict.fromkeys(line["length_group"] for line in lines))
    sets = dict.fromkeys(line["document_set"] for line in lines)
    heights = {
        name: [line[column] for line in lines if line["document_set"] == name] for name in sets
    }
    return plots.columns(title, groups, heights, unit=unit, logarithmic=logarithmic)


def _by_distance(title: str, lines: Sequence[dict[str, Any]]) -> dg.MetadataValue:
    pairs = [line for line in lines if line["counted"] == "pairs"]
    groups = list(dict.fromkeys(line["length_group"] for line in pairs))
    distances = list(dict.fromkeys(line["distance"] for line in pairs))
    heights = {
        distance: [line["figure"] for line in pairs if line["distance"] == distance]
        for distance in distances
    }
    return plots.columns(title, groups, heights, unit="per token", logarithmic=True)


def _beside_the_paper(title: str, lines: Sequence[dict[str, Any]]) -> dg.MetadataValue:
    pairs = [line for line in lines if line["counted"] == "pairs"]
    groups = list(dict.fromkeys(line["length_group"] for line in pairs))
    heights: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(line["document_set"] for line in pairs):
        own = {line["length_group"]: line for line in pairs if line["document_set"] == name}
        heights[name] = [own[group]["figure"] if group in own else None for group in groups]
        if any(line["paper"] is not None for line in own.values()):
            heights[f"{name}, paper"] = [
                own[group]["paper"] if group in own else None for group in groups
            ]
    return plots.columns(title, groups, heights, unit="per token", logarithmic=True)
