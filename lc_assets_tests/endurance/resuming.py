"""A process that resumes training at a given position, then builds.

It reads its work from standard input as JSON and writes what it did, without importing any training
library.
"""

import hashlib
import json
import sys
from pathlib import Path

from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.builders import build_all

TRAINERS = ("torch", "tensorflow", "jax")


def loader_of(lake: Path, prefetch: int = 0) -> GridLoader:
    """Return the loader that every process trains with."""
    return GridLoader(open_rows(lake), batch_rows=2, context_tokens=32, prefetch=prefetch)


def rest_of(loader: GridLoader) -> str:
    """Return the digest of all remaining batches of a loader."""
    found = hashlib.sha256()
    for batch in loader:
        found.update(batch.text.tobytes() + batch.targets.tobytes())
    return found.hexdigest()


def main() -> None:
    """Train to the end, then build."""
    asked = json.load(sys.stdin)
    lake = Lake(Path(asked["lake"]))
    loader = loader_of(lake.root)
    loader.load_state_dict(asked["state"])
    rest = rest_of(loader)
    imported = [name for name in TRAINERS if name in sys.modules]
    crawl = Upstream(asked["crawl"]) if asked["crawl"] else None
    recipe = read_recipe(Path(asked["recipe"]))
    context = BuildContext(
        lake=lake,
        upstream=Upstream(asked["upstream"]),
        crawl=crawl,
        recipe=recipe,
        executor=LocalExecutor(),
    )
    build_all(context, asked["snapshots"])
    print(json.dumps({"rest": rest, "imported": imported}))


if __name__ == "__main__":
    main()
