"""Assets for people: what the published data set is."""

import dagster as dg

from lc_assets.assets import plots
from lc_assets.assets.reporting import report
from lc_assets.assets.rows import longcrawl
from lc_assets.assets.training import blended_mix
from lc_assets.partitions import ALL_SNAPSHOTS
from lc_assets.resources import BuildContextResource
from lc_assets.stages.reports import data_set_card as card


@dg.asset(
    group_name="published",
    kinds={"markdown"},
    code_version=card.STAGE.code_version,
    deps=[longcrawl, dg.AssetDep(blended_mix, partition_mapping=ALL_SNAPSHOTS)],
)
def data_set_card(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Data sheet of the published rows and mixes: Markdown that Hugging Face reads, and one page of
    HTML.
    """
    with workshop.open(context.log) as opened:
        built = card.write_card(opened)
        page = built.published.folder / card.PAGE
        text = (built.published.folder / card.README).read_text("utf-8").split("\n---\n", 1)[1]
        for name in card.PLOTS:
            text = text.replace(
                f"({name})", f"({plots.inline((built.published.folder / name).read_bytes())})"
            )
        return report(
            built,
            counted="rows",
            card=dg.MetadataValue.md(text),
            page=dg.MetadataValue.path(page.absolute()),
        )
