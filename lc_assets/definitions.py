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
``LC_RECIPE``           TOML file with the settings that differ from the default recipe     none
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from lc_assets.assets import cards, documents, linking, packing, removing, reports, rows, training
from lc_assets.automation import JOBS
from lc_assets.checks.published import checks_of
from lc_assets.errors import BadInput, without_secrets
from lc_assets.lake.bucket import SCHEME
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL
from lc_assets.partitions import read_by
from lc_assets.resources import BuildContextResource
from lc_assets.sources.settings import source_name
from lc_assets.stages.building import Stage
from lc_assets.stages.catalogue import step
from lc_assets.stages.planning import keys_of
from lc_assets.stages.recipe import Recipe, read_recipe
from lc_assets.stages.snapshots import known_snapshots
from lc_assets.triggers.asking import Asker
from lc_assets.triggers.nightly import nightly_schedules
from lc_assets.triggers.out_of_date import OutOfDate
from lc_assets.triggers.sensors import sensors_of
from lc_assets.vocabulary import SnapshotId

LOOK_EVERY_SECONDS = 300
REDPAJAMA_V2 = "https://data.together.xyz/redpajama-data-v2/v1.0.0"

STAGE_OF: Mapping[str, tuple[dg.AssetsDefinition, Stage]] = {
    "raw_snapshot": (documents.raw_snapshot, step("raw_snapshot").stage),
    "filtered_documents": (documents.filtered_documents, step("filtered_documents").stage),
    "document_keys": (documents.document_keys, step("document_keys").stage),
    "document_signatures": (removing.document_signatures, step("document_signatures").stage),
    "signature_index": (removing.signature_index, step("signature_index").stage),
    "near_duplicate_pairs": (removing.near_duplicate_pairs, step("near_duplicate_pairs").stage),
    "contaminated_documents": (
        removing.contaminated_documents,
        step("contaminated_documents").stage,
    ),
    "withdrawn_documents": (removing.withdrawn_documents, step("withdrawn_documents").stage),
    "snapshot_withdrawals": (removing.snapshot_withdrawals, step("snapshot_withdrawals").stage),
    "removed_documents": (removing.removed_documents, step("removed_documents").stage),
    "clean_documents": (removing.clean_documents, step("clean_documents").stage),
    "link_claims": (linking.link_claims, step("link_claims").stage),
    "longpack_documents": (linking.longpack_documents, step("longpack_documents").stage),
    "token_documents": (rows.token_documents, step("token_documents").stage),
    "token_grid": (rows.token_grid, step("token_grid").stage),
    "row_lineage": (rows.row_lineage, step("row_lineage").stage),
    "longcrawl": (rows.longcrawl, step("longcrawl").stage),
    "longcrawl_flat": (rows.longcrawl_flat, step("longcrawl_flat").stage),
    "megatron_rows": (training.megatron_rows, step("megatron_rows").stage),
    "data_set_card": (cards.data_set_card, step("data_set_card").stage),
    "html_index": (linking.html_index, step("html_index").stage),
    "page_links": (linking.page_links, step("page_links").stage),
    "packing_tokens": (packing.packing_token_documents, step("packing_tokens").stage),
    "packed_rows": (packing.packed_rows, step("packed_rows").stage),
    "length_report": (reports.length_report, step("length_report").stage),
    "referral_report": (reports.referral_report, step("referral_report").stage),
    "blended_mix": (training.blended_mix, step("blended_mix").stage),
}
"""Asset key → the asset and the stage it materializes."""

