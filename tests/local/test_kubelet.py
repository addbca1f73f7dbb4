"""KWOK plays the kubelet: bound Pods run, deleted Pods vanish, and only what says so completes."""

from typing import Any

import pytest

from extender.api import Api
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

COMPLETES = {"pod-complete.stage.kwok.x-k8s.io/delay": "200ms"}


def pod(name: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": pod_spec()}


def pod_spec() -> dict[str, Any]:
    return {
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "prepare", "image": "i"},
            {"name": "sidecar", "image": "i", "restartPolicy": "Always"},
        ],
        "containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
    }


async def reaches(api: Api, path: str, phase: str) -> dict[str, Any]:
    async def there() -> bool:
        return bool((await api.get(path) or {})["status"]["phase"] == phase)

    await eventually(there)
    return await api.get(path) or {}


async def test_a_pod_runs_and_is_ready_once_the_stock_scheduler_has_bound_it(
    api: Api, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(pods, pod("one"))
    running = await reaches(api, f"{pods}/one", "Running")
    conditions = {c["type"]: c["status"] for c in running["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert running["spec"]["nodeName"].startswith("c0")
    assert running["status"]["podIP"].startswith("10.")
    assert [c["ready"] for c in running["status"]["containerStatuses"]] == [True]


async def test_a_deleted_pod_vanishes_at_once_although_it_had_a_grace_period(
    api: Api, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(pods, pod("one"))
    await reaches(api, f"{pods}/one", "Running")
    await api.delete(f"{pods}/one", {"gracePeriodSeconds": 30})

    async def gone() -> bool:
        return await api.get(f"{pods}/one") is None

    await eventually(gone, within=10)


async def test_a_pod_completes_only_if_it_says_when(api: Api, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(pods, pod("silent"))
    await api.create(pods, pod("told", COMPLETES))
    await reaches(api, f"{pods}/silent", "Running")
    await reaches(api, f"{pods}/told", "Succeeded")
    assert (await api.get(f"{pods}/silent") or {})["status"]["phase"] == "Running"


async def test_a_job_is_complete_when_its_pods_are(api: Api, namespace: str) -> None:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {"metadata": {"annotations": COMPLETES}, "spec": pod_spec()}
    spec = {"parallelism": 2, "completions": 2, "template": template}
    await api.create(jobs, {"metadata": {"name": "job"}, "spec": spec})

    async def complete() -> bool:
        return bool((await api.get(f"{jobs}/job") or {})["status"].get("succeeded") == 2)

    await eventually(complete)
