"""Build one partition of one stage in this process and print its receipt's figures: ``python -m … LAKE UPSTREAM RECIPE STAGE KEY``."""

import json
import resource
import sys
from pathlib import Path

from lc_assets.engines.local import LocalEngine
from lc_assets.stages.building import Workshop
from lc_assets.stages.catalogue import step
from lc_assets.stages.recipe import read_recipe
from lc_assets.storage.lake import LakeFolder
from lc_assets.storage.upstream import Upstream


def main(lake: str, upstream: str, recipe: str, stage: str, key: str) -> None:
    """Build it and print what it took, with the memory of the bare process."""
    start_rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    workshop = Workshop(
        lake=LakeFolder(Path(lake)), upstream=Upstream(upstream), recipe=read_recipe(Path(recipe)), engine=LocalEngine(workers=1)
    )
    built = step(stage).verb(workshop, key)
    print(json.dumps(built.published.receipt.measured | {"start_rss_mb": start_rss_mb, "n_bytes": built.published.receipt.n_bytes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
