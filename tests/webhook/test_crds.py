"""KAI's kinds as we install them take the objects that people have."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.api import Api, ApiError
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
QUEUES = "/apis/scheduling.run.ai/v2/queues"
PODGROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"
DRY_RUN = {"dryRun": "All"}
CLIQUE, HOSTNAME = "nvidia.com/gpu.clique", "kubernetes.io/hostname"


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / path).read_text()))


@pytest.fixture
async def kinds(api: Api) -> Api:
    """An API server with our three definitions. They stay: a kind that nobody uses disturbs no other test."""
    for path in sorted((ROOT / "manifests" / "crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text())
        if await api.get(f"{CRDS}/{crd['metadata']['name']}") is None:
            await api.create(CRDS, crd)

    async def served() -> bool:
        try:
            found = [await api.get(path) for path in (TOPOLOGIES, QUEUES, PODGROUPS.format("default"))]
        except ApiError:  # a new kind answers 429 at first
            return False
        return None not in found

    await eventually(served)
    return api


@pytest.mark.cluster
async def test_objects_that_people_have_are_taken(kinds: Api) -> None:
    for path in ("examples/kai-topology.yaml", "manifests/defaults/topology.yaml"):
        [found] = documents(path)
        found["metadata"]["name"] = "taken"
        await kinds.create(TOPOLOGIES, found, DRY_RUN)
    for path in ("examples/kai-queues.yaml", "manifests/defaults/queues.yaml"):
        for queue in documents(path):
            queue["metadata"]["name"] += "-taken"
            stored = await kinds.create(QUEUES, queue, DRY_RUN)
            assert stored["spec"] == queue["spec"]
    for path in ("kai/kai-podgroup-sts-parallel.yaml", "grove/pcsg-kai-podgroup.yaml"):
        [listing] = documents(f"tests/fixtures/{path}")
        for group in listing.get("items", [listing]):
            group["metadata"] = {"name": "taken"}
            stored = await kinds.create(PODGROUPS.format("default"), group, DRY_RUN)
            assert stored["spec"] == group["spec"]


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([HOSTNAME, CLIQUE], "kubernetes.io/hostname can only be the last level"),
        ([CLIQUE, CLIQUE], "the levels' node labels must be unique"),
        ([], "should have at least 1 items"),
        (["no key"], "spec.levels[0].nodeLabel"),
    ],
)
async def test_a_topology_that_makes_no_sense_is_refused(kinds: Api, levels: list[str], said: str) -> None:
    with pytest.raises(ApiError, match="invalid") as refusal:
        await kinds.create(TOPOLOGIES, topology("bad", levels), DRY_RUN)
    assert said in refusal.value.message


@pytest.mark.cluster
async def test_levels_of_a_topology_stay_but_their_aliases_may_change(kinds: Api) -> None:
    await kinds.create(TOPOLOGIES, topology("stays", [CLIQUE, HOSTNAME]))
    path = f"{TOPOLOGIES}/stays"
    try:
        aliased = {"spec": {"levels": [{"nodeLabel": CLIQUE, "alias": "rack"}, {"nodeLabel": HOSTNAME}]}}
        await kinds.patch(path, aliased)
        with pytest.raises(ApiError, match="immutable"):
            await kinds.patch(path, {"spec": {"levels": [{"nodeLabel": CLIQUE}]}})
    finally:
        await kinds.delete(path)


def topology(name: str, levels: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }
