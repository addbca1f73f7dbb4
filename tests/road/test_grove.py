"""What the real Grove operator made, replayed in its order on the real kube-scheduler.

With Grove's default-scheduler backend the required domain is accepted and then ignored: the capture shows
eight Pods in eight cliques. Here they board one.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from allaboard.manifests import Manifest
from allaboard.translate import dynamo
from allaboard.translate import grove as translated
from e2e.kube import Kube, until
from e2e.pods import container, pod
from e2e.scene import Play
from tests import grove
from tests.e2e.conftest import playing
from tests.road.standin import StandIn

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_CRDS: Final = Path(__file__).parent / "grove.yaml"
_NAMESPACE: Final = "grove"
_STOCK: Final = "grove-stock"
_GRAPH: Final = """
kind: DynamoGraphDeployment
metadata: {name: dgd}
spec:
  topologyConstraint: {clusterTopologyName: mnnvl}
  services:
    Frontend: {replicas: 1, extraPodSpec: {mainContainer: {image: "registry.invalid/vllm:1"}}}
    Prefill:
      replicas: 4
      topologyConstraint: {packDomain: clique}
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {mainContainer: {image: "registry.invalid/vllm:1"}}
    Decode:
      replicas: 2
      multinode: {nodeCount: 3}
      topologyConstraint: {packDomain: clique}
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {mainContainer: {image: "registry.invalid/vllm:1"}}
"""
_FREE: Final = 3  # nodes of the first clique; all of the second are free


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def play(cluster: Cluster) -> AsyncIterator[Play]:
    """Grove's kinds are there before Allaboard starts; three nodes are free in one clique, all in another."""
    kube = Kube(cluster.kubeconfig, str(find("kubectl")))
    await kube.run("apply", "-f", str(_CRDS))
    await kube.run("wait", "--for=condition=Established", "--timeout=30s", "-f", str(_CRDS))
    async with playing(cluster) as (stage, observer):
        few, many, *full = stage.nodes
        await kube.namespace(_NAMESPACE)
        await kube.namespace(_STOCK, {"allaboard.dev/webhook": "ignore"})
        await stage.occupy("others", [*few[_FREE:], *(node for rack in full for node in rack)])
        await kube.apply("others", [_agent(node) for node in many])
        yield Play(stage, observer, lambda _: None)
        await kube.clear(_NAMESPACE, _STOCK, "others")
        await kube.run("delete", "podgangs", "-A", "--all")


@pytest_asyncio.fixture(loop_scope="module")
async def operator(play: Play, request: pytest.FixtureRequest) -> AsyncIterator[StandIn]:
    """Grove for the capture that the test names; what it made is gone afterwards."""
    standin = StandIn.of(play.stage.kube, _NAMESPACE, request.param)
    yield standin
    await standin.remove()


def _agent(node: str) -> Json:
    half = container(resources={"requests": {"cpu": "36"}})
    return pod(f"agent-{node}", nodeName=node, containers=[half])


def _cliques(play: Play, podgang: str, service: str = "") -> Counter[str]:
    """Where the PodGang's bound Pods with GPUs are; service: only those whose names begin so."""
    snapshot = play.observer.snapshot()
    nodes = [
        p["spec"]["nodeName"]
        for p in snapshot.pods.values()
        if p["metadata"]["namespace"] == _NAMESPACE
        and p["metadata"]["labels"].get("grove.io/podgang") == podgang
        and p["spec"].get("nodeName")
        and p["metadata"]["name"].startswith(service)
        and "limits" in p["spec"]["containers"][0]["resources"]
    ]
    return Counter(snapshot.nodes[node]["metadata"]["labels"]["nvidia.com/gpu.clique"] for node in nodes)


async def test_without_allaboard_the_required_domain_is_ignored(play: Play) -> None:
    standin = StandIn.of(play.stage.kube, _STOCK, "default")
    await standin.create()
    await standin.fill()
    await standin.ungate("pcs-default-0")

    async def scattered() -> bool:
        return sum(play.where(_STOCK).values()) == 8

    await until(scattered, "kube-scheduler alone binds all eight")
    assert len(play.where(_STOCK)) > 1
    await standin.remove()


