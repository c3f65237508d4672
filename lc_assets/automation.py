"""Jobs: what is rebuilt together. When, never what."""

import dagster as dg

DOCUMENTS = (
    "raw_snapshot",
    "filtered_documents",
    "document_keys",
    "document_signatures",
    "signature_index",
    "near_duplicate_pairs",
    "contaminated_documents",
)
"""What is made of a snapshot's documents before any is taken out."""

SNAPSHOT_JOB = dg.define_asset_job(
    "snapshot",
    [
        *DOCUMENTS,
        "withdrawn_documents",
        "snapshot_withdrawals",
        "removed_documents",
        "token_documents",
        "token_grid",
        "row_lineage",
        "megatron_rows",
    ],
    description="Everything of one crawl snapshot, from what is upstream to Megatron's files.",
)
LONGCRAWL_JOB = dg.define_asset_job(
    "all_snapshots",
    ["longcrawl", "longcrawl_flat"],
    description="The global order over all published snapshots, and the flat Zarr.",
)
DOCUMENTS_JOB = dg.define_asset_job(
    "snapshot_documents",
    [*DOCUMENTS],
    description="One crawl snapshot's documents, judged and compared: what must stand of all "
    "snapshots before rows are made.",
)
WITHDRAWN_JOB = dg.define_asset_job(
    "withdrawn",
    ["withdrawn_documents"],
    description="Which documents the lists of withdrawals name, of all snapshots: run it when a "
    "list has changed.",
)
ROWS_JOB = dg.define_asset_job(
    "snapshot_rows",
    [
        "snapshot_withdrawals",
        "removed_documents",
        "token_documents",
        "token_grid",
        "row_lineage",
        "megatron_rows",
    ],
    description="One crawl snapshot's rows: who goes on, tokens, grid, Megatron's files.",
)
LONGPACK_JOB = dg.define_asset_job(
    "snapshot_longpack",
    ["html_index", "page_links", "link_claims", "longpack_documents"],
    description="One crawl snapshot's long documents from hyperlinks, where the recipe wants "
    "them: pages in the crawl's archives, "
    "links, who holds what, packed documents.",
)
PACKING_JOB = dg.define_asset_job(
    "snapshot_packing",
    ["packing_tokens", "packed_rows"],
    description="One crawl snapshot's packed rows, where the recipe wants them: tokens of "
    "documents of any length, rows of a fixed one.",
)
REPORTS_JOB = dg.define_asset_job(
    "snapshot_reports",
    ["length_report", "referral_report"],
    description="Lengths and referrals of one crawl snapshot's document sets, where the recipe "
    "wants them.",
)
MIXES_JOB = dg.define_asset_job(
    "mixes", ["blended_mix"], description="One blend of the published snapshots."
)

CARD_JOB = dg.define_asset_job(
    "card", ["data_set_card"], description="The data sheet of what stands published."
)

JOBS = (
    SNAPSHOT_JOB,
    DOCUMENTS_JOB,
    WITHDRAWN_JOB,
    ROWS_JOB,
    LONGCRAWL_JOB,
    LONGPACK_JOB,
    PACKING_JOB,
    REPORTS_JOB,
    MIXES_JOB,
    CARD_JOB,
)
