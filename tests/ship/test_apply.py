"""`kubectl apply -k` on a cluster that knows nothing of us, once and again."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from certs import issue
from extender.api import JSON_PATCH, Api, ApiError
from tests.ship.conftest import MANIFESTS, NAMESPACE, Kubectl
from tests.waiting import eventually

REGISTRATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-allaboard"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/allaboard-webhook-certificates"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@pytest.mark.cluster
async def test_one_apply_on_an_empty_cluster_makes_everything_and_its_pods_are_admitted(
    applied: str, api: Api
) -> None:
    lines = applied.splitlines()
    assert len(lines) == 48
    assert [line for line in lines if not line.endswith(" created")] == []

    async def all_run() -> bool:
        found = (await api.get(DEPLOYMENTS) or {})["items"]
        return {d["metadata"]["name"]: d["status"].get("readyReplicas") for d in found} == {
            "allaboard-scheduler": 2,
            "allaboard-webhook": 2,
        }

    await eventually(all_run, within=60)


@pytest.mark.cluster
async def test_the_namespace_takes_no_pod_that_asks_for_more_than_ours_do(applied: str, api: Api) -> None:
    pod = {"metadata": {"name": "root"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        await api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod, {"dryRun": "All"})


@pytest.mark.cluster
async def test_applying_again_keeps_what_the_webhook_has_written(
    applied: str, api: Api, kubectl: Kubectl
) -> None:
    key = b64encode(b"key").decode()
    bundle = b64encode(_authority()).decode()
    await api.patch(SECRET, {"data": {"ca.key": key}})
    operations = [
        {"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": bundle} for i in range(4)
    ]
    await api.patch(REGISTRATION, operations, JSON_PATCH)
    before = _versions(kubectl)
    kubectl("apply", "-k", str(MANIFESTS / "base"))
    assert _versions(kubectl) == before
    assert (await _get(api, SECRET))["data"] == {"ca.key": key}
    entries = (await _get(api, REGISTRATION))["webhooks"]
    assert {entry["clientConfig"]["caBundle"] for entry in entries} == {bundle}


@pytest.mark.cluster
@pytest.mark.parametrize("overlay", ["base", "overlays/kind", "overlays/nvcf"])
async def test_the_api_server_validates_every_object_strictly(
    overlay: str, api: Api, kubectl: Kubectl
) -> None:
    rendered = [obj for obj in yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / overlay))) if obj]
    there = await api.get(f"/api/v1/namespaces/{NAMESPACE}") is not None
    # A namespace that isn't there can't take objects, even to try.
    tried = [o for o in rendered if there or "namespace" not in o["metadata"]]
    dry_run = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    kubectl(*dry_run, stdin=yaml.safe_dump_all(tried))
    with pytest.raises(AssertionError, match="unknown field"):
        kubectl(*dry_run, stdin=yaml.safe_dump(_misspelt(tried)))


def _misspelt(objects: list[dict[str, Any]]) -> dict[str, Any]:
    found = next(o for o in objects if o["kind"] == "MutatingWebhookConfiguration")
    return {**found, "webhook": []}


def _versions(kubectl: Kubectl) -> dict[tuple[str, str], str]:
    """Of everything that we ship; generation where there is one, as it doesn't count changes of status."""
    items = json.loads(kubectl("get", "-k", str(MANIFESTS / "base"), "-o", "json"))["items"]
    metas = [(obj["kind"], obj["metadata"]) for obj in items]
    return {(kind, m["name"]): str(m.get("generation") or m["resourceVersion"]) for kind, m in metas}


def _authority() -> bytes:
    return issue.new_ca(datetime.now(UTC)).certificate


async def _get(api: Api, path: str) -> dict[str, Any]:
    found = await api.get(path)
    assert found is not None, path
    return found