@pytest.mark.parametrize("operator", ["default", "kai"], indirect=True)
async def test_a_podcliqueset_boards_one_clique_whichever_of_groves_schedulers_it_names(
    play: Play, operator: StandIn
) -> None:
    (podgang,) = operator.names
    await operator.create()
    await operator.fill()
    await operator.ungate(podgang, [f"{podgang}-decode"])
    assert play.where(_NAMESPACE) == {}
    await operator.initialize(podgang)
    await operator.ungate(podgang)
    await play.bound(_NAMESPACE, 8)
    assert play.where(_NAMESPACE) == {"c0001": 8}
    play.clean(_NAMESPACE)


@pytest.mark.parametrize("operator", ["default"], indirect=True)
async def test_nobody_boards_while_one_podclique_lacks_its_floor_however_many_of_the_other_are_here(
    play: Play, operator: StandIn
) -> None:
    await operator.create()
    await operator.fill()
    await operator.ungate("pcs-default-0", ["pcs-default-0-prefill"])
    named = [p["metadata"]["name"] for p in grove.pods("default") if "prefill" in p["metadata"]["name"]]
    message = await play.waiting(_NAMESPACE, "GangGathering", named[0])
    assert "4 of 6 members are here; subgroup pcs-default-0-decode has 0 of 2" in message
    assert "4 Pods held by scheduling gate grove.io/podgang-pending-creation" in message
    assert play.where(_NAMESPACE) == {}
    await operator.ungate("pcs-default-0")
    await play.bound(_NAMESPACE, 8)
    play.clean(_NAMESPACE)


@pytest.mark.parametrize("operator", ["pcsg"], indirect=True)
async def test_scaled_gangs_board_after_their_base_each_whole_in_a_clique_of_its_own(
    play: Play, operator: StandIn
) -> None:
    base, *scaled = operator.names
    await operator.create()
    await operator.fill()
    for podgang in (base, *scaled):
        await operator.initialize(podgang)
    # Grove would not ungate these yet; we don't rely on it.
    for podgang in scaled:
        await operator.ungate(podgang)
    waiting = next(
        p["metadata"]["name"]
        for p in grove.pods("pcsg")
        if p["metadata"]["labels"]["grove.io/podgang"] in scaled
    )
    message = await play.waiting(_NAMESPACE, "GangFollowing", waiting)
    assert f"boards once gang {_NAMESPACE}/{base}-" in message
    assert play.where(_NAMESPACE) == {}
    await operator.ungate(base)
    await play.bound(_NAMESPACE, 13)
    assert await operator.scheduled(base)
    for podgang in (base, *scaled):
        assert list(_cliques(play, podgang).values()) == [4]
    play.clean(_NAMESPACE)


@pytest.mark.parametrize("operator", ["kai"], indirect=True)
async def test_the_podgang_says_what_became_of_it_also_after_grove_has_put_its_status_back(
    play: Play, operator: StandIn
) -> None:
    podgang = "pcs-kai-0"
    await operator.create()
    await operator.fill()
    await operator.ungate(podgang)
    await play.bound(_NAMESPACE, 8)
    assert {row["type"] for row in (await operator.status(podgang))["conditions"]} == {"Initialized"}

    async def running() -> bool:
        status = await operator.status(podgang)
        held = {row["type"] for row in status["conditions"] if row["status"] == "True"}
        return status["phase"] == "Running" and held == {"Initialized", "Scheduled", "Ready"}

    for _ in range(2):
        await operator.initialize(podgang)
        await until(running, "the PodGang is Running, Scheduled and Ready, and still Initialized")
    assert (await operator.status(podgang))["placementScore"] == 1


