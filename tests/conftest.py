"""Shared fixtures: one real control plane for the whole run, a client, and a namespace per test.

    cluster (session) ──► api (per test) ──► namespace (per test, emptied afterwards)

The cluster has its own state folder, so a run neither sees nor disturbs the user's clusters. A test
that uses it carries the marker: `pytest -m "not cluster"` runs all others.
"""

import signal
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster, down, up
from allaboard.local.nodes import Fleet
from allaboard.local.tools import TOOLS
from extender.api import Api, connect
from tests.waiting import eventually

# Racks of full size, and a few nodes that are no part of any.
FLEET = Fleet(cliques=4, nodes_per_clique=18, gpus=4, plain=2)

_OWNERS = (
    "apis/apps/v1/{}/deployments",
    "apis/apps/v1/{}/statefulsets",
    "apis/apps/v1/{}/replicasets",
    "apis/batch/v1/{}/jobs",
)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster with the stock kube-scheduler and the nodes of FLEET."""
    for tool in TOOLS:
        find(tool)  # building takes minutes: `make test` does it before, with progress
    before = signal.signal(signal.SIGTERM, _as_ctrl_c)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        try:
            yield up("tests", fleet=FLEET)
        finally:
            down("tests")
            signal.signal(signal.SIGTERM, before)


def _as_ctrl_c(_number: int, _frame: object) -> None:
    # pytest tears fixtures down after Ctrl-C, but a plain SIGTERM would leave the cluster running.
    raise KeyboardInterrupt


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[Api]:
    """A client of the cluster."""
    client = await connect(cluster.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """A fresh namespace that takes Pods; afterwards its Pods are gone, and with them their GPUs free."""
    name = f"test-{uuid4().hex[:8]}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name}})

    async def takes_pods() -> bool:
        return await api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default") is not None

    await eventually(takes_pods)
    yield name
    await _empty(api, name)
    await api.delete(f"/api/v1/namespaces/{name}")


async def _empty(api: Api, namespace: str) -> None:
    for owner in _OWNERS:
        path = "/" + owner.format(f"namespaces/{namespace}")
        await api.delete(path, {"propagationPolicy": "Background"})
    pods = f"/api/v1/namespaces/{namespace}/pods"

    async def no_pods_left() -> bool:
        # Again and again: a controller may still add one before it sees that its owner is gone.
        await api.delete(pods, {"gracePeriodSeconds": 0})
        return not (await api.get(pods) or {}).get("items")

    await eventually(no_pods_left, within=30)
