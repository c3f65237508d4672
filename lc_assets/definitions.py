"""The Dagster code location: assets, checks, jobs, sensors and resources of all stages.

``workspace.yaml`` names `defs`; its settings come from the environment, and it loads without a lake
or data. `build_defs` makes other code locations, for tests and the command line.

===================  ====================================================  =========================
variable             meaning                                               default
===================  ====================================================  =========================
``LC_ROOT``          the lake: a folder, ``gs://…``, ``s3://…``,           ``lake``
                     ``az://…``
``LC_CACHE``         of a lake in a bucket: folder of local copies         ``~/.cache/lc_assets``
``LC_CACHE_BYTES``   its size limit, such as ``200e9``                     half of the disk
``LC_GCP_PROJECT``   of a lake in a bucket: its project                    the environment's
``LC_UPSTREAM``      RedPajama-V2, or its layout: a folder, ``https://…``  its public address
                     ``gs://…``, ``s3://…`` or ``az://…``
``LC_CRAWL``         the crawl's own archives, for LongPack: a folder or   none
                     a URL
``LC_WITHDRAWN``     lists of withdrawals besides the recipe's             none
``LC_RECIPE``        TOML file with the settings that differ from the      the lake's own
                     default recipe
``LC_SNAPSHOTS``     text file with further snapshots of one's own         none
``LC_WORKERS``       processes that one stage uses                         number of processors
``LC_EXECUTOR``      ``local``, or a Ray cluster's address                 ``local``
                     (docs/clusters.md)
``LC_TASK_SECONDS``  time limit of a shard                                 none
``LC_LOOK_EVERY``    seconds between two ticks of the upstream sensor      300
``LC_AUTOMATION``    ``on``: sensors and the nightly schedule run          ``off``
                     (docs/rebuilds.md)
``LC_OPENLINEAGE``   ``on``: builds are reported to a catalogue of data    ``off``
                     (docs/rebuilds.md)
===================  ====================================================  =========================
"""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from lc_assets.builds.recipe_files import recorded_recipe
from lc_assets.builds.stage import Stage
from lc_assets.errors import BadInput, without_secrets
from lc_assets.lake.bucket import GOOGLE, is_in_bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.orchestration.assets import asset_of, checks_of, jobs_of
from lc_assets.orchestration.automation import DagsterPlanner, OutOfDate, nightly_schedules
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets.orchestration.sensors import sensors_of, watches_of
from lc_assets.orchestration.staleness import staleness_checks, staleness_sensor
from lc_assets.sources.opening import known_snapshots
from lc_assets.stages.catalogue import STAGES

LOOK_EVERY_SECONDS = 300

VARIABLES = {
    "LC_ROOT": "lake",
    "LC_UPSTREAM": "upstream",
    "LC_CRAWL": "crawl",
    "LC_RECIPE": "recipe",
    "LC_WITHDRAWN": "withdrawn",
    "LC_WORKERS": "workers",
    "LC_EXECUTOR": "executor",
    "LC_TASK_SECONDS": "task_seconds",
}
"""Variable → field of `BuildContextResource`."""

ASSET_OF: Mapping[str, dg.AssetKey] = {stage.name: dg.AssetKey(stage.name) for stage in STAGES}
"""Stage → the key of its asset."""


