"""What the UI shows of assets for training with Megatron: rows as .bin/.idx with their GPT index,
and blends of snapshots.
"""

from lc_assets.build import showing
from lc_assets.build.showing import Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.stages.megatron import megatron_rows as megatron
from lc_assets.stages.mixes import blended_mix as blending


def megatron_rows(_context: BuildContext, built: Built) -> Shown:
    """Of `megatron_rows`."""
    sizes = {fact.path: float(fact.n_bytes) for fact in built.published.receipt.files}
    return Shown(
        values={
            "samples": megatron.samples_of(built.published),
            "sizes": showing.bars("Files", sizes, unit="bytes"),
        }
    )


def blended_mix(_context: BuildContext, built: Built) -> Shown:
    """Of `blended_mix`."""
    mix = blending.read_mix(built.published.folder)
    asked = {
        source.name: source.kept + source.weight * (mix.n_samples - mix.after)
        for source in mix.sources
    }
    got = {source.name: float(source.used) for source in mix.sources}
    return Shown(
        values={
            "composition": showing.bars(
                "Samples by source", asked, unit="samples", beside=got, names=("asked", "got")
            ),
            "repetition": showing.bars(
                "Repetition by source",
                {source.name: 100 * source.used / source.available for source in mix.sources},
                unit="% of one epoch",
            ),
            "by_source": Table(blending.table_of(mix)),
        }
    )
