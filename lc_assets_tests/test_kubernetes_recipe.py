"""docs/kubernetes: the files are what Dagster, its chart, Ray and Kubernetes understand, and they
agree with each other.

No cluster is asked. Schemas come from packages: Dagster's from itself and dagster-k8s, Ray's
reading of a cluster from ray, Kubernetes' from kubernetes-validate; what is not installed is
skipped. Of the chart's and of KubeRay's schemas, which no package has, the keys that are used here
were compared by eye, and stand below.
"""

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.instance.config import PoolGranularity
from packaging.requirements import Requirement

from lc_assets.definitions import from_environment
from lc_assets.execution.on_ray import RayExecutor, executor_at
from lc_assets_tests import kubernetes_recipe as recipes
from lc_assets_tests.kubernetes_recipe import FOLDER, ROOT, Recipe, read, read_recipe, spoilt
from lc_assets_tests.processes import HANG_SECONDS

WAYS = {
    "as it stands": (),
    "spot": ("spot",),
    "bucket": ("bucket",),
    "spot, bucket": ("spot", "bucket"),
}
INVARIANTS = (
    recipes.images,
    recipes.volumes,
    recipes.settings,
    recipes.versions,
    recipes.limits,
    recipes.confidential,
    recipes.public,
)
KUBERNETES = "1.34"

CHART = {
    "": {"additionalInstanceConfig", "generatePostgresqlPasswordSecret"},
    "computeLogManager": {"type"},
    "computeLogManager.config.gcsComputeLogManager": {"bucket", "prefix", "uploadInterval"},
    "dagster-user-deployments": {"enabled", "enableSubchart", "deployments"},
    "dagsterDaemon": {
        "enabled",
        "image",
        "podSecurityContext",
        "resources",
        "volumes",
        "volumeMounts",
    },
    "dagsterDaemon.runCoordinator": {"enabled"},
    "dagsterDaemon.runMonitoring": {"enabled"},
    "dagsterDaemon.runRetries": {"enabled"},
    "dagsterWebserver": {"volumes", "volumeMounts", "image", "podSecurityContext", "resources"},
    "dagsterWebserver.service": {"type", "port"},
    "global": {"dagsterHome", "serviceAccountName", "postgresqlSecretName"},
    "ingress": {"enabled"},
    "postgresql": {
        "enabled",
        "postgresqlHost",
        "postgresqlUsername",
        "postgresqlDatabase",
        "postgresqlScheme",
    },
    "postgresql.service": {"port"},
    "retention": {"enabled"},
    "retention.schedule": {"purgeAfterDays"},
    "retention.sensor": {"purgeAfterDays"},
    "runLauncher": {"type"},
    "runLauncher.config.k8sRunLauncher": {"imagePullPolicy", "runK8sConfig"},
    "serviceAccount": {"create"},
    "telemetry": {"enabled"},
}
"""Keys by what they are in, of the chart's schema (dagster-io/dagster, helm/dagster/schema); what
is below is free, or Kubernetes'.
"""