async def test_a_graph_of_dynamos_boards_whole_each_service_in_the_domain_that_it_asks_for(
    play: Play,
) -> None:
    gangs, pods = _graph()
    standin = StandIn(play.stage.kube, _NAMESPACE, gangs, pods)
    base, scaled = standin.names
    await standin.create()
    await standin.fill()
    for podgang in (base, scaled):
        await standin.initialize(podgang)
        await standin.ungate(podgang)
    await play.bound(_NAMESPACE, len(pods))
    # The leader and its two workers of a replica are together; four prefill workers are, too.
    assert _cliques(play, scaled).total() == 3
    assert len(_cliques(play, scaled)) == 1
    for service in ("dgd-0-decode-0", "dgd-0-prefill"):
        assert len(_cliques(play, base, service)) == 1
    play.clean(_NAMESPACE)
    await standin.remove()


async def test_minima_go_before_surplus_in_the_order_that_groves_own_tests_expect(play: Play) -> None:
    """GS5 and GS7: one of each PodClique in the room for three, then the scaled gang's minimum."""
    numbers = {"pc-a": 2, "pc-b": 1, "pc-c": 3}
    standin = StandIn(play.stage.kube, _NAMESPACE, *_made(_workload(numbers), numbers))
    base, scaled = standin.names
    many = [f"fill-{node}" for node in play.stage.nodes[1]]
    await play.stage.kube.apply("others", [pod(name, nodeName=name.removeprefix("fill-")) for name in many])
    await standin.create()
    await standin.fill()
    for podgang in (base, scaled):
        await standin.initialize(podgang)
        await standin.ungate(podgang)
    await play.bound(_NAMESPACE, _FREE)
    assert _bound(play) == ["pc-a", "pc-b", "pc-c"]
    await play.stage.kube.run("-n", "others", "delete", "pod", *many[:2], "--force", "--grace-period=0")
    await play.bound(_NAMESPACE, _FREE + 2)
    assert _bound(play, scaled) == ["pc-b", "pc-c"]
    await play.stage.kube.run("-n", "others", "delete", "pod", *many[2:], "--force", "--grace-period=0")
    await play.bound(_NAMESPACE, len(standin.pods))
    play.clean(_NAMESPACE)
    await standin.remove()


def _workload(numbers: Mapping[str, int]) -> Manifest:
    """So many Pods of each PodClique, one of which is enough; two replicas of pc-b and pc-c."""
    cliques = [
        {"name": name, "spec": {"replicas": n, "minAvailable": 1, "podSpec": {"containers": [container()]}}}
        for name, n in numbers.items()
    ]
    group = {"name": "sg", "cliqueNames": ["pc-b", "pc-c"], "replicas": 2, "minAvailable": 1}
    template = {"cliques": cliques, "podCliqueScalingGroups": [group]}
    body = {"kind": "PodCliqueSet", "metadata": {"name": "wl"}, "spec": {"template": template}}
    return Manifest("set.yaml", body)


def _bound(play: Play, podgang: str = "") -> list[str]:
    """The PodCliques of the bound Pods, by the names in their templates."""
    pods = (p for p in play.observer.snapshot().pods.values() if p["spec"].get("nodeName"))
    mine = (p["metadata"] for p in pods if p["metadata"]["namespace"] == _NAMESPACE)
    names = (m["name"] for m in mine if podgang in ("", m["labels"]["grove.io/podgang"]))
    return sorted(name[-6:-2] for name in names)


def _graph() -> tuple[list[Json], list[Json]]:
    """PodGangs and Pods of a frontend, four prefill workers and two decoders of three nodes each."""
    graph = Manifest("graph.yaml", yaml.safe_load(_GRAPH))
    return _made(dynamo.podcliqueset_of(graph), {"prefill": 4, "wkr": 2})


def _made(podcliqueset: Manifest, numbers: Mapping[str, int]) -> tuple[list[Json], list[Json]]:
    """Its PodGangs, and as many Pods of each PodClique as numbers says by the end of its name, else one."""
    binding = Manifest("binding.yaml", grove.captured("grove-clustertopologybinding")[0])
    made = [m.body for m in translated.made_of(podcliqueset, [binding])]
    pods = [
        {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name'][:-1]}{i}"}}
        for pod in made
        if pod["kind"] == "Pod"
        for i in range(
            next((n for end, n in numbers.items() if pod["metadata"]["name"][:-2].endswith(end)), 1)
        )
    ]
    return [gang for gang in made if gang["kind"] == "PodGang"], pods
