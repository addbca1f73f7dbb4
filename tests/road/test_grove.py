"""What the real Grove operator made, replayed in its order on the real kube-scheduler.

With Grove's default-scheduler backend the required domain is accepted and then ignored: the capture shows
eight Pods in eight cliques. Here they board one.
"""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
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
    standin = StandIn(play.stage.kube, _NAMESPACE, request.param)
    yield standin
    await standin.remove()


def _agent(node: str) -> Json:
    half = container(resources={"requests": {"cpu": "36"}})
    return pod(f"agent-{node}", nodeName=node, containers=[half])


def _cliques(play: Play, podgang: str) -> Counter[str]:
    """Where the PodGang's bound Pods with GPUs are."""
    snapshot = play.observer.snapshot()
    nodes = [
        p["spec"]["nodeName"]
        for p in snapshot.pods.values()
        if p["metadata"]["namespace"] == _NAMESPACE
        and p["metadata"]["labels"].get("grove.io/podgang") == podgang
        and p["spec"].get("nodeName")
        and "limits" in p["spec"]["containers"][0]["resources"]
    ]
    return Counter(snapshot.nodes[node]["metadata"]["labels"]["nvidia.com/gpu.clique"] for node in nodes)


async def test_without_allaboard_the_required_domain_is_ignored(play: Play) -> None:
    standin = StandIn(play.stage.kube, _STOCK, "default")
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
    podgang = f"pcs-{operator.capture}-0"
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
    base, *scaled = (gang["metadata"]["name"] for gang in grove.podgangs("pcsg"))
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
