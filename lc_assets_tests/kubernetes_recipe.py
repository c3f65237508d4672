"""The recipe of docs/kubernetes as one value, and what must hold across its files: functions that
list what is wrong.

Nothing here needs a cluster. That the files are what Kubernetes, Ray and Dagster understand:
`test_kubernetes_recipe.py`.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lc_assets import definitions
from lc_assets.stages.catalogue import STAGES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "kubernetes"
MEANT = set(re.findall(r"^``(LC_\w+)``", definitions.__doc__ or "", re.MULTILINE))
POOLS = {stage.pool for stage in STAGES if stage.pool}
SNAPSHOTS = 84
CONFIDENTIAL = re.compile(
    r"password|passwd|secret|token|credential|apikey|api_key|private_?key", re.IGNORECASE
)
REFERENCES = {
    "postgresqlSecretName",
    "generatePostgresqlPasswordSecret",
    "automountServiceAccountToken",
}


@dataclass(frozen=True)
class Recipe:
    """Everything as it is applied: the chart's values, the manifests by kind and name, what is
    pinned, and what is said of it.
    """

    values: dict[str, Any]
    manifests: dict[str, dict[str, Any]]
    pins: dict[str, str]
    dockerfile: str
    said: str

    @property
    def settings(self) -> dict[str, str]:
        return self.manifests["ConfigMap/lc-settings"]["data"]

    @property
    def cluster(self) -> dict[str, Any]:
        return self.manifests["RayCluster/lc"]

    @property
    def location(self) -> dict[str, Any]:
        return self.values["dagster-user-deployments"]["deployments"][0]

    @property
    def launcher(self) -> dict[str, Any]:
        return self.values["runLauncher"]["config"]["k8sRunLauncher"]

    @property
    def instance(self) -> dict[str, Any]:
        return self.values["additionalInstanceConfig"]

    @property
    def ray_groups(self) -> list[dict[str, Any]]:
        return [self.cluster["spec"]["headGroupSpec"], *self.cluster["spec"]["workerGroupSpecs"]]

    @property
    def computing(self) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Of every pod that sees the lake or the instance's files (a run has the code location's):
        what it mounts, and its volumes.
        """
        pods = [group["template"]["spec"] for group in self.ray_groups]
        ray = {pod["containers"][0]["name"]: (pod["containers"][0], pod["volumes"]) for pod in pods}
        dagster = {
            "runs": self.location,
            "webserver": self.values["dagsterWebserver"],
            "daemon": self.values["dagsterDaemon"],
        }
        return {name: (pod, pod["volumes"]) for name, pod in dagster.items()} | ray


def read_recipe(*components: str) -> Recipe:
    """The recipe as it stands, with components of kustomize (``spot``, ``bucket``) applied."""
    manifests = {}
    for name in read(FOLDER / "cluster" / "kustomization.yaml")[0]["resources"]:
        for manifest in read(FOLDER / "cluster" / name):
            manifests[f"{manifest['kind']}/{manifest['metadata']['name']}"] = manifest
    for component in components:
        for patch in read(FOLDER / component / "kustomization.yaml")[0]["patches"]:
            _patch(
                manifests["{kind}/{name}".format(**patch["target"])], yaml.safe_load(patch["patch"])
            )
    pins = dict(
        line.split("==") for file in (ROOT, FOLDER) for line in pinned(file / "constraints.txt")
    )
    said = "\n".join(
        path.read_text("utf-8")
        for path in (FOLDER / "dagster.yaml", FOLDER.parent / "kubernetes.md")
    )
    return Recipe(
        read(FOLDER / "dagster.yaml")[0],
        manifests,
        pins,
        (FOLDER / "Dockerfile").read_text("utf-8"),
        said,
    )