ASSET_OF: Mapping[str, dg.AssetKey] = {stage.name: asset.key for asset, stage in STAGE_OF.values()}
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
) -> dg.Definitions:
    """Put a code location together.

    Args:
        lake: folder, or ``gs://bucket/folder``, everything is published under.
        upstream: folder or URL of RedPajama-V2, or of something of its shape.
        crawl: folder or URL of the crawl's own archives.
        recipe: path of a recipe's TOML file.
        withdrawn: paths of further lists of withdrawals, separated as in ``PATH``.
        snapshots: path of a text file with further snapshots.
        workers: processes that one stage uses.
        executor: who works instead, see `lc_assets.execution.on_ray`.
        task_seconds: how long one shard may take; 0 is for ever.
        look_every: seconds between two looks of the sensor that watches the upstream.
        automation: whether sensors and schedule run from the start; they can be turned on and off
            in the UI in any case.

    Raises:
        BadInput: when the recipe or the snapshots cannot be read.
    """
    own_recipe = Path(recipe) if recipe else None
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
            _watched(
                _with_settings(asset, stage, read, names, partitions[stage.partitioned_by]),
                stage,
                asker,
            )
            for asset, stage in STAGE_OF.values()
        ],
        asset_checks=[
            checks_of(stage, asset.key, partitions[stage.partitioned_by])
            for asset, stage in STAGE_OF.values()
        ],
        jobs=JOBS,
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
            recipe=recipe or "",
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
        return {"workshop": BuildContextResource(lake=lake, **settings)}
    # A second that a folder need not pay.
    from lc_assets.resources_on_gcs import BucketBuildContextResource, gcs_resource  # noqa: PLC0415

    gcs = gcs_resource(os.environ.get("LC_GCP_PROJECT"))
    return {"gcs": gcs, "workshop": BucketBuildContextResource(lake=lake, gcs=gcs, **settings)}


def _watched(asset: dg.AssetsDefinition, stage: Stage, asker: Asker) -> dg.AssetsDefinition:
    """Let the planner be asked about an asset; by whom, and whether at all, is the sensor's
    matter.
    """
    condition = OutOfDate(asker, stage.name)
    return asset.map_asset_specs(
        lambda spec: spec.replace_attributes(automation_condition=condition)
    )


def _with_settings(
    asset: dg.AssetsDefinition,
    stage: Stage,
    recipe: Recipe,
    snapshots: tuple[SnapshotId, ...],
    partitions: dg.PartitionsDefinition | None,
) -> dg.AssetsDefinition:
    """Give an asset its partitions, and a code version that changes with its settings: Dagster then
    knows what a new recipe makes stale.
    """

    def fitted(spec: dg.AssetSpec) -> dg.AssetSpec:
        version = f"{stage.code_version}-{short(digest_of(_params(stage, recipe, snapshots)))}"
        tags = {"lc_assets/stage": stage.name, "lc_assets/per": stage.partitioned_by}
        fitted_spec = spec.replace_attributes(
            code_version=version, owners=["team:lc_assets"], tags={**spec.tags, **tags}
        )
        if stage.global_upstream and stage.partitioned_by == "snapshot":
            fitted_spec = fitted_spec.replace_attributes(
                deps=[_dep(dep, stage, recipe, snapshots) for dep in spec.deps]
            )
        return (
            fitted_spec
            if partitions is None
            else fitted_spec.replace_attributes(partitions_def=partitions)
        )

    return asset.map_asset_specs(fitted)


def _dep(
    dep: dg.AssetDep, stage: Stage, recipe: Recipe, snapshots: tuple[SnapshotId, ...]
) -> dg.AssetDep:
    """Which partitions of one asset stand behind which of another, as its stage has it."""
    _, upstream = STAGE_OF[dep.asset_key.to_user_string()]
    if upstream.partitioned_by == "nothing":
        return dg.AssetDep(dep.asset_key)
    mapping = read_by(
        snapshots, lambda key, other: stage.is_fed_by(recipe, key, upstream.name, other)
    )
    return dg.AssetDep(dep.asset_key, partition_mapping=mapping)


def _params(stage: Stage, recipe: Recipe, snapshots: tuple[SnapshotId, ...]) -> list[object]:
    """Settings of every mix, or of one partition of each source."""
    keys = keys_of(stage, recipe, snapshots) or ([] if recipe.sources else [GLOBAL])
    if stage.partitioned_by == "snapshot" and recipe.sources:
        by_source = {source_name(recipe.sources, key): key for key in reversed(keys)}
        keys = [by_source[name] for name in sorted(by_source)]
    elif stage.partitioned_by == "snapshot":
        keys = keys[:1]
    return [stage.params(recipe, key) for key in keys]


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
