"""What the UI shows of assets of token ids: ragged documents, then rows of 65,536, then all
rows in one order.
"""

import numpy as np

from lc_assets.build import showing
from lc_assets.build.checks import documents_files
from lc_assets.build.showing import Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import ROWS, TOKENIZED, read_all
from lc_assets.stages.lineage import row_lineage as lineage
from lc_assets.stages.rows import longcrawl as ordering
from lc_assets.stages.rows import longcrawl_flat as flattening
from lc_assets.stages.rows import token_grid as gridding
from lc_assets.stages.shown import origins
from lc_assets.vocabulary import SPLITS


def token_documents(context: BuildContext, built: Built) -> Shown:
    """Of `token_documents`."""
    lengths = np.asarray(
        read_all(documents_files(built.published.folder), TOKENIZED, ["n_tokens"])["n_tokens"]
    )
    least = context.recipe.token_documents.min_tokens
    return Shown(
        columns=TOKENIZED,
        origins=origins.TOKENS,
        values={
            "lengths": showing.histogram(
                "Length of token documents",
                lengths,
                unit="tokens",
                mark=least,
                mark_name=f"fewest, {least:,}",
            )
        },
    )


def token_grid(context: BuildContext, built: Built) -> Shown:
    """Of `token_grid`."""
    return Shown(
        rows=sum(built.counts.extra[f"{split} rows"] for split in SPLITS),
        columns=ROWS,
        origins=origins.ROWS,
        values={
            "sizes": showing.bars(
                "Size of the rows", gridding.sizes_of(built.published), unit="bytes"
            ),
            "first_rows": Table(
                gridding.decoded_rows(
                    built.published, context.recipe.token_documents.tokenizer, n_rows=5
                )
            ),
            "document_lengths": showing.histogram(
                "Length of the documents behind the rows",
                gridding.rows_table(built.published)["n_tokens"],
                unit="tokens",
                mark=context.recipe.token_grid.row_tokens,
                mark_name="what a row takes",
            ),
        },
    )


def row_lineage(_context: BuildContext, built: Built) -> Shown:
    """Of `row_lineage`."""
    counts = {
        name: built.counts.extra[name]
        for name in (*(f"{split} rows" for split in SPLITS), "removals")
    }
    return Shown(
        columns=lineage.SCHEMA,
        origins=origins.RECORDS,
        values={
            "indexed": showing.bars("What can be found", counts, unit="rows, and removed documents")
        },
    )


def longcrawl(_context: BuildContext, built: Built) -> Shown:
    """Of `longcrawl`."""
    return Shown(
        values={
            "tokens_by_snapshot": showing.timeline(
                "Tokens by snapshot", ordering.tokens_by_snapshot(built.published), unit="tokens"
            )
        }
    )


def longcrawl_flat(_context: BuildContext, built: Built) -> Shown:
    """Of `longcrawl_flat`."""
    sizes = {
        "ids as they are": flattening.raw_bytes(built.published),
        "stored": built.published.receipt.n_bytes,
    }
    return Shown(values={"sizes": showing.bars("Size of the flat arrays", sizes, unit="bytes")})