def read(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def pinned(path: Path) -> list[str]:
    return [
        line
        for line in path.read_text("utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    ]


def _patch(manifest: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """JSON patch (RFC 6902), as much as is used here: add to a mapping, replace what is there."""
    for operation in operations:
        *way, last = operation["path"].strip("/").split("/")
        place = manifest
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        assert operation["op"] in {"add", "replace"}
        assert operation["op"] == "add" or last in place
        place[last] = operation["value"]


def spoilt(recipe: Recipe, spoil: Any) -> Recipe:
    other = copy.deepcopy(recipe)
    spoil(other)
    return other


def images(recipe: Recipe) -> list[str]:
    """One image everywhere, under a tag that stays what it is."""
    said = [recipe.values[part]["image"] for part in ("dagsterWebserver", "dagsterDaemon")]
    said += [
        deployment["image"]
        for deployment in recipe.values["dagster-user-deployments"]["deployments"]
    ]
    found = {f"{image['repository']}:{image['tag']}" for image in said}
    found |= {
        container["image"]
        for group in recipe.ray_groups
        for container in group["template"]["spec"]["containers"]
    }
    wrong = [f"no tag for ever: {image}" for image in found if image.endswith((":latest", ":"))]
    wrong += ["runs have an image of their own"] * ("image" in recipe.launcher)
    return wrong + ([f"several images: {sorted(found)}"] if len(found) != 1 else [])


def volumes(recipe: Recipe) -> list[str]:
    """Every computing pod has one claim under one path, which holds what is written."""
    wrong, paths = [], set()
    for name, (container, volumes) in recipe.computing.items():
        claims = {
            volume["name"]: volume.get("persistentVolumeClaim", {}).get("claimName")
            for volume in volumes
        }
        mounted = {
            mount["mountPath"]
            for mount in container.get("volumeMounts", [])
            if claims.get(mount["name"]) == "lc-shared"
        }
        paths |= mounted
        wrong += [f"{name} mounts lc-shared at {sorted(mounted)}"] * (len(mounted) != 1)
    claim = recipe.manifests.get("PersistentVolumeClaim/lc-shared", {"spec": {"accessModes": []}})
    wrong += ["lc-shared is not for many machines"] * (
        claim["spec"]["accessModes"] != ["ReadWriteMany"]
    )
    root = recipe.settings["LC_ROOT"]
    written = [recipe.settings.get("LC_CACHE", "nowhere") if "://" in root else root]
    written += [recipe.instance["local_artifact_storage"]["config"]["base_dir"]]
    wrong += [
        f"{place} is not on the volume"
        for place in written
        if not any(place.startswith(f"{path}/") for path in paths)
    ]
    return wrong + ([f"several paths: {sorted(paths)}"] if len(paths) != 1 else [])


def settings(recipe: Recipe) -> list[str]:
    """Only what `lc_assets.definitions` reads, as text, given to code location and runs; the
    executor is the cluster's own service.
    """
    wrong = [f"no setting: {name}" for name in recipe.settings if name not in MEANT]
    wrong += [
        f"no text: {name}" for name, value in recipe.settings.items() if not isinstance(value, str)
    ]
    wrong += ["runs do not get them"] * (
        {"name": "lc-settings"} not in recipe.location["envConfigMaps"]
    )
    wrong += ["runs do not get them"] * (
        not recipe.location["includeConfigInLaunchedRuns"]["enabled"]
    )
    ports = {
        port["name"]: port["containerPort"]
        for port in recipe.ray_groups[0]["template"]["spec"]["containers"][0]["ports"]
    }
    service = f"ray://{recipe.cluster['metadata']['name']}-head-svc:{ports['client']}"
    return wrong + (
        [f"LC_EXECUTOR is not {service}"] if recipe.settings["LC_EXECUTOR"] != service else []
    )


def versions(recipe: Recipe) -> list[str]:
    """Ray's and Dagster's versions are the image's, wherever they are said."""
    wrong = ["rayVersion is not the image's"] * (
        recipe.cluster["spec"]["rayVersion"] != recipe.pins["ray"]
    )
    wrong += [
        f"{name} is not of dagster-gcp's release"
        for name in ("dagster-k8s", "dagster-postgres")
        if recipe.pins[name] != recipe.pins["dagster-gcp"]
    ]
    charts = set(re.findall(r"dagster/dagster --version ([\w.]+)", recipe.said))
    wrong += [f"charts {sorted(charts)} for dagster {recipe.pins['dagster']}"] * (
        charts != {recipe.pins["dagster"]}
    )
    needed = (
        "-c constraints.txt",
        "-c cluster-constraints.txt",
        "ray[default]",
        "gcs,stores,ray",
        "dagster-k8s",
        "dagster-postgres",
        " wget ",
    )
    return wrong + [f"the image lacks {part}" for part in needed if part not in recipe.dockerfile]


def limits(recipe: Recipe) -> list[str]:
    """A backfill of all snapshots waits in Dagster's queue, and leaves room; the cluster has an end
    too.
    """
    concurrency = recipe.instance.get("concurrency", {})
    most = concurrency.get("runs", {}).get("max_concurrent_runs", SNAPSHOTS)
    wrong = [f"{most} runs at once"] * (not 0 < most < SNAPSHOTS / 2)
    tags = {
        limit["key"]: limit["limit"]
        for limit in concurrency.get("runs", {}).get("tag_concurrency_limits", [])
    }
    wrong += ["a backfill leaves no room"] * (not 0 < tags.get("dagster/backfill", most) < most)
    given = concurrency.get("pools", {})
    wrong += ["pools do not bound runs"] * (
        given.get("granularity") != "run" or not 0 < given.get("default_limit", 0) <= most
    )
    wrong += ["runs are not queued"] * (
        recipe.instance.get("run_coordinator", {}).get("class") != "QueuedRunCoordinator"
    )
    named = set(re.findall(r"concurrency set (\w+)|\(pool (\w+)\)", recipe.said))
    wrong += [f"no pool: {name}" for name in {one or other for one, other in named} - POOLS]
    unbounded = [
        group["groupName"]
        for group in recipe.ray_groups[1:]
        if not 0 < group.get("maxReplicas", 0) <= 1_000
    ]
    return wrong + [f"no end of workers: {name}" for name in unbounded]


def confidential(recipe: Recipe) -> list[str]:
    """Nothing secret stands in a file: secrets are named, never written."""
    wrong = [
        f"a secret in a file: {name}" for name in recipe.manifests if name.startswith("Secret/")
    ]
    for path, value in leaves({"values": recipe.values, "manifests": recipe.manifests}):
        wrong += [f"a secret in a file: {'.'.join(path)}"] * bool(
            CONFIDENTIAL.search(path[-1]) and path[-1] not in REFERENCES
        )
        wrong += [f"a key in a file: {'.'.join(path)}"] * ("-----BEGIN" in f"{value}")
    for env in environments(recipe):
        wrong += [f"a secret in a file: {env['name']}"] * bool(
            "value" in env and CONFIDENTIAL.search(env["name"])
        )
    return wrong


def public(recipe: Recipe) -> list[str]:
    """Nothing is reachable from outside; to Ray come only Ray and runs; nobody is root."""
    kinds = {
        value
        for path, value in leaves({"": recipe.values, "cluster": recipe.cluster})
        if path[-1] in {"type", "serviceType"}
    }
    wrong = [
        f"a public service: {kind}" for kind in kinds & {"LoadBalancer", "NodePort", "ExternalName"}
    ]
    wrong += ["an ingress"] * (
        recipe.values["ingress"]["enabled"]
        or any(name.startswith("Ingress/") for name in recipe.manifests)
    )
    rules = {
        name.partition("/")[2]: rule["spec"]
        for name, rule in recipe.manifests.items()
        if name.startswith("NetworkPolicy/")
    }
    let_in = [
        peer["podSelector"]
        for rule in rules.values()
        for way in rule["ingress"]
        for peer in way.get("from", [{"podSelector": None}])
    ]
    label = recipe.launcher["runK8sConfig"]["podTemplateSpecMetadata"]["labels"]
    mark = {"ray.io/cluster": recipe.cluster["metadata"]["name"]}
    if "lc-own-namespace-only" not in rules or None in let_in:
        wrong.append("the namespace is open")
    ray = [
        peer
        for rule in rules.values()
        if mark.items() <= rule["podSelector"].get("matchLabels", {}).items()
        for peer in rule["ingress"][0]["from"]
    ]
    if [peer["podSelector"].get("matchLabels") for peer in ray] != [mark, label]:
        wrong.append("Ray is open, or runs are shut out")
    owners = [group["template"]["spec"].get("securityContext", {}) for group in recipe.ray_groups]
    owners += [
        recipe.values[part]["podSecurityContext"] for part in ("dagsterWebserver", "dagsterDaemon")
    ]
    owners += [
        recipe.location["podSecurityContext"],
        recipe.launcher["runK8sConfig"]["podSpecConfig"]["securityContext"],
    ]
    user = int(re.findall(r"^USER (\d+)$", recipe.dockerfile, re.MULTILINE)[-1])
    return wrong + ["somebody is not the image's user"] * (
        user == 0 or any(owner.get("runAsUser") != user for owner in owners)
    )


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from leaves(value, (*path, str(name)))
    elif isinstance(tree, list):
        for value in tree:
            yield from leaves(value, path)
    else:
        yield path, tree


def environments(recipe: Recipe) -> Iterator[dict[str, Any]]:
    for group in recipe.ray_groups:
        for container in group["template"]["spec"]["containers"]:
            yield from container.get("env", [])
