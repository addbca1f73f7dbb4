"""Who may write /plan: the extender alone (ValidatingAdmissionPolicy, on the real API server)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from allaboard.local.cluster import Cluster
from extender.api import Api, ApiError, connect
from tests.ship.conftest import NAMESPACE
from tests.ship.tokens import as_service_account
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

PLAN = "allaboard.dev/plan"
POD = {"spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "registry.invalid/c:0"}]}}


@pytest.fixture
async def tenant(applied: str, cluster: Cluster, api: Api, namespace: str) -> AsyncIterator[Api]:
    """Somebody who may do in his namespace whatever Kubernetes' role "admin" allows, and write status."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    status = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}
    await api.create(f"{roles}/roles", {"metadata": {"name": "status"}, "rules": [status]})
    for kind, name in (("ClusterRole", "admin"), ("Role", "status")):
        await api.create(f"{roles}/rolebindings", _binding(kind, name, namespace))
    async with _as(cluster, api, namespace, "default") as client:
        yield client


@pytest.fixture
async def extender(applied: str, cluster: Cluster, api: Api) -> AsyncIterator[Api]:
    async with _as(cluster, api, NAMESPACE, "allaboard-scheduler") as client:
        yield client


@asynccontextmanager
async def _as(cluster: Cluster, api: Api, namespace: str, account: str) -> AsyncIterator[Api]:
    client = await connect(await as_service_account(cluster, api, namespace, account))
    try:
        yield client
    finally:
        await client.close()


def _binding(kind: str, name: str, namespace: str) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    return {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}


def annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {PLAN: value}}}


async def test_a_tenant_can_neither_write_nor_change_nor_remove_a_plan_and_the_extender_can(
    tenant: Api, extender: Api, api: Api, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = f"{pods}/p"
    await tenant.create(pods, {**POD, "metadata": {"name": "p"}})

    async def refused(path: str, value: str | None) -> bool:
        try:
            await tenant.patch(path, annotated(value))
        except ApiError as error:
            said = f"pod {namespace}/p: annotation {PLAN} is written by Allaboard alone"
            return error.status == 403 and said in error.message
        return False

    # API servers hear of a new policy a moment later; another value each time, as one that stays may.
    await eventually(lambda: refused(pod, uuid4().hex))
    assert await refused(f"{pod}/status", "forged")
    await extender.patch(pod, annotated("granted"))
    for value in ("forged", "", None):
        assert await refused(pod, value)
        assert await refused(f"{pod}/status", value)
    await tenant.patch(pod, {"metadata": {"labels": {"a": "b"}}})
    await extender.patch(pod, annotated(None))


async def test_an_exported_manifest_with_a_plan_in_it_can_be_applied(tenant: Api, namespace: str) -> None:
    meta = {"name": "exported", **annotated("old")["metadata"]}
    await tenant.create(f"/api/v1/namespaces/{namespace}/pods", {**POD, "metadata": meta})


async def test_without_the_policy_a_tenant_could(tenant: Api, api: Api, namespace: str) -> None:
    """The negative control: it is the policy that stops him, and nothing else."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await tenant.create(pods, {**POD, "metadata": {"name": "p"}})
    bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    kept = await api.get(f"{bindings}/allaboard-plan")
    assert kept is not None
    await api.delete(f"{bindings}/allaboard-plan")

    async def written() -> bool:
        try:
            await tenant.patch(f"{pods}/p", annotated("forged"))
        except ApiError:
            return False
        return True

    try:
        await eventually(written)
    finally:
        del kept["metadata"]["resourceVersion"]
        await api.create(bindings, kept)


@pytest.mark.parametrize("part", ["binding", "status"])
async def test_the_role_admin_lets_nobody_bind_pods_or_nominate_nodes(
    applied: str, cluster: Cluster, api: Api, namespace: str, part: str
) -> None:
    """By a Binding a plan could be written past the policy, by a nomination room be blocked."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    await api.create(path, _binding("ClusterRole", "admin", namespace))
    async with _as(cluster, api, namespace, "default") as tenant:
        review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

        async def may(verb: str, **attributes: str) -> bool:
            spec = {"resourceAttributes": {"verb": verb, "namespace": namespace, **attributes}}
            return bool((await tenant.create(review, {"spec": spec}))["status"]["allowed"])

        await eventually(lambda: may("create", resource="pods"))
        for verb in ("create", "update", "patch"):
            assert not await may(verb, resource="pods", subresource=part)