DEPLOYMENT = {
    "name",
    "image",
    "dagsterApiGrpcArgs",
    "port",
    "includeConfigInLaunchedRuns",
    "envConfigMaps",
}
DEPLOYMENT |= {"podSecurityContext", "volumes", "volumeMounts"}
RAY_CLUSTER = {
    "rayVersion",
    "enableInTreeAutoscaling",
    "autoscalerOptions",
    "headGroupSpec",
    "workerGroupSpecs",
}
AUTOSCALER = {"version", "idleTimeoutSeconds", "resources"}
HEAD = {"serviceType", "rayStartParams", "template"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
"""Keys of KubeRay's ray.io/v1 (samples, an older copy of its types, excerpts of its reference)."""

SPOILERS = {
    "another image for workers": lambda r: container(r, 1).update(
        image="registry.example/lc-assets:0.2.0"
    ),
    "latest": lambda r: (
        [part.update(tag="latest") for part in image_values(r)]
        + [container(r, n).update(image="x:latest") for n in (0, 1)]
    ),
    "another image for the daemon": lambda r: r.values["dagsterDaemon"]["image"].update(
        tag="0.2.0"
    ),
    "an image for runs alone": lambda r: r.launcher.update(image={"repository": "x", "tag": "1"}),
    "workers without the volume": lambda r: container(r, 1).pop("volumeMounts"),
    "workers with it elsewhere": lambda r: container(r, 1)["volumeMounts"][0].update(
        mountPath="/data"
    ),
    "runs with another claim": lambda r: r.location["volumes"][0]["persistentVolumeClaim"].update(
        claimName="other"
    ),
    "a volume for one machine": lambda r: r.manifests["PersistentVolumeClaim/lc-shared"][
        "spec"
    ].update(accessModes=["ReadWriteOnce"]),
    "a lake in the pod": lambda r: r.settings.update(LC_ROOT="/home/lc/lake"),
    "a bucket without shared copies": lambda r: r.settings.update(
        LC_ROOT="gs://b/lake", LC_CACHE="/home/lc/copies"
    ),
    "a bucket without copies": lambda r: (
        r.settings.update(LC_ROOT="gs://b/lake"),
        r.settings.pop("LC_CACHE", None),
    ),
    "fates in the pod": lambda r: r.instance["local_artifact_storage"]["config"].update(
        base_dir="/opt/dagster"
    ),
    "a setting nobody reads": lambda r: r.settings.update(LC_THREADS="2"),
    "a setting that is no text": lambda r: r.settings.update(LC_WORKERS=2),
    "settings not given": lambda r: r.location.update(envConfigMaps=[]),
    "settings not given to runs": lambda r: r.location["includeConfigInLaunchedRuns"].update(
        enabled=False
    ),
    "another cluster's name": lambda r: r.cluster["metadata"].update(name="ray"),
    "another port": lambda r: r.settings.update(LC_EXECUTOR="ray://lc-head-svc:6379"),
    "another Ray": lambda r: r.cluster["spec"].update(rayVersion="2.55.0"),
    "an integration of another release": lambda r: r.pins.update({"dagster-k8s": "0.29.26"}),
    "a chart of another release": lambda r: r.pins.update(dagster="1.13.28"),
    "probes that cannot": lambda r: object.__setattr__(
        r, "dockerfile", r.dockerfile.replace(" wget ", " ")
    ),
    "all runs at once": lambda r: r.instance["concurrency"]["runs"].update(max_concurrent_runs=84),
    "no limit of runs": lambda r: r.instance["concurrency"].pop("runs"),
    "a backfill takes all": lambda r: r.instance["concurrency"]["runs"][
        "tag_concurrency_limits"
    ].pop(0),
    "pools of steps": lambda r: r.instance["concurrency"]["pools"].update(granularity="op"),
    "a pool nobody has": lambda r: object.__setattr__(
        r, "said", r.said.replace("set workers", "set cpu")
    ),
    "no queue": lambda r: r.instance.pop("run_coordinator"),
    "workers without end": lambda r: r.cluster["spec"]["workerGroupSpecs"][0].pop("maxReplicas"),
    "a password": lambda r: r.values["postgresql"].update(postgresqlPassword="abc"),
    "a secret": lambda r: r.manifests.update({"Secret/lc": {"kind": "Secret"}}),
    "a token for workers": lambda r: container(r, 1)["env"].append(
        {"name": "RAY_AUTH_TOKEN", "value": "abc"}
    ),
    "a public head": lambda r: r.cluster["spec"]["headGroupSpec"].update(
        serviceType="LoadBalancer"
    ),
    "a public UI": lambda r: r.values["dagsterWebserver"]["service"].update(type="NodePort"),
    "an ingress": lambda r: r.values["ingress"].update(enabled=True),
    "runs shut out": lambda r: r.launcher["runK8sConfig"]["podTemplateSpecMetadata"][
        "labels"
    ].clear(),
    "Ray open": lambda r: r.manifests["NetworkPolicy/lc-runs-to-ray"]["spec"]["ingress"][0][
        "from"
    ].append({"podSelector": {}}),
    "the namespace open": lambda r: r.manifests.pop("NetworkPolicy/lc-own-namespace-only"),
    "root": lambda r: r.cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"].pop(
        "securityContext"
    ),
}


def container(recipe: Recipe, group: int) -> dict[str, Any]:
    return recipe.ray_groups[group]["template"]["spec"]["containers"][0]


def image_values(recipe: Recipe) -> list[dict[str, Any]]:
    return [
        recipe.location["image"],
        *(recipe.values[part]["image"] for part in ("dagsterWebserver", "dagsterDaemon")),
    ]


@functools.cache
def standing() -> Recipe:
    return read_recipe()


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def recipe(request) -> Recipe:
    return read_recipe(*request.param)


@pytest.mark.parametrize("holds", INVARIANTS, ids=lambda holds: holds.__name__)
def test_the_files_agree(recipe, holds):
    assert holds(recipe) == []


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_what_does_not_agree_is_found(spoil):
    """Each way to break the recipe breaks one of the invariants; the intact one breaks none."""
    assert [wrong for holds in INVARIANTS for wrong in holds(spoilt(standing(), spoil))] != []


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("*.yaml")), ids=lambda path: path.relative_to(FOLDER).as_posix()
)
def test_every_file_is_plain_yaml_without_a_key_twice(path):
    """A key that stands twice is taken the second time, without a word."""
    assert all(read(path))
    for document in yaml.compose_all(path.read_text("utf-8"), yaml.SafeLoader):
        assert list(keys_twice(document)) == []


