"""Grove's PodGangs are told what became of them, and what Grove wrote there stays."""

import asyncio
import copy
from dataclasses import replace
from typing import Any

import pytest

from extender.podgangs import ABSENT_SECONDS, PATH, PodGangs
from gangs.identity import podgang_label
from gangs.pods import Demand, Pod
from gangs.subgroups import Subgroup
from tests.builders import LEVEL, make_node, make_pod
from tests.extender.world import World

Json = dict[str, Any]
LABEL = podgang_label("pcs-0")
STATUS = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs/pcs-0/status"
INITIALIZED = {
    "type": "Initialized",
    "status": "True",
    "reason": "PodGangPodsCreated",
    "message": "PodGang is fully initialized",
    "lastTransitionTime": "2026-11-30T20:29:43Z",
}
ROWS = (Subgroup("p", 1), Subgroup("d", 1))
SAYS = Demand(2, min_subgroup=2, required=LEVEL)


def podgang(*conditions: Json, version: str = "7", **status: Any) -> Json:
    said = {"phase": "Pending", "conditions": list(conditions), **status} if conditions else None
    meta = {"name": "pcs-0", "namespace": "default", "uid": "u-gang", "resourceVersion": version}
    return {"metadata": meta, "spec": {}, **({"status": said} if said else {})}


class Scene:
    """A world with Grove in it."""

    def __init__(self, **cliques: int) -> None:
        self.world = World(cliques or {"a": 4})
        parts = self.world
        self.podgangs = PodGangs(parts.api, parts.registry, parts.room, parts.news.standing, parts.clock)

    async def written(self) -> Json | None:
        """The patch of one pass, None where nothing needs one."""
        self.world.api.calls.clear()
        await self.podgangs.write(self.world.rounds.pending.keys())
        calls = [call for call in self.world.api.calls if call.method == "PATCH"]
        assert all(call.path == STATUS for call in calls)
        return calls[0].body if calls else None

    def stored(self, patch: Json) -> None:
        """The API server has taken the patch, and the watch says so."""
        obj = podgang(version="8")
        self.podgangs.put({**obj, "status": copy.deepcopy(patch["status"])})


def members() -> list[Pod]:
    return [make_pod(f"m-{s.name}", gang=LABEL, demand=replace(SAYS, subgroups=(s,))) for s in ROWS]


def conditions(patch: Json | None) -> dict[str, tuple[str, str]]:
    assert patch is not None
    return {row["type"]: (row["status"], row["reason"]) for row in patch["status"]["conditions"]}


async def aboard(scene: Scene, ready: bool = False) -> list[Pod]:
    pods = members()
    scene.world.board(*pods)
    scene.world.bind(*pods)
    if ready:
        scene.world.update(*[replace(scene.world.registry.pods[p.uid], ready=True) for p in pods])
    return pods


async def test_nothing_is_written_before_grove_has_said_that_all_pods_are_made() -> None:
    scene = Scene()
    await aboard(scene)
    scene.podgangs.put(podgang())
    assert await scene.written() is None
    scene.podgangs.put(podgang({**INITIALIZED, "status": "False"}))
    assert await scene.written() is None


async def test_a_gang_that_is_aboard_is_scheduled_then_running_and_groves_condition_stays() -> None:
    scene = Scene()
    pods = await aboard(scene)
    scene.podgangs.put(podgang(INITIALIZED))
    first = await scene.written()
    assert first is not None
    assert first["metadata"] == {"resourceVersion": "7"}
    assert first["status"]["phase"] == "Starting"
    assert first["status"]["placementScore"] == 1.0
    assert first["status"]["conditions"][0] == INITIALIZED
    assert conditions(first) == {
        "Initialized": ("True", "PodGangPodsCreated"),
        "Scheduled": ("True", "GangAboard"),
        "Ready": ("False", "FloorNotReady"),
    }
    scene.stored(first)
    assert await scene.written() is None
    scene.world.update(*[replace(scene.world.registry.pods[p.uid], ready=True) for p in pods])
    second = await scene.written()
    assert second is not None
    assert second["status"]["phase"] == "Running"
    assert conditions(second)["Ready"] == ("True", "FloorReady")


