"""All stages, upstream first. Assets, checks, jobs, plans and documentation are made from this
list.

A new stage needs its own module and a line here (docs/contributing.md). A stage is named like its
module, which is imported when the stage is first used: a command over files needs few of them.
"""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import Stage
from lc_assets.errors import BadInput, known_names

MODULES = (
    "documents.raw_snapshot",
    "documents.document_signals",
    "documents.filtered_documents",
    "deduplication.document_signatures",
    "documents.document_keys",
    "deduplication.signature_index",
    "deduplication.near_duplicate_pairs",
    "deduplication.heldout_pairs",
    "decontamination.contaminated_documents",
    "withdrawal.withdrawn_documents",
    "withdrawal.snapshot_withdrawals",
    "deduplication.removed_documents",
    "documents.clean_documents",
    "packing.length_buckets",
    "links.html_index",
    "links.page_links",
    "longpack.link_claims",
    "longpack.longpack_documents",
    "tokens.token_documents",
    "rows.token_grid",
    "lineage.row_lineage",
    "rows.longcrawl",
    "rows.longcrawl_flat",
    "megatron.megatron_rows",
    "tokens.packing_tokens",
    "packing.packed_rows",
    "reports.length_report",
    "reports.referral_report",
    "mixes.blended_mix",
    "reports.data_set_card",
)
"""Modules of the stages, below this package."""

NAMES = tuple(module.partition(".")[2] for module in MODULES)
"""Names of the stages."""

if TYPE_CHECKING:
    STAGES: tuple[Stage, ...]


def __getattr__(name: str) -> Any:
    """``STAGES``, made when it is first read."""
    if name != "STAGES":
        raise AttributeError(name)
    stages = tuple(map(stage_named, NAMES))
    globals()["STAGES"] = stages
    return stages


def stage_named(name: str) -> Stage:
    """The stage of this name.

    Raises:
        BadInput: when there is none; lists those there are.
    """
    if name not in NAMES:
        raise BadInput(f"no stage {name!r}; there are {known_names(NAMES, name)}")
    module = importlib.import_module(f"{__package__}.{MODULES[NAMES.index(name)]}")
    stage: Stage = module.STAGE
    return stage


def needed_by(recipe: Recipe) -> set[str]:
    """Names of the stages that a recipe builds: its target and what this reads, or all that are
    wanted and not refused.
    """
    if not recipe.target:
        wanted = {stage.name for stage in map(stage_named, NAMES) if stage.wanted(recipe)}
        return wanted - refused_by(recipe).keys()
    return {recipe.target, *read_by(stage_named(recipe.target), recipe)}


def refused_by(recipe: Recipe) -> dict[str, str]:
    """Why a recipe cannot have some of the stages that it enables, by name."""
    stages = [stage for stage in map(stage_named, NAMES) if stage.wanted(recipe)]
    return {stage.name: why for stage in stages if (why := stage.refused(recipe))}


def read_by(stage: Stage, recipe: Recipe) -> Iterator[str]:
    """Names of the stages that a stage reads, directly or not, by a recipe."""
    for upstream, partitions in stage.reads.items():
        if partitions.is_needed(recipe):
            yield upstream
            yield from read_by(stage_named(upstream), recipe)
