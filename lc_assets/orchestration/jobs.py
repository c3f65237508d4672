"""Jobs: which stages are built together, made from what each stage declares."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from lc_assets.build.stage import Stage

DESCRIPTIONS: Mapping[str, str] = {
    "snapshot_documents": "One crawl snapshot's documents, filtered and compared: needed of all "
    "snapshots before rows are made.",
    "withdrawn": "Which documents the lists of withdrawals name, of all snapshots: run it when a "
    "list has changed.",
    "snapshot_rows": "One crawl snapshot's rows: removals, tokens, grid, Megatron's files.",
    "all_snapshots": "The global order over all published snapshots, and the flat Zarr.",
    "snapshot_longpack": "One crawl snapshot's long documents from hyperlinks, where the recipe "
    "wants them: pages in the crawl's archives, links, claims, packed documents.",
    "snapshot_packing": "One crawl snapshot's packed rows, where the recipe wants them: tokens of "
    "documents of any length, rows of a fixed one.",
    "snapshot_reports": "Lengths and referrals of one crawl snapshot's document sets, where the "
    "recipe wants them.",
    "mixes": "One blend of the published snapshots.",
    "card": "The data sheet of what is published.",
}
WHOLE = "snapshot"
"""The job of everything that makes one snapshot's rows."""

PARTS = ("snapshot_documents", "withdrawn", "snapshot_rows")
"""The jobs that it consists of."""


def stages_by_job(stages: Iterable[Stage]) -> dict[str, tuple[str, ...]]:
    """Names of the stages of each job, upstream first."""
    found: dict[str, tuple[str, ...]] = {}
    for stage in stages:
        if stage.job:
            found[stage.job] = (*found.get(stage.job, ()), stage.name)
    return found


def jobs_of(stages: Sequence[Stage]) -> list[Any]:
    """Make the jobs."""
    by_job = stages_by_job(stages)
    jobs = [
        dg.define_asset_job(name, list(names), description=DESCRIPTIONS.get(name))
        for name, names in by_job.items()
    ]
    whole = [name for job in PARTS for name in by_job.get(job, ())]
    if not whole:
        return jobs
    described = "Everything of one crawl snapshot, from what is upstream to Megatron's files."
    return [dg.define_asset_job(WHOLE, whole, description=described), *jobs]
