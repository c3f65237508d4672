"""Kill a build with SIGKILL at a chosen fsync, many times a second and without a C compiler.

One process imports everything once and forks for each build; the fork counts its calls of ``fsync``
and kills itself at a given one. Each published file is flushed before it is renamed and its folder
afterwards, so every state that a crash can leave is between two calls of ``fsync``.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from lc_assets.builds.stage import BuildContext
from lc_assets_tests.builders import recipe_file

FORKING = """
import json, os, signal, sys
from pathlib import Path
import pandera.errors, pandera.pyarrow
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.builds.stage import BuildContext
from lc_assets.stages.catalogue import stage_named
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream

gpt2_tokenizer(fast=True), gpt2_tokenizer(fast=False)
flushes, really = 0, os.fsync

def build(lake, upstream, crawl, recipe, stage, key, kill_at, following):
    def counting(descriptor):
        global flushes
        flushes += 1
        if flushes == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        really(descriptor)

    os.fsync = counting
    places = {"lake": Lake(Path(lake)), "upstream": Upstream(upstream), "crawl": Upstream(crawl) if crawl else None}
    following = tuple(map(stage_named, following))
    context = BuildContext(**places, recipe=read_recipe(Path(recipe)), executor=LocalExecutor(), following=following)
    stage_named(stage).build(context, key)

for line in sys.stdin:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        build(**json.loads(line))
        os.write(writing, str(flushes).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    answer = {"code": os.waitstatus_to_exitcode(status), "flushes": int(os.read(reading, 20) or 0)}
    os.close(reading)
    print(json.dumps(answer), flush=True)
"""


class Killer:
    """Builds partitions of one context in forked processes and kills them; a context manager."""

    def __init__(self, context: BuildContext) -> None:
        path = recipe_file(context.lake.root.parent / "killed.toml", context.recipe)
        crawl = context.crawl.root if context.crawl else ""
        self._asked: dict[str, Any] = {
            "lake": str(context.lake.root),
            "upstream": context.upstream.root,
            "crawl": crawl,
            "recipe": str(path),
            "following": [stage.name for stage in context.following],
        }
        command = [sys.executable, "-c", FORKING]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def count(self, stage: str, key: str) -> int:
        """Build a partition completely; return how often it flushed."""
        answer = self._ask(stage, key, 0)
        assert answer["code"] == 0, f"building {stage}/{key} failed"
        return answer["flushes"]

    def kill(self, stage: str, key: str, kill_at: int) -> bool:
        """Build a partition and kill it at its ``kill_at``-th flush; False if it ended before."""
        code = self._ask(stage, key, kill_at)["code"]
        assert code in {0, -9}, f"building {stage}/{key} failed with {code}"
        return code == -9

    def _ask(self, stage: str, key: str, kill_at: int) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(
            json.dumps(self._asked | {"stage": stage, "key": key, "kill_at": kill_at}),
            file=self._process.stdin,
            flush=True,
        )
        return json.loads(self._process.stdout.readline())
