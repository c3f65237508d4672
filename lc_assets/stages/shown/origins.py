"""Where the columns of each asset's table come from: for the UI, which follows a column from asset
to asset.
"""

from collections.abc import Sequence

from lc_assets.build.showing import Origins
from lc_assets.build.tables import IDENTITY

WHO = tuple(name for name, _ in IDENTITY)


def carried(names: Sequence[str], asset: str) -> dict[str, list[tuple[str, str]]]:
    """Columns that are an upstream asset's columns of the same name, as they are."""
    return {name: [(asset, name)] for name in names}


FILTERED: Origins = {
    name: [("raw_snapshot", "path")] for name in (*WHO, "date_download", "title", "raw_content")
}
"""Read out of the files that the manifest names."""

SIGNATURES: Origins = {
    "id": [("filtered_documents", "id")],
    **{
        f"signature_sim{similarity}": [("filtered_documents", "raw_content")]
        for similarity in ("1.0", "0.9", "0.8", "0.7")
    },
}

CONTAMINATED: Origins = {
    "id": [("filtered_documents", "id")],
    "coverage": [("filtered_documents", "raw_content")],
}

BANDED: Origins = carried(("id", "digest", "date_download"), "filtered_documents")

NEAR_PAIRS: Origins = {
    "a": [("filtered_documents", "id")],
    "b": [("filtered_documents", "id")],
    "bands": [("signature_index", "id")],
    "similarity": [("filtered_documents", "raw_content")],
}

CLEAN: Origins = carried((*WHO, "date_download"), "filtered_documents") | {
    "n_chars": [("filtered_documents", "raw_content")]
}

KEYED: Origins = carried(WHO, "filtered_documents") | {
    "text_digest": [("filtered_documents", "raw_content")]
}

WITHDRAWN: Origins = {
    "id": [("document_keys", name) for name in ("id", "url", "digest", "text_digest")],
    "for_id": [("near_duplicate_pairs", "a"), ("near_duplicate_pairs", "b")],
    "similarity": [("near_duplicate_pairs", "similarity")],
}

WITHDRAWALS: Origins = carried(("id", "how", "for_id", "similarity"), "withdrawn_documents")

REMOVED: Origins = {
    "id": [
        ("near_duplicate_pairs", "b"),
        ("contaminated_documents", "id"),
        ("snapshot_withdrawals", "id"),
    ],
    "for_id": [
        ("near_duplicate_pairs", "a"),
        ("contaminated_documents", "item"),
        ("snapshot_withdrawals", "for_id"),
    ],
    "similarity": [("near_duplicate_pairs", "similarity"), ("snapshot_withdrawals", "similarity")],
}

TOKENS: Origins = carried(WHO, "filtered_documents") | {
    name: [("filtered_documents", "raw_content")] for name in ("n_tokens", "n_chars", "n_bytes")
}

ROWS: Origins = carried((*WHO, "n_tokens", "document"), "token_documents") | {
    "split": [("token_documents", "digest")],
    "priority": [("token_documents", "id")],
    "shift": [("token_documents", "id")],
}

RECORDS: Origins = carried(
    ("split", "row", "id", "url", "digest", "cc_segment", "stretch", "shift", "n_tokens"),
    "token_grid",
)

HTML_INDEX: Origins = carried(("id", "url"), "filtered_documents") | {
    "page_key": [("filtered_documents", "url")]
}

PAGE_LINKS: Origins = carried(("id", "page_key"), "html_index") | {
    name: [("html_index", "filename")]
    for name in ("target_key", "target_url", "keys", "n_links", "nofollow", "navigation", "generic")
}

LINK_CLAIMS: Origins = carried(("keys", "target_url"), "page_links") | {
    "root_id": [("page_links", "id")],
    "parent_id": [("page_links", "id")],
    "child_id": [("page_links", "target_key")],
    "cluster": [("filtered_documents", "raw_content")],
    "n_tokens": [("filtered_documents", "raw_content")],
    "root_tokens": [("filtered_documents", "raw_content")],
}

LONGPACK: Origins = carried((*WHO, "date_download", "title"), "filtered_documents") | {
    "raw_content": [
        ("filtered_documents", "raw_content"),
        ("link_claims", "root_id"),
        ("link_claims", "child_id"),
        ("link_claims", "keys"),
    ]
}

_EITHER = ("filtered_documents", "longpack_documents")

PACKING_TOKENS: Origins = {name: [(asset, name) for asset in _EITHER] for name in WHO} | {
    name: [(asset, "raw_content") for asset in _EITHER]
    for name in ("n_tokens", "n_chars", "n_bytes")
}

PACKED: Origins = carried(("id", "url", "digest", "n_tokens", "document"), "packing_tokens")

LENGTHS: Origins = {
    name: [
        ("filtered_documents", "raw_content"),
        ("longpack_documents", "raw_content"),
        ("packed_rows", "row_stop"),
    ]
    for name in ("documents", "tokens", "document_share", "token_share")
}

DENSITIES: Origins = carried(("document_set", "length_group"), "length_report") | {
    "figure": [(asset, "raw_content") for asset in _EITHER] + [("packed_rows", "row_stop")]
}
