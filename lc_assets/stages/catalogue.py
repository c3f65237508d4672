"""All stages, upstream first. Assets, checks, jobs, plans and documentation are made from this
list.

A new stage needs its own module and a line here (docs/contributing.md).
"""

from lc_assets.build.stage import Stage
from lc_assets.errors import BadInput
from lc_assets.stages.decontamination import contaminated_documents
from lc_assets.stages.deduplication import (
    document_signatures,
    near_duplicate_pairs,
    removed_documents,
    signature_index,
)
from lc_assets.stages.documents import (
    clean_documents,
    document_keys,
    document_signals,
    filtered_documents,
    raw_snapshot,
)
from lc_assets.stages.lineage import row_lineage
from lc_assets.stages.links import html_index, page_links
from lc_assets.stages.longpack import link_claims, longpack_documents
from lc_assets.stages.megatron import megatron_rows
from lc_assets.stages.mixes import blended_mix
from lc_assets.stages.packing import length_buckets, packed_rows
from lc_assets.stages.reports import data_set_card, length_report, referral_report
from lc_assets.stages.rows import longcrawl, longcrawl_flat, token_grid
from lc_assets.stages.tokens import packing_tokens, token_documents
from lc_assets.stages.withdrawal import snapshot_withdrawals, withdrawn_documents

STAGES: tuple[Stage, ...] = (
    raw_snapshot.STAGE,
    document_signals.STAGE,
    filtered_documents.STAGE,
    document_keys.STAGE,
    document_signatures.STAGE,
    signature_index.STAGE,
    near_duplicate_pairs.STAGE,
    contaminated_documents.STAGE,
    withdrawn_documents.STAGE,
    snapshot_withdrawals.STAGE,
    removed_documents.STAGE,
    clean_documents.STAGE,
    length_buckets.STAGE,
    html_index.STAGE,
    page_links.STAGE,
    link_claims.STAGE,
    longpack_documents.STAGE,
    token_documents.STAGE,
    token_grid.STAGE,
    row_lineage.STAGE,
    longcrawl.STAGE,
    longcrawl_flat.STAGE,
    megatron_rows.STAGE,
    packing_tokens.STAGE,
    packed_rows.STAGE,
    length_report.STAGE,
    referral_report.STAGE,
    blended_mix.STAGE,
    data_set_card.STAGE,
)


def stage_named(name: str) -> Stage:
    """The stage of this name.

    Raises:
        BadInput: when there is none; lists those there are.
    """
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise BadInput(f"no stage {name!r}; there are {', '.join(stage.name for stage in STAGES)}")
