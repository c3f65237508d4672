"""The code location: every asset, check, job and resource, put together. Nothing is computed here.

`defs` is what ``workspace.yaml`` names; it takes its settings from the environment and loads on an
empty machine. `build_defs` makes a fresh one, for tests and for the command line.

======================  ==================================================================  ====================
variable                meaning                                                             default
======================  ==================================================================  ====================
``LC_ROOT``             the lake: the folder, or ``gs://…``, everything is published under  ``lake``
``LC_CACHE``            of a lake in a bucket: the folder of this machine's copies           ``~/.cache/lc_assets``
``LC_GCP_PROJECT``      of a lake in a bucket: its project                                  the environment's
``LC_UPSTREAM``         RedPajama-V2, or its shape: a folder, ``https://…`` or ``gs://…``   its public address
``LC_CRAWL``            the crawl's own archives, for LongPack: a folder or a URL          none
``LC_WITHDRAWN``        lists of what must no longer be served, besides the recipe's           none
``LC_RECIPE``           TOML file with the settings that differ from the default recipe     the lake's own
``LC_SNAPSHOTS``        text file with further snapshots of one's own                       none
``LC_WORKERS``          processes that one stage uses                                       number of processors
``LC_EXECUTOR``           who works: ``local``, or a Ray cluster's address (docs/clusters.md)    ``local``
``LC_TASK_SECONDS``     how long one shard may take before its worker is ended              for ever
``LC_LOOK_EVERY``       seconds between two looks of the sensor that watches the upstream   300
``LC_AUTOMATION``       ``on``: sensors and the nightly schedule run (docs/rebuilds.md)     ``off``
======================  ==================================================================  ====================
"""

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from lc_assets.build.recipe import read_recipe, recorded_recipe
from lc_assets.build.stage import Stage
from lc_assets.errors import BadInput, without_secrets
from lc_assets.lake.bucket import SCHEME
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.orchestration.assets import asset_of
from lc_assets.orchestration.checks import checks_of
from lc_assets.orchestration.conditions import OutOfDate
from lc_assets.orchestration.jobs import jobs_of
from lc_assets.orchestration.planner import Asker
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets.orchestration.schedules import nightly_schedules
from lc_assets.orchestration.sensors import sensors_of
from lc_assets.sources.opening import known_snapshots
from lc_assets.stages.catalogue import STAGES

LOOK_EVERY_SECONDS = 300
REDPAJAMA_V2 = "https://data.together.xyz/redpajama-data-v2/v1.0.0"

ASSET_OF: Mapping[str, dg.AssetKey] = {stage.name: dg.AssetKey(stage.name) for stage in STAGES}
"""Stage → the key of its asset."""


