"""Build one partition of one stage in this process and print its receipt's figures: ``python -m …
LAKE UPSTREAM RECIPE STAGE KEY``.
"""

import json
import sys
from pathlib import Path

from lc_assets.builds.building import check_input_of
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import stage_named
from lc_assets_tests.memory import peak_mb


def main(lake: str, upstream: str, recipe: str, stage: str, key: str) -> None:
    """Build it and print what it took, with the memory of the bare process."""
    start_rss_mb = peak_mb()
    context = BuildContext(
        lake=Lake(Path(lake)),
        upstream=Upstream(upstream),
        recipe=read_recipe(Path(recipe)),
        executor=LocalExecutor(workers=1),
    )
    published = stage_named(stage).build(context, key).published
    print(
        json.dumps(
            published.receipt.measured
            | {"start_rss_mb": start_rss_mb, "input_mb": input_bytes(context, published) / 1e6}
        )
    )


def input_bytes(context: BuildContext, published: Published) -> int:
    """Size of what the stage read: published files, or upstream's, compressed as they are."""
    if published.stage in ("raw_snapshot", "filtered_documents"):
        return sum(
            path.stat().st_size for path in Path(context.upstream.root).rglob("*") if path.is_file()
        )
    inputs = check_input_of(context.lake, published).inputs.values()
    behind_the_order = (
        context.lake.published("token_grid").values() if published.stage == "longcrawl_flat" else ()
    )
    return sum(read.receipt.n_bytes for read in (*inputs, *behind_the_order))


if __name__ == "__main__":
    main(*sys.argv[1:])