def build_defs(
    *,
    snapshots: str | None = None,
    look_every: int = LOOK_EVERY_SECONDS,
    automation: bool = False,
    stages: Sequence[Stage] = STAGES,
    **settings: Any,
) -> dg.Definitions:
    """Make a code location.

    Args:
        snapshots: path of a file with further snapshots.
        look_every: seconds between two ticks of the upstream sensor.
        automation: whether sensors and schedules run from the start.
        stages: the stages to make assets, checks and jobs from.
        settings: fields of `BuildContextResource`; without a recipe, the recipe recorded in a local
            lake is used.

    Raises:
        BadInput: when recipe or snapshots cannot be read.
    """
    resource = _resource_of(**settings)
    recipe = resource.read_recipe()
    names = known_snapshots(Path(snapshots) if snapshots else None, recipe.sources)
    planner = DagsterPlanner(
        lake=functools.cache(lambda: open_lake(resource.lake)),
        recipe=resource.read_recipe,
        snapshots=frozenset(names),
    )
    partitions = {
        "snapshot": dg.StaticPartitionsDefinition(list(names)),
        "mix": dg.StaticPartitionsDefinition(sorted(recipe.blended_mix)),
        "nothing": None,
    }
    watches = watches_of(planner, resource, ASSET_OF, own=snapshots)
    looking = sensors_of(watches, ASSET_OF, look_every=look_every, running=automation)
    assets = [
        asset_of(
            stage,
            recipe=recipe,
            snapshots=names,
            partitions=partitions[stage.partitioned_by],
            condition=OutOfDate(planner, stage.name),
            sources=[watch.name for watch in watches],
        )
        for stage in stages
    ]
    return dg.Definitions(
        assets=[*assets, *(one.source(partitions["snapshot"], recipe.dagster) for one in watches)],
        asset_checks=[*_checks_of(stages, partitions), staleness_checks(planner, ASSET_OF)],
        jobs=jobs_of(stages),
        sensors=[*looking, staleness_sensor(planner, ASSET_OF)],
        schedules=nightly_schedules(planner, ASSET_OF, running=automation),
        resources=_resources(resource),
        executor=dg.in_process_executor,  # a stage has its own workers; a step costs 0.02 s
    )


def _resource_of(sections: str | None = None, **settings: Any) -> BuildContextResource:
    given = {name: value for name, value in settings.items() if value} | {"sections": sections}
    found = BuildContextResource(**given)
    if found.recipe or is_in_bucket(found.lake):  # loading uses no network
        return found
    return BuildContextResource(**given | {"recipe": str(recorded_recipe(found.lake) or "")})


def _checks_of(
    stages: Sequence[Stage], partitions: Mapping[str, dg.PartitionsDefinition | None]
) -> Iterator[dg.AssetChecksDefinition]:
    for one in stages:
        yield checks_of(one, dg.AssetKey(one.name), partitions[one.partitioned_by])


def _resources(resource: BuildContextResource) -> dict[str, Any]:
    settings = {name: getattr(resource, name) for name in BuildContextResource.model_fields}
    # The UI shows settings, and runs keep them: of one with a secret, the variable's name.
    for name, variable in (("upstream", "LC_UPSTREAM"), ("crawl", "LC_CRAWL")):
        value = settings[name]
        if without_secrets(value) != value and os.environ.get(variable) == value:
            settings[name] = dg.EnvVar(variable)
    if not resource.lake.startswith(GOOGLE):
        return {"build_context": BuildContextResource(**settings)}
    # Importing it takes a second.
    from dagster_gcp import GCSResource

    from lc_assets.orchestration.bucket_resources import BucketBuildContextResource

    gcs = GCSResource(project=os.environ.get("LC_GCP_PROJECT"))
    return {"gcs": gcs, "build_context": BucketBuildContextResource(gcs=gcs, **settings)}


def from_environment(environment: Mapping[str, str]) -> dg.Definitions:
    """The code location configured by the environment."""
    automation = environment.get("LC_AUTOMATION", "off")
    if automation not in {"on", "off"}:
        raise BadInput(f"LC_AUTOMATION is {automation!r}; expected on or off")
    settings: dict[str, Any] = {"workers": os.cpu_count() or 1}
    settings |= {name: environment[key] for key, name in VARIABLES.items() if key in environment}
    return build_defs(
        snapshots=environment.get("LC_SNAPSHOTS"),
        look_every=int(environment.get("LC_LOOK_EVERY", LOOK_EVERY_SECONDS)),
        automation=automation == "on",
        **settings,
    )


defs = from_environment(os.environ)
