"""How long the UI's questions take where everything of so many snapshots has been materialized;
prints one line of JSON.

As a program: ``python -m … N_SNAPSHOTS FOLDER``. The history is written into a new folder as
Dagster writes it, a materialization with its metadata per asset and partition; the questions go to
dagster-webserver's own GraphQL schema in this process, without HTTP. A snapshot's history does not
know how many shards the snapshot has, so the only scale here is the number of snapshots.
"""

import json
import sys
import time

BEGUN = time.process_time()
from lc_assets.definitions import build_defs, defs  # noqa: E402
from lc_assets.stages.catalogue import STAGES  # noqa: E402

LOADED = time.process_time() - BEGUN

from pathlib import Path  # noqa: E402

import dagster as dg  # noqa: E402
from dagster._core.remote_origin import InProcessCodeLocationOrigin  # noqa: E402
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin  # noqa: E402
from dagster._core.workspace.context import WorkspaceProcessContext  # noqa: E402
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget  # noqa: E402
from dagster_graphql.test.utils import execute_dagster_graphql  # noqa: E402

from lc_assets.sources.opening import known_snapshots  # noqa: E402
from lc_assets_tests.memory import peak_mb  # noqa: E402

GRAPH = """{assetNodes {
  assetKey {path} groupName kinds description jobNames dependencyKeys {path} dependedByKeys {path} partitionDefinition {name}
  assetChecksOrError {... on AssetChecks {checks {name}}} automationCondition {label}
}}"""
STATUS = """{assetNodes {
  assetKey {path} partitionStats {numMaterialized numFailed numPartitions} staleStatus
  assetPartitionStatuses {... on DefaultPartitionStatuses {materializedPartitions}}
  assetMaterializations(limit: 1) {timestamp metadataEntries {label}}
}}"""


def write_history(instance: dg.DagsterInstance, n_snapshots: int) -> int:
    """Report everything of so many snapshots as materialized; how much that was."""
    metadata = {
        "summary": dg.MetadataValue.md("x" * 500),
        "dagster/row_count": 79_300,
        "audit": dg.MetadataValue.md("y" * 500),
    }
    metadata |= {f"figure {number}": float(number) for number in range(10)}
    n_events = 0
    for stage in STAGES:
        per_snapshot = stage.partitioned_by == "snapshot"
        for key in known_snapshots()[:n_snapshots] if per_snapshot else [None]:
            tags = {"dagster/data_version": f"{stage.name}{key}"}
            partition = key if stage.partitioned_by != "mix" else "by-tokens"
            instance.report_runless_asset_event(
                dg.AssetMaterialization(
                    dg.AssetKey(stage.name), partition=partition, tags=tags, metadata=metadata
                )
            )
            n_events += 1
    return n_events


def main(n_snapshots: str, folder: str) -> None:
    """Write the history, ask, print."""
    Path(folder).mkdir(parents=True)
    instance = dg.DagsterInstance.local_temp(folder)
    n_events = write_history(instance, int(n_snapshots))
    target = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="lc_assets.definitions", attribute="defs"
    )
    origin = InProcessCodeLocationOrigin(loadable_target_origin=target, location_name="lc_assets")
    said = {
        "events": n_events,
        "load": LOADED,
        "history_mb": sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        / 1e6,
    }
    begun = time.process_time()
    build_defs().resolve_asset_graph()
    said["definitions"] = time.process_time() - begun
    assert defs.resolve_asset_graph()
    with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget([origin])) as context:
        for name, query in (
            ("graph", GRAPH),
            ("status", STATUS),
            ("graph again", GRAPH),
            ("status again", STATUS),
        ):
            begun = time.process_time()
            answer = execute_dagster_graphql(context.create_request_context(), query)
            said[name] = time.process_time() - begun
            nodes = answer.data["assetNodes"]
            assert len(nodes) == len(STAGES)
        done = [
            node["partitionStats"]["numMaterialized"] for node in nodes if node["partitionStats"]
        ]
        assert done.count(int(n_snapshots)) == sum(
            stage.partitioned_by == "snapshot" for stage in STAGES
        )
    print(json.dumps(said | {"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
