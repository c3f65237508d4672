"""The whole chain on a cluster, from a process of its own, each task made to last; prints the
digests, or the sentence that it ended with.

As a program: ``python -m … ENGINE LAKE UPSTREAM FOLDER SECONDS``; ``FOLDER`` gets the rule file.
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lc_assets.builds.building import LIBRARIES
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import LcError
from lc_assets.execution.executor import Executor, TaskPolicy
from lc_assets.execution.on_ray import executor_at
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.builders import CRAWL, build_all, tiny_recipe
from lc_assets_tests.faults import digests

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Slowly:
    """An executor whose tasks take so many seconds more."""

    executor: Executor
    seconds: float

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        return self.executor.run(functools.partial(later, self.seconds, function), tasks, what=what)


def later(seconds: float, function: Callable[[Task], Result], task: Task) -> Result:
    time.sleep(seconds)
    return function(task)


def main(executor: str, root: str, upstream: str, folder: str, seconds: str) -> None:
    """Build, and say what came of it."""
    lake = open_lake(root)
    known = executor_at(
        executor,
        workers=2,
        folders=(lake.root.resolve(),),
        libraries=LIBRARIES,
        policy=TaskPolicy(deaths=50),
    )
    context = BuildContext(
        lake=lake,
        upstream=Upstream(upstream),
        recipe=tiny_recipe(Path(folder)),
        executor=Slowly(known, float(seconds)),
        crawl=Upstream(f"{upstream}/{CRAWL}"),
    )
    try:
        found = digests(build_all(context))
    except LcError as error:
        print(f"{type(error).__name__}: {error}")
        raise SystemExit(1) from None
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