async def test_what_grove_puts_back_is_written_anew() -> None:
    scene = Scene()
    await aboard(scene, ready=True)
    scene.podgangs.put(podgang(INITIALIZED))
    first = await scene.written()
    assert first is not None
    scene.stored(first)
    assert await scene.written() is None
    scene.podgangs.put(podgang(INITIALIZED, version="9"))
    again = await scene.written()
    assert again is not None
    assert again["metadata"] == {"resourceVersion": "9"}
    assert again["status"]["phase"] == "Running"


async def test_a_waiting_gang_says_why_and_the_time_of_a_change_stays_while_nothing_changes() -> None:
    scene = Scene(a=1)
    scene.world.board(*members())
    list(scene.world.news.due(scene.world.clock()))
    scene.world.round(after=3)
    list(scene.world.news.due(scene.world.clock()))
    scene.podgangs.put(podgang(INITIALIZED))
    first = await scene.written()
    assert conditions(first)["Scheduled"] == ("False", "GangWaiting")
    assert first is not None
    row = next(r for r in first["status"]["conditions"] if r["type"] == "Scheduled")
    assert "needs 2 free nodes with 4 GPUs" in row["message"]
    scene.stored(first)
    scene.world.round(after=100)
    assert await scene.written() is None


async def test_a_conflict_is_tried_again_on_the_version_that_the_watch_brings() -> None:
    scene = Scene()
    await aboard(scene)
    scene.podgangs.put(podgang(INITIALIZED))
    scene.world.api.fail(STATUS, 409)
    assert await scene.written() is not None
    scene.podgangs.put(podgang(INITIALIZED, version="8"))
    again = await scene.written()
    assert again is not None
    assert again["metadata"] == {"resourceVersion": "8"}


async def test_podgangs_whose_pods_are_of_another_scheduler_are_left_alone() -> None:
    scene = Scene()
    scene.podgangs.put(podgang(INITIALIZED))
    assert await scene.written() is None


async def test_the_score_falls_with_the_number_of_domains_where_one_is_preferred() -> None:
    scene = Scene(a=0)
    for number, rack in enumerate(("r1", "r2")):
        scene.world.nodes.update(make_node(f"n{number}", "a", labels={"rack": rack}))
    says = replace(SAYS, preferred="rack")
    pods = [make_pod(f"m-{s.name}", gang=LABEL, demand=replace(says, subgroups=(s,))) for s in ROWS]
    scene.world.board(*pods)
    scene.world.bind(*pods)
    scene.podgangs.put(podgang(INITIALIZED))
    patch = await scene.written()
    assert patch is not None
    assert patch["status"]["placementScore"] == 0.5


async def test_a_podgang_that_is_gone_is_forgotten_and_its_namesake_is_not() -> None:
    scene = Scene()
    await aboard(scene)
    scene.podgangs.put(podgang(INITIALIZED))
    new = podgang(INITIALIZED)
    new["metadata"]["uid"] = "u-new"
    scene.podgangs.put(new)
    scene.podgangs.drop("u-gang")
    assert await scene.written() is not None
    scene.podgangs.drop("u-new")
    scene.podgangs.recheck()
    assert await scene.written() is None


@pytest.mark.looptime
async def test_grove_may_be_installed_later() -> None:
    scene = Scene()
    waiting = asyncio.create_task(scene.podgangs.installed())
    await asyncio.sleep(ABSENT_SECONDS / 2)
    assert not waiting.done()
    scene.world.api.objects[PATH] = {"items": []}
    await asyncio.sleep(ABSENT_SECONDS)
    assert waiting.done()
