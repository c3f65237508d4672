"""Assets of packed rows: documents of any length, tokenized, then filled into rows of a fixed
one.
"""

import dagster as dg
import numpy as np

from lc_assets.assets import columns, plots
from lc_assets.assets.documents import filtered_documents
from lc_assets.assets.linking import link_claims, longpack_documents
from lc_assets.assets.removing import removed_documents
from lc_assets.assets.reporting import report, table
from lc_assets.partitions import SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.claims import documents_files
from lc_assets.stages.packing import packed_rows as packed
from lc_assets.stages.packing.packing_tables import PACKED_SPANS
from lc_assets.stages.tables import TOKENIZED, read_all
from lc_assets.stages.tokens import packing_tokens
from lc_assets.vocabulary import SPLITS, parse_snapshot

SHOWN_ROWS = 2


@dg.asset(
    pool=WORKERS,
    key="packing_tokens",
    partitions_def=SNAPSHOTS,
    group_name="packing",
    kinds={"parquet"},
    code_version=packing_tokens.STAGE.code_version,
    deps=[filtered_documents, removed_documents, link_claims, longpack_documents],
)
def packing_token_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Token ids of one snapshot's documents that are to be packed into rows, of any length, natural
    or LongPack's.
    """
    with workshop.open(context.log) as opened:
        built = packing_tokens.tokenize_for_packing(opened, parse_snapshot(context.partition_key))
        lengths = np.asarray(
            read_all(documents_files(built.published.folder), TOKENIZED, ["n_tokens"])["n_tokens"]
        )
        row = opened.recipe.packed_rows.row_tokens
        return report(
            built,
            columns=TOKENIZED,
            origins=columns.PACKING_TOKENS,
            lengths=plots.histogram(
                "Length of documents to be packed",
                lengths,
                unit="tokens",
                mark=row,
                mark_name=f"a row, {row:,}",
            ),
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="packing",
    kinds={"zarr", "numpy", "parquet"},
    code_version=packed.STAGE.code_version,
    deps=[packing_token_documents],
)
def packed_rows(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Rows of a fixed length filled with documents of any, every span known: Zarr, Megatron's
    files, spans for masks.
    """
    with workshop.open(context.log) as opened:
        built = packed.pack_snapshot(opened, parse_snapshot(context.partition_key))
        settings, folder = opened.recipe.packed_rows, built.published.folder
        found = packed.balance_of(built.counts, settings)
        lengths, per_row = packed.piece_lengths(folder)
        return report(
            built,
            rows=found.rows,
            columns=PACKED_SPANS,
            origins=columns.PACKED,
            padding_share=dg.MetadataValue.float(found.padding_share),
            cut_share=dg.MetadataValue.float(found.cut_share),
            attention_share=dg.MetadataValue.float(found.attention_share),
            where_tokens_are=plots.bars(
                f"Tokens of {found.rows:,} rows, {settings.method}",
                {"in rows": found.in_rows, "padding": found.padding},
                unit="tokens",
            ),
            rows_by_split=plots.bars(
                "Rows",
                {split: built.counts.extra[f"{split} rows"] for split in SPLITS},
                unit="rows",
            ),
            piece_lengths=plots.histogram(
                "Length of pieces",
                lengths,
                unit="tokens",
                mark=settings.row_tokens,
                mark_name=f"a row, {settings.row_tokens:,}",
                counted="pieces",
            ),
            pieces_per_row=plots.histogram(
                "Pieces of a row", per_row, unit="pieces", counted="rows"
            ),
            first_rows=table(
                packed.decoded_packed_rows(
                    folder, opened.recipe.token_documents.tokenizer, n_rows=SHOWN_ROWS
                )[:20]
            ),
        )
