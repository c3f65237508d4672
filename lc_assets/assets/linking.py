"""Assets between a crawl's pages and LongPack's documents: where pages are, what they link to, what
is packed of them.
"""

from typing import Any

import dagster as dg

from lc_assets.assets import columns, plots
from lc_assets.assets.documents import HEAD, TAIL, filtered_documents
from lc_assets.assets.removing import removed_documents
from lc_assets.assets.reporting import passages, report, table
from lc_assets.partitions import SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages import watching
from lc_assets.stages.links import html_index as indexing
from lc_assets.stages.links import page_links as linking
from lc_assets.stages.links.crawl_files import crawl_of
from lc_assets.stages.links.link_tables import HTML_INDEX, LINK_CLAIMS, PAGE_LINKS
from lc_assets.stages.longpack import link_claims as claiming
from lc_assets.stages.longpack import longpack_documents as longpack
from lc_assets.stages.longpack.growing import Lengths, beside_the_paper, lengths_of, roots_tried
from lc_assets.stages.tables import FILTERED
from lc_assets.vocabulary import parse_snapshot

SHOWN = 10
SHOWN_DOCUMENTS = 4


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet", "duckdb"},
    code_version=indexing.STAGE.code_version,
    deps=[filtered_documents],
)
def html_index(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Which record of the crawl's archives holds the page of each filtered document of one
    snapshot, as it was fetched.
    """
    with workshop.open(context.log) as opened:
        snapshot = parse_snapshot(context.partition_key)
        state = watching.state_of_crawl(
            crawl_of(opened), snapshot
        )  # before the look: what changes meanwhile is looked at again
        built = indexing.index_pages(opened, snapshot)
        return report(
            built,
            columns=HTML_INDEX,
            upstream_state=state,
            origins=columns.HTML_INDEX,
            records=plots.bars(
                "Records of the crawl that were read",
                indexing.records_by_kind(built.counts),
                unit="records",
            ),
            pages=table(indexing.first_lines(built.published.folder, SHOWN)),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet"},
    code_version=linking.STAGE.code_version,
    deps=[html_index, filtered_documents],
)
def page_links(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Which pages the pages of one snapshot point at, by which words; and why other links lead to
    none.
    """
    with workshop.open(context.log) as opened:
        built = linking.find_page_links(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            counted="pages",
            columns=PAGE_LINKS,
            origins=columns.PAGE_LINKS,
            fates=plots.bars("Where links lead", linking.links_by_fate(built.counts), unit="links"),
            most_pointed_at=table(linking.most_pointed_at(built.published, SHOWN)),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet", "duckdb"},
    code_version=claiming.STAGE.code_version,
    deps=[page_links, filtered_documents, removed_documents],
)
def link_claims(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Which page's text goes before which root of one snapshot, along links: the first root by a
    keyed hash keeps a page.
    """
    with workshop.open(context.log) as opened:
        built = claiming.claim_snapshot(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            counted="links",
            columns=LINK_CLAIMS,
            origins=columns.LINK_CLAIMS,
            first_claims=table(claiming.first_lines(built.published.folder, SHOWN)),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="links",
    kinds={"parquet"},
    code_version=longpack.STAGE.code_version,
    deps=[link_claims, filtered_documents],
)
def longpack_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """One snapshot's packed documents: each a root behind what it points at, anchor texts above,
    with a span per part.
    """
    with workshop.open(context.log) as opened:
        snapshot = parse_snapshot(context.partition_key)
        built = longpack.pack_snapshot(opened, snapshot)
        folder = built.published.folder
        tried = roots_tried(opened.lake.partition("link_claims", snapshot).require().receipt.counts)
        lengths = lengths_of(longpack.spans_files(folder), n_roots=tried)
        return report(
            built,
            columns=FILTERED,
            origins=columns.LONGPACK,
            growth=table(_growth(lengths)),
            tokens_by_length=_shares(lengths),
            packed_lengths=plots.histogram(
                "Length of packed documents",
                lengths.packed,
                unit="tokens",
                mark=opened.recipe.longpack_documents.max_tokens,
                mark_name="the limit",
            ),
            examples=passages(
                [
                    _shown(document, spans)
                    for document, spans in longpack.first_documents(folder, SHOWN_DOCUMENTS)
                ]
            ),
        )


def _growth(lengths: Lengths) -> list[dict[str, Any]]:
    return [
        {"measure": name, "here": ours, "paper": theirs}
        for name, ours, theirs in beside_the_paper(lengths.growth)
    ]


def _shares(lengths: Lengths) -> dg.MetadataValue:
    before, after = (
        {name: 100 * pair[side] for name, pair in lengths.shares.items()} for side in (0, 1)
    )
    return plots.bars(
        "Tokens by length of their document",
        before,
        unit="per cent",
        beside=after,
        names=("pages alone", "packed"),
    )


def _shown(document: dict[str, Any], spans: list[dict[str, Any]]) -> dict[str, Any]:
    text = document["raw_content"]
    return {
        "id": document["id"],
        "parts": len(spans),
        "tokens": sum(span["n_tokens"] for span in spans),
        "first_words": spans[0]["keys"],
        "begins": text[:HEAD],
        "ends": text[-TAIL:],
    }
