"""A tiny corpus of two sources of files: JSON lines with ids, and Parquet in folders without.

``python -m lc_assets_tests.sources.own_documents FOLDER [MEGABYTES]`` writes a corpus of JSON lines
and Parquet, for the README's commands.
"""

import json
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.settings import SourceSettings
from lc_assets_tests.builders import made_up_text, tiny_recipe
from lc_assets_tests.named_draws import rng_for

N_STORIES = 12
STORIES, WEB_OLD, WEB_NEW = "stories", "web-CC-MAIN-2024-10", "web-CC-MAIN-2024-18"
PARTITIONS = (STORIES, WEB_OLD, WEB_NEW)


def texts(source: str, n: int) -> list[str]:
    """Made-up texts, each long enough for a row of 64 tokens."""
    rng = rng_for("own documents", seed=0, key=source)
    return [made_up_text(rng, n_words=int(rng.integers(80, 140))) for _ in range(n)]


def write_own_documents(folder: Path) -> dict[str, SourceSettings]:
    """Write both sources; the first web page of the newer crawl is a copy of the first story."""
    stories, web = folder / "stories", folder / "web"
    stories.mkdir(parents=True)
    lines = [
        json.dumps({"id": number, "body": text, "language": "en"})
        for number, text in enumerate(texts("stories", N_STORIES))
    ]
    (stories / "part-0.jsonl").write_text("\n".join(lines[:6]) + "\n")
    (stories / "part-1.jsonl").write_text("\n".join([*lines[6:], "not JSON"]) + "\n")
    for crawl, copies in (("CC-MAIN-2024-10", 0), ("CC-MAIN-2024-18", 1)):
        (web / crawl).mkdir(parents=True)
        found = texts("stories", copies) + texts(crawl, 8 - copies)
        table = {"text": found, "url": [f"https://example.org/{crawl}/{n}" for n in range(8)]}
        pq.write_table(pa.table(table), web / crawl / "000_00000.parquet")
    return {
        "stories": SourceSettings(path=str(stories), text_field="body"),
        "web": SourceSettings(path=str(web), partition="folder", language="en"),
    }


def own_recipe(folder: Path) -> Recipe:
    """A tiny recipe over both sources, whose files are written into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = tiny_recipe(folder, blended_mix={"by-tokens": MixSettings()})
    return msgspec.structs.replace(recipe, sources=write_own_documents(folder / "own"))


def own_context(folder: Path) -> BuildContext:
    """A build context over both sources, with nothing built yet."""
    return BuildContext(
        lake=Lake(folder / "lake"),
        upstream=Upstream(str(folder / "no upstream")),
        recipe=own_recipe(folder),
        executor=LocalExecutor(workers=1),
    )


def write_corpus(folder: Path, n_bytes: int) -> None:
    """Write about as many bytes of made-up documents, half as JSON lines and half as Parquet."""
    folder.mkdir(parents=True)
    rng = rng_for("corpus", seed=0)
    number = size = 0
    while size < n_bytes:
        found = [made_up_text(rng, n_words=int(rng.integers(100, 6000))) for _ in range(400)]
        lines = (json.dumps({"id": number * 400 + n, "text": text}) for n, text in enumerate(found))
        if number % 2:
            pq.write_table(pa.table({"text": found}), folder / f"{number:03d}.parquet")
        else:
            (folder / f"{number:03d}.jsonl").write_text("\n".join(lines) + "\n")
        number, size = number + 1, size + sum(map(len, found))


if __name__ == "__main__":
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    write_corpus(Path(sys.argv[1]), int(megabytes * 1e6))
