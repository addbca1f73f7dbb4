"""Grants on their way to the API server: nominate first, then plan and gate."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.grants import Grants
from extender.wire import plan_annotation
from gangs.contract import ANNOTATION_PLAN, GATE
from gangs.pods import Plan, Pod
from tests.builders import FOREIGN_GATE, KEY, LEVEL, Json, make_gang, make_members, make_pod, pod_object
from tests.extender.world import World, settle

pytestmark = pytest.mark.looptime

PATH = "/api/v1/namespaces/default/pods/llm-0"


def granting(*pods: Pod, number: int = 1) -> tuple[World, list[Pod]]:
    """A world with a real grant writer, after the round that grants these members their seats."""
    world = World(clock=asyncio.get_running_loop().time)
    world.rounds._writer = Grants(world.api, world.store, lambda: world.term)
    members = list(pods) or make_members(number, required=LEVEL)
    world.board(*members)
    return world, members


def patches(world: World) -> list[tuple[str, Any]]:
    return [(call.path, call.body) for call in world.api.calls]


async def test_a_member_is_nominated_before_its_gate_falls() -> None:
    world, (pod,) = granting()
    await settle()
    deadline = world.store.permit(KEY).deadline
    plan = plan_annotation(Plan("a0", ("a",), deadline, pod.uid, "7"))
    assert patches(world) == [
        (f"{PATH}/status", {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": "a0"}}),
        (
            PATH,
            {
                "metadata": {"uid": pod.uid, "annotations": {ANNOTATION_PLAN: plan}},
                "spec": {"schedulingGates": None},
            },
        ),
    ]


async def test_gates_of_others_stay_in_the_patch() -> None:
    world = World()
    pod = make_pod(gates=(GATE, FOREIGN_GATE), floor=1)
    world.update(pod)
    world.store.permits[KEY] = replace(world.store.permit(KEY), seats={pod.uid: "a0"})
    Grants(world.api, world.store, lambda: "7").grant(make_gang([pod]), [(pod, "a0")], ("a",), 1.0)
    await settle()
    assert world.api.calls[-1].body["spec"] == {"schedulingGates": [{"name": FOREIGN_GATE}]}


async def test_a_member_without_our_gate_is_nominated_and_gets_its_plan_but_no_word_on_gates() -> None:
    world, _ = granting(make_pod(gated=False, floor=1, required=LEVEL))
    await settle()
    assert [call.path for call in world.api.calls] == [f"{PATH}/status", PATH]
    assert "spec" not in world.api.calls[1].body


@pytest.mark.parametrize("required", [LEVEL, ()])
async def test_what_the_pod_says_already_is_not_written_again(required: tuple[str, ...]) -> None:
    deadline = asyncio.get_running_loop().time() + 77
    plan = Plan("a0", ("a",) if required else (), deadline, "u-llm-0", "7")
    world, (pod,) = granting(make_pod(gated=False, floor=1, required=required, nominated="a0", plan=plan))
    await settle()
    assert world.seat(pod) == "a0"
    assert world.api.calls == []


async def test_a_nominated_member_whose_gate_is_still_on_is_only_released() -> None:
    world, _ = granting(make_pod(floor=1, required=LEVEL, nominated="a0"))
    await settle()
    assert [call.path for call in world.api.calls] == [PATH]


async def test_nothing_more_is_written_once_the_seat_is_taken_back() -> None:
    world, (pod,) = granting()
    world.api.delay = 1
    await asyncio.sleep(0.5)
    world.store.lose(pod, "changed our mind")
    await asyncio.sleep(5)
    assert [call.path for call in world.api.calls] == [f"{PATH}/status"]


@pytest.mark.parametrize("status", [0, 429, 500, 503])
async def test_what_could_not_be_written_is_written_again(status: int) -> None:
    world, (pod,) = granting()
    world.api.fail("/status", status, status)
    await asyncio.sleep(5)
    assert [call.path for call in world.api.calls] == [f"{PATH}/status"] * 3 + [PATH]
    assert world.seat(pod) == "a0"


@pytest.mark.parametrize("status", [403, 404, 422])
async def test_a_refused_write_loses_the_seat_and_drops_no_gate(status: int) -> None:
    world, (pod,) = granting()
    world.api.fail("/status", status, message="changed")
    await asyncio.sleep(5)
    assert [call.path for call in world.api.calls] == [f"{PATH}/status"]
    assert world.store.last_failure[KEY] == "llm-0 on a0: the API server refused the grant: changed"
    assert (pod.uid, "a0") in world.store.avoided(KEY)


def on_server(pod: Pod, version: str, plan: Plan | None = None, gates: tuple[str, ...] = (GATE,)) -> Json:
    """The Pod as the API server has it by now."""
    return pod_object(
        pod.name,
        uid=pod.uid,
        annotations={ANNOTATION_PLAN: plan_annotation(plan)} if plan else {},
        meta={"resourceVersion": version},
        spec={"schedulingGates": [{"name": gate} for gate in gates]},
    )


class TestConflict:
    """The Pod has changed since the grant was decided on."""

    async def test_every_write_names_the_version_that_it_was_decided_on(self) -> None:
        world, _ = granting(make_pod(floor=1, required=LEVEL, version="41"))
        world.api.versions = ["42"]
        await settle()
        assert [call.body["metadata"]["resourceVersion"] for call in world.api.calls] == ["41", "42"]

    async def test_after_any_other_change_the_grant_is_written_on_the_pod_as_it_is_now(self) -> None:
        world, (pod,) = granting(make_pod(gates=(GATE, FOREIGN_GATE), floor=1, required=LEVEL, version="1"))
        world.store.permits[KEY] = replace(world.store.permit(KEY), seats={pod.uid: "a0"})
        Grants(world.api, world.store, lambda: "7").grant(make_gang([pod]), [(pod, "a0")], ("a",), 1.0)
        world.api.objects[PATH] = on_server(pod, "2")
        world.api.fail(PATH, 409)
        await asyncio.sleep(1)
        nominate, release = world.api.calls[-2:]
        assert nominate.body["metadata"]["resourceVersion"] == "2"
        assert release.body["spec"] == {"schedulingGates": None}
        assert world.seat(pod) == "a0"

    async def test_a_plan_that_another_instance_has_made_meanwhile_rules(self) -> None:
        world, (pod,) = granting(make_pod(floor=1, required=LEVEL, version="1"))
        world.api.objects[PATH] = on_server(pod, "2", Plan("a3", ("a",), 9e9, pod.uid, "8"))
        world.api.fail("/status", 409)
        await asyncio.sleep(1)
        assert world.api.paths("PATCH") == [f"{PATH}/status"]
        assert world.seat(pod) == ""
        assert "another instance has planned it meanwhile" in world.store.last_failure[KEY]

    async def test_the_plan_of_a_term_that_is_over_is_written_over(self) -> None:
        old = Plan("a3", ("a",), 9e9, "u-llm-0", "6")
        world, (pod,) = granting(make_pod(floor=1, required=LEVEL, version="1", plan=old))
        world.api.objects[PATH] = on_server(pod, "2", old)
        world.api.fail("/status", 409)
        await asyncio.sleep(1)
        assert world.api.paths("PATCH") == [f"{PATH}/status"] * 2 + [PATH]

    async def test_a_namesake_is_not_written_to(self) -> None:
        world, (pod,) = granting(make_pod(floor=1, required=LEVEL, version="1"))
        world.api.objects[PATH] = on_server(replace(pod, uid="other"), "2")
        world.api.fail("/status", 409)
        await asyncio.sleep(1)
        assert world.api.paths("PATCH") == [f"{PATH}/status"]
        assert world.seat(pod) == ""

    async def test_when_the_leadership_is_lost_nothing_more_is_written(self) -> None:
        world = World(clock=asyncio.get_running_loop().time)
        grants = world.rounds._writer = Grants(world.api, world.store, lambda: world.term)
        world.api.delay = 1
        world.board(*make_members(1, required=LEVEL))
        await asyncio.sleep(0.5)
        grants.abandon()
        await asyncio.sleep(5)
        assert world.api.calls == []


async def test_members_are_written_side_by_side_but_not_all_of_a_large_gang_at_once() -> None:
    world = World({"a": 100}, clock=asyncio.get_running_loop().time)
    world.rounds._writer = Grants(world.api, world.store, lambda: world.term)
    world.api.delay = 1
    world.board(*make_members(100, required=LEVEL))
    await asyncio.sleep(1.5)
    assert len(world.api.calls) == 32
    await asyncio.sleep(10)
    assert len(world.api.calls) == 200
