"""Backfills and single runs as the UI asks for them, through the GraphQL API of a running web server
and daemon.

``pytest -s -m slow lc_assets_tests/orchestration/test_backfills.py``: two to four minutes.
"""

from collections import Counter

import pytest

from lc_assets.definitions import ASSET_OF
from lc_assets.orchestration.staleness import newest_of, warned_of
from lc_assets.stages.catalogue import STAGES
from lc_assets_tests.builders import deduplication
from lc_assets_tests.orchestration.launched_runs import ask, free_port
from lc_assets_tests.orchestration.real_daemon import Deployment, Since
from lc_assets_tests.processes import wait_until

LOCATION = "lc_assets.definitions"
SNAPSHOTS = ("2022-33", "2022-40", "2022-49")
CHOSEN, OTHER = ["2022-33", "2022-49"], "2022-40"

PREVIEW = """
query($assets: [AssetKeyInput!]!, $keys: [String!]!) {
  assetBackfillPreview(params: {assetSelection: $assets, partitionNames: $keys}) {
    assetKey { path } partitions { partitionKeys ranges { start end } }
  }
}
"""
ASSETS = """
query($job: String!, $location: String!) {
  assetNodes(pipeline: {
    pipelineName: $job, repositoryName: "__repository__", repositoryLocationName: $location
  }) { assetKey { path } }
}
"""
BACKFILL = """
mutation($assets: [AssetKeyInput!]!, $keys: [String!]!) {
  launchPartitionBackfill(backfillParams: {assetSelection: $assets, partitionNames: $keys}) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}
"""
STATUS = """
query($backfill: String!) {
  partitionBackfillOrError(backfillId: $backfill) { ... on PartitionBackfill { status } }
}
"""
LAUNCH = """
mutation($job: String!, $location: String!, $key: String!) {
  launchRun(executionParams: {
    selector: {
      repositoryLocationName: $location, repositoryName: "__repository__", jobName: $job
    }
    executionMetadata: {tags: [{key: "dagster/partition", value: $key}]}
  }) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def served(tmp_path):
    """A deployment with near duplicates, and the port of its web server."""
    deployment = Deployment(tmp_path, SNAPSHOTS, automation=False)
    deployment.change_recipe(**deduplication(near=True))
    port = free_port()

    def answers() -> bool:
        try:
            return bool(ask(port, "{ version }"))
        except OSError:
            return False

    try:
        deployment.start("dagster", "dev", "--host", "127.0.0.1", "--port", str(port))
        wait_until(answers, "the web server answers", every=0.5)
        yield deployment, port
    finally:
        deployment.stop()


def test_chosen_snapshots_are_built_and_nothing_else(served):
    """A preview of one snapshot has one partition of each asset. A backfill of two out of three
    snapshots ends well, with a run for each, and builds all of these two and nothing of the third;
    a single run of the same job then builds the third. What the planner calls out of date after
    that, and nothing else, is a warning in the graph.
    """
    deployment, port = served
    nodes = ask(port, ASSETS, job="snapshot", location=LOCATION)["assetNodes"]
    assets = [{"path": node["assetKey"]["path"]} for node in nodes]
    names = {"/".join(asset["path"]) for asset in assets}
    assert names == {
        stage.name for stage in STAGES if stage.job in {"snapshot_documents", "snapshot_rows"}
    }

    preview = ask(port, PREVIEW, assets=assets, keys=[OTHER])["assetBackfillPreview"]
    assert [found["partitions"]["partitionKeys"] for found in preview] == [[OTHER]] * len(assets)

    since = Since(deployment)
    asked = ask(port, BACKFILL, assets=assets, keys=CHOSEN)["launchPartitionBackfill"]
    states = []

    def has_ended() -> bool:
        found = ask(port, STATUS, backfill=asked["backfillId"])["partitionBackfillOrError"]
        states.append(found["status"])
        return states[-1] not in {"REQUESTED", "COMPLETING"}

    deployment.wait(has_ended, 1500)
    assert states[-1] == "COMPLETED_SUCCESS"
    assert len(deployment.runs()) == len(CHOSEN)
    print(f"\ntwo of three snapshots: {since.costs()}")
    expected = {f"{name}/{key}" for name in names for key in CHOSEN}
    assert {one.name for one in deployment.built()} == expected | {"withdrawn_documents/all"}

    since = Since(deployment)
    run = ask(port, LAUNCH, job="snapshot", location=LOCATION, key=OTHER)["launchRun"]
    assert run["__typename"] == "LaunchRunSuccess", run
    deployment.wait(lambda: len(deployment.runs()) == len(CHOSEN) + 1, 1500)
    print(f"a single run of the third: {since.costs()}")
    assert Counter(found.status.value for found in deployment.runs()) == {"SUCCESS": 3}
    assert {f"{name}/{OTHER}" for name in names} <= {one.name for one in deployment.built()}

    def behind() -> set[str]:
        return {name.partition("/")[0] for name in deployment.behind(SNAPSHOTS)}

    deployment.wait(lambda: warned(deployment) == behind(), 1500)
    assert {"longcrawl", "data_set_card"} <= warned(deployment)


def warned(deployment: Deployment) -> set[str]:
    """The assets that have a warning in the graph: the running sensor records them."""
    with deployment.instance() as instance:
        found = warned_of(instance, ASSET_OF.values(), newest_of(instance, ASSET_OF.values()))
    return {asset.to_user_string() for asset, warns in found.items() if warns}
