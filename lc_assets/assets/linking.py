"""Assets between a crawl's pages and LongPack's documents: where pages are, what they link to, what is packed of them."""

import dagster as dg

from lc_assets.assets import plots
from lc_assets.assets.documents import filtered_documents
from lc_assets.assets.reporting import report, table
from lc_assets.partitions import SNAPSHOTS
from lc_assets.resources import WorkshopResource
from lc_assets.stages import html_index as indexing
from lc_assets.stages import page_links as linking
from lc_assets.stages.link_tables import HTML_INDEX, PAGE_LINKS
from lc_assets.vocabulary import parse_snapshot

SHOWN = 10


@dg.asset(
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet", "duckdb"},
    code_version=indexing.STAGE.code_version,
    deps=[filtered_documents],
)
def html_index(context: dg.AssetExecutionContext, workshop: WorkshopResource) -> dg.MaterializeResult:
    """Which record of the crawl's archives holds the page of each filtered document of one snapshot, as it was fetched."""
    with workshop.open(context.log) as opened:
        built = indexing.index_pages(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            columns=HTML_INDEX,
            records=plots.bars("Records of the crawl that were read", indexing.records_by_kind(built.tally), unit="records"),
            pages=table(indexing.first_lines(built.published.folder, SHOWN)),
        )


@dg.asset(
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet"},
    code_version=linking.STAGE.code_version,
    deps=[html_index, filtered_documents],
)
def page_links(context: dg.AssetExecutionContext, workshop: WorkshopResource) -> dg.MaterializeResult:
    """Which pages the pages of one snapshot point at, by which words; and why other links lead to none."""
    with workshop.open(context.log) as opened:
        built = linking.find_page_links(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            columns=PAGE_LINKS,
            fates=plots.bars("Where links lead", linking.links_by_fate(built.tally), unit="links"),
            most_pointed_at=table(linking.most_pointed_at(built.published, SHOWN)),
        )
