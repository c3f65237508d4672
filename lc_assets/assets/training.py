"""Assets for training with Megatron: rows as .bin/.idx with their GPT index, and blends of
snapshots.
"""

import dagster as dg

from lc_assets.assets import plots
from lc_assets.assets.packing import packed_rows
from lc_assets.assets.reporting import report, table
from lc_assets.assets.rows import token_grid
from lc_assets.partitions import ALL_SNAPSHOTS, MIXES, SNAPSHOTS
from lc_assets.pools import WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.megatron import megatron_rows as megatron
from lc_assets.stages.mixes import blended_mix as blending
from lc_assets.vocabulary import parse_snapshot


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="training",
    kinds={"numpy"},
    code_version=megatron.STAGE.code_version,
    deps=[token_grid],
)
def megatron_rows(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Train and heldout rows of one snapshot as Megatron .bin/.idx, with the GPT index Megatron
    would build.
    """
    with workshop.open(context.log) as opened:
        built = megatron.write_snapshot(opened, parse_snapshot(context.partition_key))
        sizes = {fact.path: float(fact.n_bytes) for fact in built.published.receipt.files}
        return report(
            built,
            counted="rows",
            samples=megatron.samples_of(built.published),
            sizes=plots.bars("Files", sizes, unit="bytes"),
        )


@dg.asset(
    partitions_def=MIXES,
    group_name="training",
    kinds={"numpy"},
    code_version=blending.STAGE.code_version,
    deps=[
        dg.AssetDep(asset, partition_mapping=ALL_SNAPSHOTS)
        for asset in (megatron_rows, packed_rows)
    ],
)
def blended_mix(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """One weighted blend of snapshots and kinds of rows as Megatron's dataset_index and
    dataset_sample_index, an index per source.
    """
    with workshop.open(context.log) as opened:
        built = blending.blend_mix(opened, context.partition_key)
        mix = blending.read_mix(built.published.folder)
        asked = {
            source.name: source.kept + source.weight * (mix.n_samples - mix.after)
            for source in mix.sources
        }
        got = {source.name: float(source.used) for source in mix.sources}
        return report(
            built,
            counted="samples",
            composition=plots.bars(
                "Samples by source", asked, unit="samples", beside=got, names=("asked", "got")
            ),
            repetition=plots.bars(
                "Repetition by source",
                {source.name: 100 * source.used / source.available for source in mix.sources},
                unit="% of one epoch",
            ),
            by_source=table(blending.table_of(mix)),
        )
