"""The tables of reports on document sets: their columns. What they hold is said with all others' (`lc_assets.stages.tables.MEANINGS`)."""

from typing import Final

import pyarrow as pa

REFERRALS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("length_group", pa.string()),
        ("n_tokens", pa.int64()),
        ("n_chars", pa.int64()),
        ("n_parts", pa.int64()),
        ("n_sentences", pa.int64()),
        ("n_concepts", pa.int64()),
        ("n_mentions", pa.int64()),
        ("pairs", pa.list_(pa.int64())),
        ("neighbours", pa.list_(pa.int64())),
        ("concepts", pa.list_(pa.int64())),
    ]
)
"""Referrals of one document per line. Lists hold what is within one sentence, then each bucket; ``n_parts`` is 0 where a document's
parts are not told apart."""
