"""Columns of the report tables; `lc_assets.stages.shown.columns` describes them."""

from typing import Final

import pyarrow as pa

LENGTHS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("length_group", pa.string()),
        ("n_tokens", pa.int64()),
        ("n_chars", pa.int64()),
    ]
)
"""`length_report`: one line per document of a set; ``n_chars`` is null where only ids are known."""

LENGTH_SHARES: Final = pa.schema(
    [
        ("document_set", pa.string()),
        ("length_group", pa.string()),
        ("lower", pa.int64()),
        ("documents", pa.int64()),
        ("tokens", pa.int64()),
        ("document_share", pa.float64()),
        ("token_share", pa.float64()),
        ("documents_from", pa.int64()),
        ("document_share_from", pa.float64()),
        ("token_share_from", pa.float64()),
    ]
)
"""`length_report`: each set by length groups, and what is at least as long."""

GROWTH: Final = pa.schema(
    [
        ("n_roots", pa.int64()),
        ("n_packed", pa.int64()),
        ("hit_rate", pa.float64()),
        ("mean_of_ratios", pa.float64()),
        ("ratio_of_sums", pa.float64()),
        ("median_ratio", pa.float64()),
    ]
)
"""`length_report`: how roots grew by packing; see `lc_assets.packing`."""

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
"""Referrals, one document per row. Lists hold the counts within one sentence, then of each bucket;
``n_parts`` is 0 if a document's parts are not distinguished.
"""

DENSITIES: Final = pa.schema(
    [
        ("document_set", pa.string()),
        ("length_group", pa.string()),
        ("documents", pa.int64()),
        ("tokens", pa.int64()),
        ("counted", pa.string()),
        ("distance", pa.string()),
        ("figure", pa.float64()),
        ("paper", pa.float64()),
    ]
)
"""`referral_report`: means over the measured documents of a set and a group; ``paper`` is what the
LongPack paper prints there, or null.
"""

COMMON_WORDS: Final = pa.schema(
    [("word", pa.string()), ("n_pieces", pa.int64()), ("n_documents", pa.int64())]
)
"""`referral_report`: words that are no concepts because many pieces of the natural documents
contain them.
"""
