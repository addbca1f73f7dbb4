"""The road of a gang where something is in the way, on the real control plane.

Every test ends with the checker's word: no promise was broken.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e import slow
from e2e.kube import Kube, until
from e2e.observer import Observer
from e2e.pods import HOSTNAME, container, member
from e2e.scene import Play, statefulset
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "road"
_OTHERS: Final = {"namespaces": ["others"]}


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards nothing is left and the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE, "others")


def _members(count: int, **spec: Any) -> list[Json]:
    return [_member(i, count, **spec) for i in range(count)]


def _member(index: int, floor: int, ports: list[Json] | None = None, **spec: Any) -> Json:
    return member(f"rank-{index}", "ranks", floor, containers=[container(ports=ports or [])], **spec)


async def _nodes(kube: Kube) -> dict[str, str]:
    pods = await kube.items("pods", _NAMESPACE)
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in pods}


async def test_nodes_that_kube_scheduler_refuses_are_avoided(play: Play) -> None:
    """On two nodes of every clique sits somebody whom the members shun: nothing that our planner knows of."""
    kube = play.stage.kube
    shunned = [node for rack in play.stage.nodes for node in rack[:2]]
    await kube.apply("others", [_web(node) for node in shunned])
    web = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaces": ["others"],
        "topologyKey": HOSTNAME,
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [web]}}
    await kube.apply(_NAMESPACE, _members(8, affinity=apart))
    await play.bound(_NAMESPACE, 8)
    assert not set((await _nodes(kube)).values()) & set(shunned)


async def test_nodes_on_which_a_host_port_is_taken_are_never_planned(play: Play) -> None:
    kube, port = play.stage.kube, [{"containerPort": 80, "hostPort": 8080}]
    taken = [node for rack in play.stage.nodes for node in rack[:2]]
    await kube.apply("others", [_web(node, port) for node in taken])
    await kube.apply(_NAMESPACE, _members(8, ports=port))
    await play.bound(_NAMESPACE, 8)
    assert not set((await _nodes(kube)).values()) & set(taken)
    events = await kube.items("events", _NAMESPACE)
    assert not [e for e in events if e["reason"] == "FailedScheduling" and "ports" in e["message"]]


def _web(node: str, ports: list[Json] | None = None) -> Json:
    container = {"name": "web", "image": "registry.invalid/web:1", "ports": ports or []}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    meta = {"name": f"web-{node}", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def test_a_node_cordoned_during_the_boarding_is_replaced_at_once(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_NAMESPACE, slow.gang(4))
    await slow.at_the_barrier(kube, _NAMESPACE)
    unfit = await _nominated(kube, "rank-1")
    try:
        await kube.run("cordon", unfit)
        await slow.provide(kube, _NAMESPACE)
        await play.bound(_NAMESPACE, 4, seconds=40)
        assert unfit not in (await _nodes(kube)).values()
    finally:
        await kube.run("uncordon", unfit)
        await slow.clear(kube, _NAMESPACE)


async def test_a_gang_whose_boarding_was_cancelled_follows_the_volume_of_its_member(play: Play) -> None:
    """Its node was chosen for the volume, so kube-scheduler refuses that member every other one."""
    kube, stage = play.stage.kube, play.stage
    await kube.apply(_NAMESPACE, slow.gang(4))
    await slow.at_the_barrier(kube, _NAMESPACE)
    tied, unfit = [await _nominated(kube, name) for name in ("rank-0", "rank-1")]
    home = next(rack for rack in stage.nodes if tied in rack)
    other = next(rack for rack in stage.nodes if tied not in rack)
    try:
        # Room for the gang in both cliques, and less in the other: that one would be chosen.
        await stage.occupy("others", other[4:])
        await kube.run("cordon", unfit)

        planned: list[str] = []

        async def planned_anew() -> bool:
            planned.append(await _nominated(kube, "rank-1"))
            return planned[-1] not in ("", unfit)

        await until(planned_anew, "rank-1 has another node")
        assert planned[-1] in home
        await slow.at_the_barrier(kube, _NAMESPACE)
        await slow.provide(kube, _NAMESPACE)
        await play.bound(_NAMESPACE, 4, seconds=40)
        where = await _nodes(kube)
        assert where["rank-0"] == tied
        assert set(where.values()) <= set(home) - {unfit}
    finally:
        await kube.run("uncordon", unfit)
        await slow.clear(kube, _NAMESPACE)


async def _nominated(kube: Kube, name: str) -> str:
    (pod,) = [p for p in await kube.items("pods", _NAMESPACE) if p["metadata"]["name"] == name]
    return str(pod["status"].get("nominatedNodeName", ""))


async def test_members_that_slipped_past_the_webhook_are_held_without_a_gate(play: Play) -> None:
    """No gate: the guard refuses them until the last one is there, then all board."""
    kube = play.stage.kube
    members = _members(4)
    for row in members:
        row["metadata"]["labels"]["allaboard.dev/webhook"] = "ignore"
    await kube.apply(_NAMESPACE, members[:3])
    message = await play.waiting(_NAMESPACE, "GangGathering", "rank-0")
    assert "3 of 4 members are here; waiting for 1 more Pod to be created" in message
    assert set((await _nodes(kube)).values()) == {""}
    await kube.apply(_NAMESPACE, members[3:])
    await play.bound(_NAMESPACE, 4)


async def test_a_foreign_gate_keeps_its_member_away_until_it_falls(play: Play) -> None:
    kube = play.stage.kube
    members = _members(2)
    members[1]["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    await kube.apply(_NAMESPACE, members)
    message = await play.waiting(_NAMESPACE, "GangGathering", "rank-0")
    assert "1 Pod held by scheduling gate example.com/quota" in message
    patch = '[{"op": "test", "path": "/spec/schedulingGates/0/name", "value": "example.com/quota"}, '
    patch += '{"op": "remove", "path": "/spec/schedulingGates/0"}]'
    await kube.run("-n", _NAMESPACE, "patch", "pod", "rank-1", "--type=json", "-p", patch)
    await play.bound(_NAMESPACE, 2)


async def test_a_replacement_boards_singly_in_the_domain_of_its_gang(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_NAMESPACE, statefulset("llm", 3))
    await play.bound(_NAMESPACE, 3)
    (home,) = play.where(_NAMESPACE)
    before = {p["metadata"]["uid"] for p in await kube.items("pods", _NAMESPACE)}
    await kube.run("-n", _NAMESPACE, "delete", "pod", "llm-1", "--wait=false")

    async def replaced() -> bool:
        pods = await kube.items("pods", _NAMESPACE)
        return len(pods) == 3 and {p["metadata"]["uid"] for p in pods} != before

    await until(replaced, "the StatefulSet has made llm-1 anew")
    await play.bound(_NAMESPACE, 3)
    assert play.where(_NAMESPACE) == {home: 3}


async def test_a_gang_scaled_down_while_it_waits_boards_with_those_who_are_left(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_NAMESPACE, statefulset("llm", 19))  # a rack has 18 nodes
    message = await play.waiting(_NAMESPACE, "GangWaiting", "llm-0")
    assert "needs 19 free nodes" in message
    await kube.run("-n", _NAMESPACE, "scale", "statefulset", "llm", "--replicas=18")
    await play.bound(_NAMESPACE, 18)


async def test_a_topology_that_is_created_later_lifts_the_wait(play: Play) -> None:
    kube = play.stage.kube
    gang = statefulset("llm", 2)
    gang["metadata"]["annotations"]["kai.scheduler/topology"] = "later"
    await kube.apply(_NAMESPACE, gang)
    message = await play.waiting(_NAMESPACE, "GangHeld", "llm-0")
    for fact in (f"statefulset {_NAMESPACE}/llm", "kai.scheduler/topology", '"later"', "nvcf-mnnvl-topology"):
        assert fact in message
    assert set((await _nodes(kube)).values()) == {""}
    levels = [{"nodeLabel": "nvidia.com/gpu.clique"}]
    topology = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "later"},
        "spec": {"levels": levels},
    }
    await kube.apply(_NAMESPACE, topology)
    try:
        await play.bound(_NAMESPACE, 2)
    finally:
        await kube.run("delete", "topologies.kai.scheduler", "later")


async def test_a_note_is_told_on_the_pod_and_on_its_owner(play: Play) -> None:
    """A level without a topology name is honoured, and the assumption is said aloud."""
    kube = play.stage.kube
    gang = statefulset("llm", 2)
    del gang["metadata"]["annotations"]["kai.scheduler/topology"]
    await kube.apply(_NAMESPACE, gang)
    for name in ("llm-0", "llm"):
        message = await play.waiting(_NAMESPACE, "GangNoted", name)
        assert "kai.scheduler/topology" in message
    await play.bound(_NAMESPACE, 2)


async def test_a_job_that_asks_for_a_minimum_boards_that_many_at_once(play: Play) -> None:
    kube, (rack, *full) = play.stage.kube, play.stage.nodes
    await play.stage.occupy("others", [*rack[3:], *(node for other in full for node in other[2:])])
    worker = statefulset("any", 1)["spec"]["template"]["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "annotations": {
                "kai.scheduler/topology": "nvcf-mnnvl-topology",
                "kai.scheduler/topology-required-placement": "nvidia.com/gpu.clique",
                "kai.scheduler/batch-min-member": "3",
            },
        },
        "spec": {
            "parallelism": 4,
            "completions": 4,
            "template": {"spec": {**worker, "restartPolicy": "Never"}},
        },
    }
    await kube.apply(_NAMESPACE, job)
    await play.bound(_NAMESPACE, 3)
    assert play.where(_NAMESPACE) == {"c0000": 3}
