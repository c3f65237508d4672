"""The chain as a Dagster component: a few lines of another project's ``defs.yaml`` make its assets,
checks, jobs, sensors and schedules, on the lake that they name::

    type: lc_assets.components.CorpusChain
    attributes:
      lake: lake
      upstream: corpus
      recipe: recipe.toml

Packed rows, mixes and reports are sections of the recipe. A project has one such component: assets
of all lakes have the same keys.
"""

import os

import dagster as dg

from lc_assets.builds.new_recipes import absolute
from lc_assets.vocabulary import REDPAJAMA_V2


class CorpusChain(dg.Component, dg.Model, dg.Resolvable):
    """The chain over one lake. Relative paths are relative to the folder of ``defs.yaml``.

    Attributes:
        lake: folder, or ``gs://bucket/folder``, in which everything is published.
        upstream: RedPajama-V2, or its layout: a folder or a URL.
        crawl: the crawl's own archives, for LongPack: a folder or a URL.
        recipe: TOML file of what differs from the default recipe; by default the lake's own.
        withdrawn: a list of withdrawals besides the recipe's.
        snapshots: text file with further snapshots of one's own.
        workers: processes that one stage uses; 0 for one per processor.
        executor: a Ray cluster's address; by default this machine.
        task_seconds: time limit of a shard; 0 for none.
        automation: whether sensors and schedules run from the start.
    """

    lake: str
    upstream: str = REDPAJAMA_V2
    crawl: str = ""
    recipe: str = ""
    withdrawn: str = ""
    snapshots: str = ""
    workers: int = 0
    executor: str = ""
    task_seconds: float = 0.0
    automation: bool = False

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The code location.

        Raises:
            BadInput: when recipe or snapshots cannot be read.
        """
        from lc_assets.definitions import build_defs  # makes those of the environment, too

        settings = self.model_dump()
        for name in ("lake", "upstream", "crawl", "recipe", "withdrawn", "snapshots"):
            settings[name] = settings[name] and absolute(settings[name], context.path)
        settings["workers"] = self.workers or os.cpu_count() or 1
        return build_defs(**settings)
