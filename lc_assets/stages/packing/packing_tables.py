"""The table of packed rows: its columns. What they hold is said with all others'
(`lc_assets.stages.shown.columns.MEANINGS`).
"""

from typing import Final

import pyarrow as pa

SPANS_FILE: Final = "spans.parquet"

PACKED_SPANS: Final = pa.schema(
    {
        "split": "string",
        "row": "int64",
        "piece": "int64",
        "id": "string",
        "url": "string",
        "digest": "string",
        "document_start": "int64",
        "document_stop": "int64",
        "row_start": "int64",
        "row_stop": "int64",
        "n_tokens": "int64",
        "token_shard": "string",
        "document": "int64",
    }
)
"""`packed_rows`: a line per piece, train first, rows in order, the pieces of a row in theirs.
``n_tokens`` is of the document, without the end of text that stands behind it when documents are
ended: that is token ``n_tokens``.
"""
