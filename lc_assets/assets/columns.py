"""Where the columns of each asset's table come from: for the UI, which follows a column from asset to asset."""

from collections.abc import Mapping, Sequence

import dagster as dg

from lc_assets.stages.tables import IDENTITY

Origins = Mapping[str, Sequence[tuple[str, str]]]
"""Column → assets and columns that it is made of."""

WHO = tuple(name for name, _ in IDENTITY)


def carried(names: Sequence[str], asset: str) -> dict[str, list[tuple[str, str]]]:
    """Columns that are an upstream asset's columns of the same name, as they are."""
    return {name: [(asset, name)] for name in names}


FILTERED: Origins = {name: [("raw_snapshot", "path")] for name in (*WHO, "date_download", "title", "raw_content")}
"""Read out of the files that the manifest names."""

SIGNATURES: Origins = {
    "id": [("filtered_documents", "id")],
    **{f"signature_sim{similarity}": [("filtered_documents", "raw_content")] for similarity in ("1.0", "0.9", "0.8", "0.7")},
}

CONTAMINATED: Origins = {"id": [("filtered_documents", "id")], "coverage": [("filtered_documents", "raw_content")]}

NEAR_PAIRS: Origins = {
    "a": [("filtered_documents", "id")],
    "b": [("filtered_documents", "id")],
    "bands": [("document_signatures", "signature_sim0.8")],
    "similarity": [("filtered_documents", "raw_content")],
}

KEYED: Origins = carried(WHO, "filtered_documents") | {"text_digest": [("filtered_documents", "raw_content")]}

WITHDRAWN: Origins = {
    "id": [("document_keys", name) for name in ("id", "url", "digest", "text_digest")],
    "for_id": [("near_duplicate_pairs", "a"), ("near_duplicate_pairs", "b")],
    "similarity": [("near_duplicate_pairs", "similarity")],
}

WITHDRAWALS: Origins = carried(("id", "how", "for_id", "similarity"), "withdrawn_documents")

REMOVED: Origins = {
    "id": [("near_duplicate_pairs", "b"), ("contaminated_documents", "id"), ("snapshot_withdrawals", "id")],
    "for_id": [("near_duplicate_pairs", "a"), ("contaminated_documents", "item"), ("snapshot_withdrawals", "for_id")],
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


RECORDS: Origins = carried(("split", "row", "id", "url", "digest", "cc_segment", "stretch", "shift", "n_tokens"), "token_grid")


def lineage(origins: Origins) -> dg.TableColumnLineage:
    """As Dagster shows it."""
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=name) for asset, name in found]
            for column, found in origins.items()
        }
    )
