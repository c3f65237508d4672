"""The table of packed rows: its columns. What they hold is said with all others'
(`lc_assets.stages.shown.columns.MEANINGS`).
"""

from typing import Final

import pyarrow as pa

SPANS_FILE: Final = "spans.parquet"

PACKED_SPANS: Final = pa.schema(
    [
        ("split", pa.string()),
        ("row", pa.int64()),
        ("piece", pa.int64()),
        ("id", pa.string()),
        ("url", pa.string()),
        ("digest", pa.string()),
        ("document_start", pa.int64()),
        ("document_stop", pa.int64()),
        ("row_start", pa.int64()),
        ("row_stop", pa.int64()),
        ("n_tokens", pa.int64()),
        ("token_shard", pa.string()),
        ("document", pa.int64()),
    ]
)
"""`packed_rows`: a line per piece, train first, rows in order, the pieces of a row in theirs.
``n_tokens`` is of the document, without the end of text that stands behind it when documents are
ended: that is token ``n_tokens``.
"""
