"""Queues on the real control plane: missing ones, limits, and the status that people read."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e import queues
from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import member, pod, priority_class
from e2e.queues import LABEL, queue
from e2e.scene import Play, statefulset
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "queues"
_QUEUES: Final = ("road-team", "road-late", "road-org")


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards nothing is left and the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE)
    await queues.delete(stage.kube, *_QUEUES)


def _gang(name: str, members: int, queue: str) -> list[Json]:
    return [member(f"{name}-{i}", name, members, {LABEL: queue}) for i in range(members)]


async def _bound(play: Play, gang: str) -> int:
    pods = await play.stage.kube.items("pods", _NAMESPACE, f"allaboard.dev/gang={gang}")
    return sum(bool(p["spec"].get("nodeName")) for p in pods)


async def test_a_gang_in_a_missing_queue_waits_with_a_sentence_and_boards_once_it_exists(play: Play) -> None:
    kube = play.stage.kube
    llm = statefulset("llm", 2)
    llm["metadata"]["labels"] = {LABEL: "road-late"}
    await kube.apply(_NAMESPACE, llm)
    message = await play.waiting(_NAMESPACE, "GangHasNoQueue", "llm-0")
    assert 'queue "road-late" does not exist (queues there are: ' in message
    assert "default-queue" in message
    assert play.where(_NAMESPACE) == {}
    await queues.apply(kube, queue("road-late"))
    await play.bound(_NAMESPACE, 2)


async def test_two_gangs_that_come_at_once_do_not_exceed_the_queues_limit(play: Play) -> None:
    kube = play.stage.kube
    await queues.apply(kube, queue("road-org", limit=12), queue("road-team", "road-org"))
    await kube.apply(_NAMESPACE, [*_gang("one", 2, "road-team"), *_gang("two", 2, "road-team")])
    await play.bound(_NAMESPACE, 2)
    waiting = "one-0" if await _bound(play, "two") else "two-0"
    message = await play.waiting(_NAMESPACE, "GangOverLimit", waiting)
    assert 'needs 8 GPUs; queue "road-org" holds 8 of its limit of 12.' in message
    await queues.apply(kube, queue("road-org", limit=16))
    await play.bound(_NAMESPACE, 4)


async def test_a_pod_by_itself_is_not_bound_beyond_the_queues_limit(play: Play) -> None:
    kube = play.stage.kube
    await queues.apply(kube, queue("road-team", limit=8))
    loose = [pod(f"loose-{i}", {LABEL: "road-team"}, schedulerName="allaboard") for i in range(4)]
    await kube.apply(_NAMESPACE, loose)
    await play.bound(_NAMESPACE, 2)

    async def refused() -> bool:
        events = await kube.items("events", _NAMESPACE)
        told = {
            e["involvedObject"]["name"]
            for e in events
            if "has reached its limit (kubectl describe queue)" in e["message"]
        }
        return len(told) == 2

    await until(refused, "the other two are told of the limit")
    assert sum(play.where(_NAMESPACE).values()) == 2


async def test_the_status_of_a_queue_and_of_its_parent_says_what_is_allocated_and_requested(
    play: Play,
) -> None:
    kube = play.stage.kube
    await queues.apply(kube, queue("road-org"), queue("road-team", "road-org", limit=8))
    await kube.apply(_NAMESPACE, [*_gang("one", 2, "road-team"), *_gang("two", 1, "road-team")])
    await play.bound(_NAMESPACE, 2)

    async def told() -> bool:
        found = [await queues.status(kube, name) for name in ("road-team", "road-org")]
        gpus = [
            [row.get(key, {}).get("nvidia.com/gpu") for key in ("allocated", "requested")] for row in found
        ]
        return gpus == [["8", "12"], ["8", "12"]] and found[1]["childQueues"] == ["road-team"]

    await until(told, "8 GPUs are allocated and 12 requested")


async def test_a_priority_that_is_named_by_kais_label_counts_in_the_queue(play: Play) -> None:
    """The API server fills in the number of the class that we name, and the more urgent gang boards first."""
    kube, (rack, *full) = play.stage.kube, play.stage.nodes
    await play.stage.occupy("others", [*rack, *(node for other in full for node in other)])
    await kube.apply("default", priority_class("road-urgent"))
    old, urgent = statefulset("old", 18), statefulset("urgent", 18)
    urgent["metadata"]["labels"] = {"priorityClassName": "road-urgent"}
    for gang in (old, urgent):
        await kube.apply(_NAMESPACE, gang)
        await play.waiting(_NAMESPACE, "GangWaiting", f"{gang['metadata']['name']}-0")
    pods = await kube.items("pods", _NAMESPACE, "app=urgent")
    assert {p["spec"]["priority"] for p in pods} == {1000}
    await kube.run("-n", "others", "delete", "pods", *(f"busy-{node}" for node in rack), "--wait=false")
    await play.bound(_NAMESPACE, 18)
    bound = await kube.items("pods", _NAMESPACE, "app=urgent")
    assert all(p["spec"].get("nodeName") for p in bound)
    await kube.clear("others")


async def test_the_default_queues_say_what_workloads_that_name_none_take(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_NAMESPACE, statefulset("llm", 2))
    await play.bound(_NAMESPACE, 2)

    async def told() -> bool:
        found = [await queues.status(kube, name) for name in ("default-queue", "default-parent-queue")]
        return [row.get("allocated", {}).get("nvidia.com/gpu") for row in found] == ["8", "8"]

    await until(told, "8 GPUs are allocated to the default queues")