def build_defs(
    *,
    lake: str = "lake",
    upstream: str = REDPAJAMA_V2,
    crawl: str = "",
    recipe: str | None = None,
    withdrawn: str = "",
    snapshots: str | None = None,
    workers: int = 1,
    executor: str = "",
    task_seconds: float = 0.0,
    look_every: int = LOOK_EVERY_SECONDS,
    automation: bool = False,
    stages: Sequence[Stage] = STAGES,
) -> dg.Definitions:
    """Put a code location together.

    Args:
        lake: folder, or ``gs://bucket/folder``, everything is published under.
        upstream: folder or URL of RedPajama-V2, or of something of its shape.
        crawl: folder or URL of the crawl's own archives.
        recipe: path of a recipe's TOML file; by default the one that the lake was last built by.
        withdrawn: paths of further lists of withdrawals, separated as in ``PATH``.
        snapshots: path of a text file with further snapshots.
        workers: processes that one stage uses.
        executor: who works instead, see `lc_assets.execution.on_ray`.
        task_seconds: how long one shard may take; 0 is for ever.
        look_every: seconds between two looks of the sensor that watches the upstream.
        automation: whether sensors and schedule run from the start; they can be turned on and off
            in the UI in any case.
        stages: declarations that assets, checks and jobs are made from.

    Raises:
        BadInput: when the recipe or the snapshots cannot be read.
    """
    own_recipe = Path(recipe) if recipe else recorded_recipe(lake)
    read = read_recipe(own_recipe, withdrawn=withdrawn)
    names = known_snapshots(Path(snapshots) if snapshots else None, read.sources)
    asker = Asker(
        lake=functools.cache(lambda: open_lake(lake)),
        recipe=lambda: read_recipe(own_recipe, withdrawn=withdrawn),
        snapshots=frozenset(names),
    )
    partitions = {
        "snapshot": dg.StaticPartitionsDefinition(list(names)),
        "mix": dg.StaticPartitionsDefinition(sorted(read.blended_mix)),
        "nothing": None,
    }
    return dg.Definitions(
        assets=[
            asset_of(
                stage,
                recipe=read,
                snapshots=names,
                partitions=partitions[stage.partitioned_by],
                condition=OutOfDate(asker, stage.name),
            )
            for stage in stages
        ],
        asset_checks=[
            checks_of(stage, dg.AssetKey(stage.name), partitions[stage.partitioned_by])
            for stage in stages
        ],
        jobs=jobs_of(stages),
        sensors=sensors_of(
            asker,
            ASSET_OF,
            upstream=upstream,
            crawl=crawl,
            own=snapshots,
            look_every=look_every,
            running=automation,
        ),
        schedules=nightly_schedules(asker, ASSET_OF, running=automation),
        resources=_resources(
            lake=lake,
            upstream=_unless_secret("LC_UPSTREAM", upstream),
            crawl=_unless_secret("LC_CRAWL", crawl),
            recipe=str(own_recipe or ""),
            withdrawn=withdrawn,
            workers=workers,
            executor=executor,
            task_seconds=task_seconds,
        ),
        # One process per run: a stage brings its own workers, and a further step costs 0.02 s
        # instead of 2 s.
        executor=dg.in_process_executor,
    )


def _unless_secret(variable: str, value: str) -> str:
    """A setting as it is; of one that opens doors, the variable that holds it: the UI shows
    settings, and runs keep them.
    """
    return (
        dg.EnvVar(variable)
        if without_secrets(value) != value and os.environ.get(variable) == value
        else value
    )


def _resources(*, lake: str, **settings: Any) -> dict[str, Any]:
    if not lake.startswith(SCHEME):
        return {"build_context": BuildContextResource(lake=lake, **settings)}
    # A second that a folder need not pay.
    from lc_assets.orchestration.bucket_resources import BucketBuildContextResource, gcs_resource

    gcs = gcs_resource(os.environ.get("LC_GCP_PROJECT"))
    return {"gcs": gcs, "build_context": BucketBuildContextResource(lake=lake, gcs=gcs, **settings)}


def from_environment(environment: Mapping[str, str]) -> dg.Definitions:
    """Put the code location together that the environment describes."""
    return build_defs(
        lake=environment.get("LC_ROOT", "lake"),
        upstream=environment.get("LC_UPSTREAM", REDPAJAMA_V2),
        crawl=environment.get("LC_CRAWL", ""),
        recipe=environment.get("LC_RECIPE"),
        withdrawn=environment.get("LC_WITHDRAWN", ""),
        snapshots=environment.get("LC_SNAPSHOTS"),
        workers=int(environment.get("LC_WORKERS", os.cpu_count() or 1)),
        executor=environment.get("LC_EXECUTOR", ""),
        task_seconds=float(environment.get("LC_TASK_SECONDS", 0)),
        look_every=int(environment.get("LC_LOOK_EVERY", LOOK_EVERY_SECONDS)),
        automation=_is_on(environment.get("LC_AUTOMATION", "off")),
    )


def _is_on(said: str) -> bool:
    if said not in {"on", "off"}:
        raise BadInput(f"LC_AUTOMATION is {said!r}; wanted on or off")
    return said == "on"


defs = from_environment(os.environ)