def keys_twice(node: yaml.Node | None) -> Iterator[int]:
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value]
        yield from (key.start_mark.line for key, _ in node.value if names.count(key.value) > 1)
        for _, value in node.value:
            yield from keys_twice(value)
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from keys_twice(value)


def test_the_code_location_and_the_executor_take_the_settings():
    """The very settings, read as in the pod; nothing is opened before it is asked for."""
    settings = standing().settings
    assert isinstance(from_environment(settings), dg.Definitions)
    executor = executor_at(settings["LC_EXECUTOR"])
    assert isinstance(executor, RayExecutor)
    assert executor.address == settings["LC_EXECUTOR"]


def test_the_image_has_a_ray_and_a_python_that_the_project_takes():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (ray,) = (Requirement(line) for line in project["optional-dependencies"]["ray"])
    assert standing().pins["ray"] in ray.specifier
    python = next(
        line.partition(":")[2].partition("-")[0]
        for line in standing().dockerfile.splitlines()
        if line.startswith("FROM python:")
    )
    assert f"{python}.0" in Requirement(f"python{project['requires-python']}").specifier


def test_the_base_image_is_one_that_never_changes():
    (base,) = re.findall(r"^FROM (.*)$", standing().dockerfile, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim@sha256:[0-9a-f]{64}", base)


KERNEL = """
import sys
from llvmlite import binding
binding.get_host_cpu_name = lambda: sys.argv[1]
from lc_assets.text.hashing import bits_of
bits_of(9)
print(sum(bits_of.dispatcher.stats.cache_hits.values()))
"""


def test_kernels_of_the_image_serve_every_machine(tmp_path):
    """Compiled on one processor, found in the cache on another, by the environment of the image;
    without it they are compiled again.
    """
    (line,) = re.findall(r"^ENV (NUMBA_CACHE_DIR=.*)$", standing().dockerfile, re.MULTILINE)
    (cpu,) = re.findall(r"^ARG CPU=(.*)$", standing().dockerfile, re.MULTILINE)
    image = dict(word.split("=", 1) for word in shlex.split(line.replace("$CPU", cpu)))
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert [hits("znver5", image | cache), hits("haswell", image | cache)] == [0, 1]
    assert hits("haswell", cache) == 0


def hits(processor, environment):
    """How many kernels a process on a processor finds compiled."""
    asked = subprocess.run(
        [sys.executable, "-c", KERNEL, processor],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    return int(asked.stdout)


def test_the_kernels_are_compiled_by_the_user_who_runs():
    """Numba reads a cache only where it may write."""
    lines = standing().dockerfile.splitlines()
    user, fills = (
        lines.index("USER 1000"),
        next(number for number, line in enumerate(lines) if line.startswith("RUN lc demo")),
    )
    assert user < next(n for n, line in enumerate(lines) if "NUMBA_CACHE_DIR" in line) < fills
    assert "chown -R lc:lc /opt/dagster /opt/numba" in standing().dockerfile


def test_what_the_image_pins_beyond_the_project_is_pinned_once():
    names = [
        {line.split("==")[0].lower() for line in recipes.pinned(folder / "constraints.txt")}
        for folder in (ROOT, FOLDER)
    ]
    assert names[0] & names[1] == set()


def test_what_the_image_copies_is_let_through_and_is_there():
    allowed = {
        line[1:]
        for line in (FOLDER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copied = [
        line.split()[1:-1]
        for line in standing().dockerfile.splitlines()
        if line.startswith("COPY ")
    ]
    assert {name for names in copied for name in names} == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_the_chart_knows_every_key():
    """A key that a chart does not know is passed over without a word."""
    values = {**standing().values, "dagster-user-deployments": {"enabled": True, "deployments": ""}}
    said = {".".join(path) for path, _ in recipes.leaves(values)}
    known_keys = [
        f"{inside}.{name}".lstrip(".") for inside, names in CHART.items() for name in names
    ]
    assert [
        key
        for key in said
        if not any(key == known or key.startswith(f"{known}.") for known in known_keys)
    ] == []
    for deployment in standing().values["dagster-user-deployments"]["deployments"]:
        assert set(deployment) == DEPLOYMENT


def test_kuberay_knows_every_key(recipe):
    spec = recipe.cluster["spec"]
    assert (recipe.cluster["apiVersion"], set(spec)) == ("ray.io/v1", RAY_CLUSTER)
    assert set(spec["autoscalerOptions"]) == AUTOSCALER
    assert set(spec["headGroupSpec"]) == HEAD
    assert [set(group) for group in spec["workerGroupSpecs"]] == [WORKERS]
    assert all(
        isinstance(value, str)
        for group in recipe.ray_groups
        for value in group["rayStartParams"].values()
    )


def test_rays_autoscaler_reads_the_cluster(recipe):
    """By the function that the head calls: no shard on the head, one processor per shard, all of
    them within the end.
    """
    pytest.importorskip("ray")
    from ray.autoscaler._private.kuberay.autoscaling_config import (
        _derive_autoscaling_config_from_ray_cr as derive,
    )

    cluster = {**recipe.cluster, "metadata": {"name": "lc", "namespace": "lc"}}
    found = derive(cluster)["available_node_types"]
    assert found["headgroup"]["resources"]["CPU"] == 0
    assert (found["workers"]["resources"]["CPU"], found["workers"]["max_workers"]) == (7, 16)


def test_dagster_reads_the_instance(tmp_path):
    """As the chart puts it into dagster.yaml: queue, limits, pools, monitoring, retries; the
    volume's place by a folder of the test.
    """
    config = {**standing().instance, "telemetry": standing().values["telemetry"]}
    config["local_artifact_storage"] = {
        **config["local_artifact_storage"],
        "config": {"base_dir": str(tmp_path / "shared")},
    }
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config), "utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        found = instance.get_concurrency_config()
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert (
            found.run_queue_config.max_concurrent_runs,
            found.pool_config.default_pool_limit,
        ) == (8, 4)
        assert found.pool_config.pool_granularity == PoolGranularity.RUN
        assert len(found.run_queue_config.tag_concurrency_limits) == 2
        assert (instance.run_monitoring_enabled, instance.run_retries_max_retries) == (True, 2)
        assert Path(instance.storage_directory()).parent == tmp_path / "shared"


def test_dagster_reads_where_logs_go():
    from dagster._config import process_config, resolve_to_config_type
    from dagster_gcp.gcs import GCSComputeLogManager

    said = standing().values["computeLogManager"]["config"]["gcsComputeLogManager"]
    config = {
        "bucket": said["bucket"],
        "prefix": said["prefix"],
        "upload_interval": said["uploadInterval"],
    }
    assert process_config(
        resolve_to_config_type(GCSComputeLogManager.config_type()), config
    ).success


def test_kubernetes_knows_every_manifest_and_every_pod_of_ray(recipe):
    kubernetes = pytest.importorskip("kubernetes_validate")
    for manifest in recipe.manifests.values():
        if manifest["apiVersion"] != "ray.io/v1":
            kubernetes.validate(manifest, KUBERNETES, strict=True)
    for group in recipe.ray_groups:
        metadata = {"name": "pod", **group["template"].get("metadata", {})}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": group["template"]["spec"],
        }
        kubernetes.validate(pod, KUBERNETES, strict=True)


def test_the_job_of_a_run_is_as_wanted():
    """Built by dagster-k8s from what the chart hands it: image, settings, volume, account, size,
    grace, label.
    """
    from lc_assets_tests.kubernetes_runs import job_of_a_run

    job = job_of_a_run(standing())
    pod, one = job["spec"]["template"], job["spec"]["template"]["spec"]["containers"][0]
    assert one["image"] == container(standing(), 1)["image"]
    assert {"configMapRef": {"name": "lc-settings"}} in one["envFrom"]
    assert "/shared" in [mount["mountPath"] for mount in one["volumeMounts"]]
    assert one["resources"]["requests"]["cpu"] == "2"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["terminationGracePeriodSeconds"]) == (
        "lc-dagster",
        120,
    )
    assert (
        pod["metadata"]["labels"]["lc-assets/part"],
        pod["spec"]["securityContext"]["runAsUser"],
    ) == ("run", 1000)
    assert job["spec"]["ttlSecondsAfterFinished"] == 86_400
    pytest.importorskip("kubernetes_validate").validate(job, KUBERNETES, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kustomize_makes_the_same_of_the_files(tmp_path):
    """With both components: every manifest, in the namespace, with what our own reading of the
    patches makes of it.
    """
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    kustomization = tmp_path / "kubernetes" / "cluster" / "kustomization.yaml"
    kustomization.write_text(
        kustomization.read_text("utf-8")
        .replace("# components:", "components:")
        .replace("#   - ..", "  - .."),
        "utf-8",
    )
    made = subprocess.run(
        ["kubectl", "kustomize", kustomization.parent],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    ).stdout
    found = {
        f"{manifest['kind']}/{manifest['metadata']['name']}": manifest
        for manifest in yaml.safe_load_all(made)
    }
    assert {manifest["metadata"].pop("namespace") for manifest in found.values()} == {"lc"}
    assert found == read_recipe("spot", "bucket").manifests
