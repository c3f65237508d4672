"""What the UI shows of assets of packed rows: documents of any length, tokenized, then filled into
rows of a fixed one.
"""

import numpy as np

from lc_assets.build import showing
from lc_assets.build.checks import documents_files
from lc_assets.build.showing import Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import TOKENIZED, read_all
from lc_assets.stages.packing import packed_rows as packed
from lc_assets.stages.packing.packing_tables import PACKED_SPANS
from lc_assets.stages.shown import origins
from lc_assets.vocabulary import SPLITS

SHOWN_ROWS = 2


def packing_tokens(context: BuildContext, built: Built) -> Shown:
    """Of `packing_tokens`."""
    lengths = np.asarray(
        read_all(documents_files(built.published.folder), TOKENIZED, ["n_tokens"])["n_tokens"]
    )
    row = context.recipe.packed_rows.row_tokens
    return Shown(
        columns=TOKENIZED,
        origins=origins.PACKING_TOKENS,
        values={
            "lengths": showing.histogram(
                "Length of documents to be packed",
                lengths,
                unit="tokens",
                mark=row,
                mark_name=f"a row, {row:,}",
            )
        },
    )


def packed_rows(context: BuildContext, built: Built) -> Shown:
    """Of `packed_rows`."""
    settings, folder = context.recipe.packed_rows, built.published.folder
    found = packed.balance_of(built.counts, settings)
    lengths, per_row = packed.piece_lengths(folder)
    return Shown(
        rows=found.rows,
        columns=PACKED_SPANS,
        origins=origins.PACKED,
        values={
            "padding_share": float(found.padding_share),
            "cut_share": float(found.cut_share),
            "attention_share": float(found.attention_share),
            "where_tokens_are": showing.bars(
                f"Tokens of {found.rows:,} rows, {settings.method}",
                {"in rows": found.in_rows, "padding": found.padding},
                unit="tokens",
            ),
            "rows_by_split": showing.bars(
                "Rows",
                {split: built.counts.extra[f"{split} rows"] for split in SPLITS},
                unit="rows",
            ),
            "piece_lengths": showing.histogram(
                "Length of pieces",
                lengths,
                unit="tokens",
                mark=settings.row_tokens,
                mark_name=f"a row, {settings.row_tokens:,}",
                counted="pieces",
            ),
            "pieces_per_row": showing.histogram(
                "Pieces of a row", per_row, unit="pieces", counted="rows"
            ),
            "first_rows": Table(
                packed.decoded_packed_rows(
                    folder, context.recipe.token_documents.tokenizer, n_rows=SHOWN_ROWS
                )[:20]
            ),
        },
    )
