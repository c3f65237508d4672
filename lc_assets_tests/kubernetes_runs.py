"""The Kubernetes job of a run, built by dagster-k8s from what Dagster's chart makes of the recipe's
values. No cluster is contacted.
"""

from typing import Any

import pytest

from lc_assets_tests.kubernetes_recipe import Recipe


def job_of_a_run(recipe: Recipe) -> dict[str, Any]:
    """What would be sent to Kubernetes, as plain values; skipped where dagster-k8s is not
    installed.
    """
    pytest.importorskip("dagster_k8s")
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import (
        DagsterK8sJobConfig,
        UserDefinedDagsterK8sConfig,
        construct_dagster_k8s_job,
    )
    from kubernetes.client import ApiClient

    said = K8sContainerContext(
        run_k8s_config=UserDefinedDagsterK8sConfig.from_dict(
            snake_case(recipe.launcher["runK8sConfig"])
        )
    )
    context = said.merge(K8sContainerContext.create_from_config({"k8s": context_of(recipe)}))
    image = recipe.location["image"]
    home, secret = (
        recipe.values["global"]["dagsterHome"],
        recipe.values["global"]["postgresqlSecretName"],
    )
    config = DagsterK8sJobConfig(
        job_image=f"{image['repository']}:{image['tag']}",
        dagster_home=home,
        instance_config_map="dagster-instance",
        postgres_password_secret=secret,
    )
    job = construct_dagster_k8s_job(
        config,
        ["dagster", "api", "execute_run"],
        "run",
        context.run_k8s_config,
        component="run_worker",
    )
    made: dict[str, Any] = ApiClient().sanitize_for_serialization(job)
    return {"apiVersion": "batch/v1", "kind": "Job", **made}


def context_of(recipe: Recipe) -> dict[str, Any]:
    """The configuration that the chart's user deployment passes to its runs: `k8sContainerContext`
    of its templates.
    """
    location = recipe.location
    return {
        "image_pull_policy": location["image"]["pullPolicy"],
        "env_config_maps": [one["name"] for one in location["envConfigMaps"]],
        "volume_mounts": location["volumeMounts"],
        "volumes": location["volumes"],
        "namespace": "lc",
        "service_account_name": recipe.values["global"]["serviceAccountName"],
        "run_k8s_config": {"pod_spec_config": {"automount_service_account_token": True}},
    } | ({"resources": location["resources"]} if "resources" in location else {})


def snake_case(config: dict[str, Any]) -> dict[str, Any]:
    """The chart's names of its first level, in the launcher's spelling."""
    return {
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): value
        for name, value in config.items()
    }
