"""Resources: where the lake lies, where to read from, by which recipe, with how many workers. No computation."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from lc_assets.engines.local import LocalEngine
from lc_assets.engines.progress import in_log
from lc_assets.errors import LcError
from lc_assets.stages.building import Workshop
from lc_assets.stages.recipe import read_recipe
from lc_assets.storage.bucket_lake import open_lake
from lc_assets.storage.lake import LakeFolder
from lc_assets.storage.upstream import Upstream

WORKERS_IMPORT = ("lc_assets.stages.catalogue",)


class WorkshopResource(dg.ConfigurableResource):
    """Where and how the stages work.

    Attributes:
        lake: folder, or ``gs://bucket/folder``, under which everything is published.
        upstream: RedPajama-V2, or something of its shape: a folder, ``https://…`` or ``gs://…``.
        crawl: the crawl's own archives (WARC, WAT, indexes), where LongPack is wanted: a folder, ``https://…`` or ``gs://…``.
        recipe: path of the recipe's TOML file; empty for the default recipe.
        workers: processes that a stage uses on this machine.
    """

    lake: str
    upstream: str
    crawl: str = ""
    recipe: str = ""
    workers: int = 1

    @contextlib.contextmanager
    def open(self, log: logging.Logger) -> Iterator[Workshop]:
        """Open the workshop for one asset; a deliberate error fails the run with its sentence, and is not retried."""
        try:
            yield self.workshop(log)
        except LcError as error:
            raise dg.Failure(description=f"{type(error).__name__}: {error}", allow_retries=False) from error

    def workshop(self, log: logging.Logger) -> Workshop:
        """The workshop; progress goes to ``log``."""
        engine = LocalEngine(workers=self.workers, watch=in_log(log.info), preload=WORKERS_IMPORT)
        return Workshop(
            lake=self.lake_folder(),
            upstream=Upstream(self.upstream),
            recipe=read_recipe(Path(self.recipe) if self.recipe else None),
            engine=engine,
            crawl=Upstream(self.crawl) if self.crawl else None,
        )

    def lake_folder(self) -> LakeFolder:
        """The lake."""
        return open_lake(self.lake)
