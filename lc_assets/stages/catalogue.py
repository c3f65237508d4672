"""The chain: every stage with the verb that builds one of its partitions, upstream first."""

from collections.abc import Callable
from dataclasses import dataclass

from lc_assets.errors import BadInput
from lc_assets.stages import (
    blending,
    card,
    contamination,
    filtering,
    flattening,
    gridding,
    html_index,
    keying,
    lengths,
    lineage,
    link_claims,
    longpack,
    megatron,
    near_pairs,
    ordering,
    packed,
    packing_tokens,
    page_links,
    raw,
    referrals,
    removals,
    signature_bands,
    signing,
    tokenizing,
    withdrawals,
    withdrawing,
)
from lc_assets.stages.building import Built, Stage, Workshop
from lc_assets.vocabulary import parse_snapshot


@dataclass(frozen=True, slots=True)
class Step:
    """A stage and its verb."""

    stage: Stage
    verb: Callable[[Workshop, str], Built]

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name


CHAIN: tuple[Step, ...] = (
    Step(raw.STAGE, lambda workshop, key: raw.take_stock(workshop, parse_snapshot(key))),
    Step(
        filtering.STAGE,
        lambda workshop, key: filtering.filter_snapshot(workshop, parse_snapshot(key)),
    ),
    Step(keying.STAGE, lambda workshop, key: keying.key_snapshot(workshop, parse_snapshot(key))),
    Step(signing.STAGE, lambda workshop, key: signing.sign_snapshot(workshop, parse_snapshot(key))),
    Step(
        signature_bands.STAGE,
        lambda workshop, key: signature_bands.cut_snapshot(workshop, parse_snapshot(key)),
    ),
    Step(
        near_pairs.STAGE,
        lambda workshop, key: near_pairs.pair_snapshot(workshop, parse_snapshot(key)),
    ),
    Step(
        contamination.STAGE,
        lambda workshop, key: contamination.find_contamination(workshop, parse_snapshot(key)),
    ),
    Step(withdrawing.STAGE, lambda workshop, _: withdrawing.withdraw(workshop)),
    Step(
        withdrawals.STAGE, lambda workshop, key: withdrawals.cut_out(workshop, parse_snapshot(key))
    ),
    Step(
        removals.STAGE,
        lambda workshop, key: removals.decide_removals(workshop, parse_snapshot(key)),
    ),
    Step(
        html_index.STAGE,
        lambda workshop, key: html_index.index_pages(workshop, parse_snapshot(key)),
    ),
    Step(
        page_links.STAGE,
        lambda workshop, key: page_links.find_page_links(workshop, parse_snapshot(key)),
    ),
    Step(
        link_claims.STAGE,
        lambda workshop, key: link_claims.claim_snapshot(workshop, parse_snapshot(key)),
    ),
    Step(
        longpack.STAGE, lambda workshop, key: longpack.pack_snapshot(workshop, parse_snapshot(key))
    ),
    Step(
        tokenizing.STAGE,
        lambda workshop, key: tokenizing.tokenize_snapshot(workshop, parse_snapshot(key)),
    ),
    Step(gridding.STAGE, lambda workshop, key: gridding.lay_grid(workshop, parse_snapshot(key))),
    Step(lineage.STAGE, lambda workshop, key: lineage.index_rows(workshop, parse_snapshot(key))),
    Step(ordering.STAGE, lambda workshop, _: ordering.order_snapshots(workshop)),
    Step(flattening.STAGE, lambda workshop, _: flattening.flatten(workshop)),
    Step(
        megatron.STAGE, lambda workshop, key: megatron.write_snapshot(workshop, parse_snapshot(key))
    ),
    Step(
        packing_tokens.STAGE,
        lambda workshop, key: packing_tokens.tokenize_for_packing(workshop, parse_snapshot(key)),
    ),
    Step(packed.STAGE, lambda workshop, key: packed.pack_snapshot(workshop, parse_snapshot(key))),
    Step(
        lengths.STAGE, lambda workshop, key: lengths.report_lengths(workshop, parse_snapshot(key))
    ),
    Step(
        referrals.STAGE,
        lambda workshop, key: referrals.report_referrals(workshop, parse_snapshot(key)),
    ),
    Step(blending.STAGE, blending.blend_mix),
    Step(card.STAGE, lambda workshop, _: card.write_card(workshop)),
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
