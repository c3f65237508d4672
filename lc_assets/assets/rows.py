"""Assets of token ids: ragged documents, then rows of 65,536, then all rows in one order."""

import dagster as dg
import numpy as np

from lc_assets.assets import columns, plots
from lc_assets.assets.documents import filtered_documents
from lc_assets.assets.removing import removed_documents
from lc_assets.assets.reporting import report, table
from lc_assets.partitions import ALL_SNAPSHOTS, SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.claims import documents_files
from lc_assets.stages.lineage import row_lineage as lineage
from lc_assets.stages.rows import longcrawl as ordering
from lc_assets.stages.rows import longcrawl_flat as flattening
from lc_assets.stages.rows import token_grid as gridding
from lc_assets.stages.tables import ROWS, TOKENIZED, read_all
from lc_assets.stages.tokens import token_documents as tokenizing
from lc_assets.vocabulary import SPLITS, parse_snapshot


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="tokens",
    kinds={"parquet"},
    code_version=tokenizing.STAGE.code_version,
    deps=[filtered_documents, removed_documents],
)
def token_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Token ids of one snapshot's documents that fill a row, whole, in Megatron's .bin/.idx with an
    identity table.
    """
    with workshop.open(context.log) as opened:
        built = tokenizing.tokenize_snapshot(opened, parse_snapshot(context.partition_key))
        lengths = np.asarray(
            read_all(documents_files(built.published.folder), TOKENIZED, ["n_tokens"])["n_tokens"]
        )
        least = opened.recipe.token_documents.min_tokens
        return report(
            built,
            columns=TOKENIZED,
            origins=columns.TOKENS,
            lengths=plots.histogram(
                "Length of token documents",
                lengths,
                unit="tokens",
                mark=least,
                mark_name=f"fewest, {least:,}",
            ),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="tokens",
    kinds={"zarr", "numpy"},
    code_version=gridding.STAGE.code_version,
    deps=[token_documents],
)
def token_grid(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Rows of one length, 65,536 tokens by default, of one snapshot, shuffled, rolled and split, as
    Zarr; their documents in a table.
    """
    with workshop.open(context.log) as opened:
        built = gridding.lay_grid(opened, parse_snapshot(context.partition_key))
        return report(
            built,
            rows=sum(built.counts.extra[f"{split} rows"] for split in SPLITS),
            columns=ROWS,
            origins=columns.ROWS,
            sizes=plots.bars("Size of the rows", gridding.sizes_of(built.published), unit="bytes"),
            first_rows=table(
                gridding.decoded_rows(
                    built.published, opened.recipe.token_documents.tokenizer, n_rows=5
                )
            ),
            document_lengths=plots.histogram(
                "Length of the documents behind the rows",
                gridding.rows_table(built.published)["n_tokens"],
                unit="tokens",
                mark=opened.recipe.token_grid.row_tokens,
                mark_name="what a row takes",
            ),
        )


@dg.asset(
    partitions_def=SNAPSHOTS,
    group_name="tokens",
    kinds={"parquet", "numpy"},
    code_version=lineage.STAGE.code_version,
    deps=[token_grid, removed_documents],
)
def row_lineage(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """An index of one snapshot's rows: each row's document, and every document's rows, in
    milliseconds.
    """
    with workshop.open(context.log) as opened:
        built = lineage.index_rows(opened, parse_snapshot(context.partition_key))
        counts = {
            name: built.counts.extra[name]
            for name in (*(f"{split} rows" for split in SPLITS), "removals")
        }
        return report(
            built,
            counted="rows",
            columns=lineage.SCHEMA,
            origins=columns.RECORDS,
            indexed=plots.bars("What can be found", counts, unit="rows, and removed documents"),
        )


@dg.asset(
    group_name="tokens",
    kinds={"numpy"},
    code_version=ordering.STAGE.code_version,
    deps=[dg.AssetDep(token_grid, partition_mapping=ALL_SNAPSHOTS)],
)
def longcrawl(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """One global order over the rows of all published snapshots: a uniform shuffle of their union,
    as a small index.
    """
    with workshop.open(context.log) as opened:
        built = ordering.order_snapshots(opened)
        return report(
            built,
            counted="rows",
            tokens_by_snapshot=plots.timeline(
                "Tokens by snapshot", ordering.tokens_by_snapshot(built.published), unit="tokens"
            ),
        )


@dg.asset(
    pool=WORKERS,
    group_name="tokens",
    kinds={"zarr"},
    code_version=flattening.STAGE.code_version,
    deps=[longcrawl],
)
def longcrawl_flat(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """All rows in the global order as one Zarr in LongCrawl64's published layout, for readers that
    know only that.
    """
    with workshop.open(context.log) as opened:
        built = flattening.flatten(opened)
        sizes = {
            "ids as they are": flattening.raw_bytes(built.published),
            "stored": built.published.receipt.n_bytes,
        }
        return report(
            built, counted="rows", sizes=plots.bars("Size of the flat arrays", sizes, unit="bytes")
        )
