"""The chain: every stage with the verb that builds one of its partitions, upstream first."""

from collections.abc import Callable
from dataclasses import dataclass

from lc_assets.errors import BadInput
from lc_assets.stages.building import BuildContext, Built, Stage
from lc_assets.stages.decontamination import contaminated_documents as contamination
from lc_assets.stages.deduplication import document_signatures as signing
from lc_assets.stages.deduplication import near_duplicate_pairs as near_pairs
from lc_assets.stages.deduplication import removed_documents as removals
from lc_assets.stages.deduplication import signature_index as signature_bands
from lc_assets.stages.documents import clean_documents as cleaning
from lc_assets.stages.documents import document_keys as keying
from lc_assets.stages.documents import filtered_documents as filtering
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.lineage import row_lineage as lineage
from lc_assets.stages.links import html_index, page_links
from lc_assets.stages.longpack import link_claims
from lc_assets.stages.longpack import longpack_documents as longpack
from lc_assets.stages.megatron import megatron_rows as megatron
from lc_assets.stages.mixes import blended_mix as blending
from lc_assets.stages.packing import packed_rows as packed
from lc_assets.stages.reports import data_set_card as card
from lc_assets.stages.reports import length_report as lengths
from lc_assets.stages.reports import referral_report as referrals
from lc_assets.stages.rows import longcrawl as ordering
from lc_assets.stages.rows import longcrawl_flat as flattening
from lc_assets.stages.rows import token_grid as gridding
from lc_assets.stages.tokens import packing_tokens
from lc_assets.stages.tokens import token_documents as tokenizing
from lc_assets.stages.withdrawal import snapshot_withdrawals as withdrawals
from lc_assets.stages.withdrawal import withdrawn_documents as withdrawing
from lc_assets.vocabulary import parse_snapshot


@dataclass(frozen=True, slots=True)
class Step:
    """A stage and its verb."""

    stage: Stage
    verb: Callable[[BuildContext, str], Built]

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name


CHAIN: tuple[Step, ...] = (
    Step(raw.STAGE, lambda context, key: raw.take_stock(context, parse_snapshot(key))),
    Step(
        filtering.STAGE,
        lambda context, key: filtering.filter_snapshot(context, parse_snapshot(key)),
    ),
    Step(keying.STAGE, lambda context, key: keying.key_snapshot(context, parse_snapshot(key))),
    Step(signing.STAGE, lambda context, key: signing.sign_snapshot(context, parse_snapshot(key))),
    Step(
        signature_bands.STAGE,
        lambda context, key: signature_bands.cut_snapshot(context, parse_snapshot(key)),
    ),
    Step(
        near_pairs.STAGE,
        lambda context, key: near_pairs.pair_snapshot(context, parse_snapshot(key)),
    ),
    Step(
        contamination.STAGE,
        lambda context, key: contamination.find_contamination(context, parse_snapshot(key)),
    ),
    Step(withdrawing.STAGE, lambda context, _: withdrawing.withdraw(context)),
    Step(withdrawals.STAGE, lambda context, key: withdrawals.cut_out(context, parse_snapshot(key))),
    Step(
        removals.STAGE,
        lambda context, key: removals.decide_removals(context, parse_snapshot(key)),
    ),
    Step(
        cleaning.STAGE,
        lambda context, key: cleaning.write_clean_documents(context, parse_snapshot(key)),
    ),
    Step(
        html_index.STAGE,
        lambda context, key: html_index.index_pages(context, parse_snapshot(key)),
    ),
    Step(
        page_links.STAGE,
        lambda context, key: page_links.find_page_links(context, parse_snapshot(key)),
    ),
    Step(
        link_claims.STAGE,
        lambda context, key: link_claims.claim_snapshot(context, parse_snapshot(key)),
    ),
    Step(longpack.STAGE, lambda context, key: longpack.pack_snapshot(context, parse_snapshot(key))),
    Step(
        tokenizing.STAGE,
        lambda context, key: tokenizing.tokenize_snapshot(context, parse_snapshot(key)),
    ),
    Step(gridding.STAGE, lambda context, key: gridding.lay_grid(context, parse_snapshot(key))),
    Step(lineage.STAGE, lambda context, key: lineage.index_rows(context, parse_snapshot(key))),
    Step(ordering.STAGE, lambda context, _: ordering.order_snapshots(context)),
    Step(flattening.STAGE, lambda context, _: flattening.flatten(context)),
    Step(
        megatron.STAGE, lambda context, key: megatron.write_snapshot(context, parse_snapshot(key))
    ),
    Step(
        packing_tokens.STAGE,
        lambda context, key: packing_tokens.tokenize_for_packing(context, parse_snapshot(key)),
    ),
    Step(packed.STAGE, lambda context, key: packed.pack_snapshot(context, parse_snapshot(key))),
    Step(lengths.STAGE, lambda context, key: lengths.report_lengths(context, parse_snapshot(key))),
    Step(
        referrals.STAGE,
        lambda context, key: referrals.report_referrals(context, parse_snapshot(key)),
    ),
    Step(blending.STAGE, blending.blend_mix),
    Step(card.STAGE, lambda context, _: card.write_card(context)),
)


def step(name: str) -> Step:
    """The step of this name.

    Raises:
        BadInput: when there is none; lists those there are.
    """
    for found in CHAIN:
        if found.name == name:
            return found
    raise BadInput(f"no stage {name!r}; there are {', '.join(found.name for found in CHAIN)}")
