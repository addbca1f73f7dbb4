"""Whole gangs of a queue are evicted for others, on the real control plane and by its own eviction API."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local.cluster import Cluster
from e2e import queues
from e2e.kube import Kube, until
from e2e.observer import Observer
from e2e.queues import LABEL, queue
from e2e.scene import Play, statefulset
from e2e.stage import Stage
from tests.e2e.conftest import playing

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_LOW: Final = "evict-low"
_HIGH: Final = "evict-high"
_URGENT: Final = "evict-urgent"
_QUEUES: Final = ("evict-rich", "evict-poor")
_MEMBERS: Final = 18


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evicting(cluster: Cluster) -> AsyncIterator[tuple[Stage, Observer]]:
    """`allaboard dev` that may evict."""
    async with playing(cluster, ["--evict=preempt,reclaim"]) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def play(evicting: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """Only the first clique is free; afterwards nothing is left and the checker has no complaint."""
    stage, observer = evicting
    kube = stage.kube
    for name in (_LOW, _HIGH):
        await kube.namespace(name)
    await kube.apply("default", _priority(_URGENT, 1000))
    await stage.occupy("others", [node for rack in stage.nodes[1:] for node in rack])
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_LOW)
    play.clean(_HIGH)
    for name in (_LOW, _HIGH):
        await kube.run("-n", name, "delete", "poddisruptionbudgets", "--all")
    await kube.clear(_LOW, _HIGH, "others")
    await queues.delete(kube, *_QUEUES)


def _priority(name: str, value: int) -> Json:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}


def _gang(members: int, queue: str = "", name: str = "llm", **spec: Any) -> Json:
    gang = statefulset(name, members, **spec)
    if queue:
        gang["metadata"]["labels"] = {LABEL: queue}
    return gang


def _is_bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def _uids(kube: Kube, namespace: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await kube.items("pods", namespace)}


async def test_a_gang_of_higher_priority_boards_where_a_lower_gang_of_its_queue_was(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_LOW, _gang(_MEMBERS))
    await play.bound(_LOW, _MEMBERS)
    before = await _uids(kube, _LOW)
    await kube.apply(_HIGH, _gang(_MEMBERS, priorityClassName=_URGENT))
    await play.bound(_HIGH, _MEMBERS, seconds=60)
    assert play.where(_HIGH) == {"c0000": _MEMBERS}
    assert play.where(_LOW) == {}
    assert not before & await _uids(kube, _LOW)

    async def all_told() -> bool:
        events = [e for e in await kube.items("events", _LOW) if e["reason"] == "GangEvicted"]
        mine = [e for e in events if "is evicted for gang evict-high/llm" in e["message"]]
        return before <= {e["involvedObject"]["uid"] for e in mine}

    await until(all_told, "every victim is told for whom it goes")
    assert "18 Pods are evicted for it, 1 gang of them whole" in await play.waiting(
        _HIGH, "GangEvicting", "llm-0"
    )


async def test_a_disruption_budget_that_does_not_cover_all_victims_saves_them_all(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_LOW, _gang(4))
    await play.bound(_LOW, 4)
    await kube.apply(_LOW, _budget(allowed=3))

    async def counted() -> bool:
        (row,) = await kube.items("poddisruptionbudgets", _LOW)
        return bool(row["status"].get("disruptionsAllowed") == 3)

    await until(counted, "the budget allows three disruptions")
    before = await _uids(kube, _LOW)
    await kube.apply(_HIGH, _gang(_MEMBERS, priorityClassName=_URGENT))
    await play.waiting(_HIGH, "GangWaiting", "llm-0")
    assert await _uids(kube, _LOW) == before
    assert play.where(_LOW) == {"c0000": 4}
    await kube.apply(_LOW, _budget(allowed=4))
    await play.bound(_HIGH, _MEMBERS, seconds=60)


def _budget(allowed: int) -> Json:
    selector = {"matchLabels": {"app": "llm"}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "llm"},
        "spec": {"maxUnavailable": allowed, "selector": selector},
    }


async def test_a_queue_within_its_quota_reclaims_from_one_that_is_over_its_own(play: Play) -> None:
    kube = play.stage.kube
    await queues.apply(kube, queue("evict-rich", quota=16), queue("evict-poor", quota=32))
    for name in ("one", "two"):
        await kube.apply(_LOW, _gang(6, "evict-rich", name))
    await play.bound(_LOW, 12)
    await kube.apply(_HIGH, _gang(8, "evict-poor"))
    await play.bound(_HIGH, 8, seconds=60)

    async def one_whole_gang_has_gone() -> bool:
        return play.where(_LOW) == {"c0000": 6}

    await until(one_whole_gang_has_gone, "one of the two gangs is left, and whole")
    assert play.where(_HIGH) == {"c0000": 8}
    owners = {pod["metadata"]["labels"]["app"] for pod in await kube.items("pods", _LOW) if _is_bound(pod)}
    assert len(owners) == 1
