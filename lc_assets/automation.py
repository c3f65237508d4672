"""Jobs: what is rebuilt together. When, never what."""

import dagster as dg

SNAPSHOT_JOB = dg.define_asset_job(
    "snapshot",
    ["raw_snapshot", "filtered_documents", "token_documents", "token_grid", "megatron_rows"],
    description="Everything of one crawl snapshot, from what is upstream to Megatron's files.",
)
LONGCRAWL_JOB = dg.define_asset_job(
    "all_snapshots", ["longcrawl", "longcrawl_flat"], description="The global order over all published snapshots, and the flat Zarr."
)
MIXES_JOB = dg.define_asset_job("mixes", ["blended_mix"], description="One blend of the published snapshots.")

JOBS = (SNAPSHOT_JOB, LONGCRAWL_JOB, MIXES_JOB)
