"""The bind barrier, on virtual time: nobody before the last, then all at once."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from extender.barrier import BIND_SECONDS
from extender.wire import plan_annotation
from gangs.contract import ANNOTATION_PLAN, GPU
from gangs.permits import BOARDING_SECONDS, QUIET_SECONDS
from gangs.pods import Plan, Pod
from gangs.sentences import REFUSED_PROMISED
from tests.builders import KEY, LEVEL, Json, make_loose, make_members, make_node, make_pod, pod_object
from tests.extender.world import World, settle

pytestmark = pytest.mark.looptime

Answer = asyncio.Task[str]

POD = "/api/v1/namespaces/default/pods/llm-0"


def a_world(cliques: dict[str, int] | None = None) -> World:
    return World({"a": 4} if cliques is None else cliques, clock=asyncio.get_running_loop().time)


def boarding(number: int = 3) -> tuple[World, list[Pod]]:
    """A gang with seats."""
    world = a_world()
    world.board(*make_members(number, required=LEVEL))
    return world, list(world.registry.pods.values())


def call(world: World, pod: Pod, node: str = "") -> Answer:
    """kube-scheduler's bind call for the Pod, on its seat unless told otherwise."""
    on = node or world.seat(pod)
    return asyncio.create_task(world.barrier.bind(pod.uid, pod.namespace, pod.name, on))


async def hang_up(task: Answer) -> None:
    """kube-scheduler gives this call up."""
    await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def binding_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"


def on_node(pod: Pod, node: str) -> Json:
    return pod_object(pod.name, uid=pod.uid, spec={"nodeName": node})


def on_server(pod: Pod, version: str, plan: Plan | None = None) -> Json:
    """The unbound Pod as the API server has it by now."""
    annotations = {ANNOTATION_PLAN: plan_annotation(plan)} if plan else {}
    return pod_object(pod.name, uid=pod.uid, annotations=annotations, meta={"resourceVersion": version})


class TestGang:
    """Members wait for one another."""

    async def test_nobody_is_bound_before_the_last_arrives_then_all_are(self) -> None:
        world, members = boarding(3)
        first = [call(world, pod) for pod in members[:2]]
        await asyncio.sleep(50)
        assert world.api.calls == []
        assert not any(task.done() for task in first)
        last = call(world, members[2])
        assert await asyncio.gather(*first, last) == ["", "", ""]
        assert sorted(world.api.paths()) == [binding_path(pod) for pod in members]
        assert all(world.registry.pods[pod.uid].node for pod in members)
        assert not world.store.permit(KEY).boarding

    async def test_a_binding_names_pod_node_and_uid(self) -> None:
        world, (pod,) = boarding(1)
        await call(world, pod)
        assert world.api.calls[0].body == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "llm-0", "namespace": "default", "uid": "u-llm-0"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "a0"},
        }

    async def test_when_one_is_lost_those_who_wait_hear_why(self) -> None:
        world, members = boarding(3)
        waiting = [call(world, pod) for pod in members[:2]]
        await settle()
        world.pods.drop(members[2].uid)
        answers = await asyncio.gather(*waiting)
        assert answers == ["the gang does not board now: the Pod was deleted"] * 2
        assert world.api.calls == []

    async def test_after_a_minute_without_an_arrival_those_who_wait_are_sent_back(self) -> None:
        world, members = boarding(2)
        waiting = call(world, members[0])
        await asyncio.sleep(QUIET_SECONDS)
        world.store.tick()
        assert await waiting == (
            "the gang does not board now: 1 of 2 members did not reach the barrier in time"
        )

    async def test_no_call_waits_longer_than_kube_scheduler_does(self) -> None:
        world, members = boarding(2)
        start = asyncio.get_running_loop().time()
        assert await call(world, members[0]) == "the gang did not board in time"
        assert asyncio.get_running_loop().time() - start == BIND_SECONDS
        assert world.store.permit(KEY).arrived == frozenset()

    async def test_a_second_call_for_the_same_pod_replaces_the_first(self) -> None:
        world, members = boarding(2)
        first = call(world, members[0])
        await settle()
        second = call(world, members[0])
        assert await first == "kube-scheduler has asked again"
        assert world.store.permit(KEY).arrived == {members[0].uid}
        third = call(world, members[1])
        assert list(await asyncio.gather(second, third)) == ["", ""]

    async def test_a_call_for_a_node_that_is_not_its_seat_is_refused(self) -> None:
        world, members = boarding(2)
        assert await call(world, members[0], "a3") == "the gang's permit does not give llm-0 a seat on a3"
        assert world.store.permit(KEY).arrived == frozenset()

    async def test_when_kube_scheduler_hangs_up_the_member_has_not_arrived(self) -> None:
        world, members = boarding(2)
        gone = call(world, members[0])
        await settle()
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        other = call(world, members[1])
        await settle()
        assert world.api.calls == []
        assert list(await asyncio.gather(call(world, members[0]), other)) == ["", ""]

    async def test_a_gang_that_is_forgotten_answers_who_waits(self) -> None:
        world, members = boarding(2)
        waiting = call(world, members[0])
        await settle()
        world.store.forget(KEY)
        assert await waiting == "the gang does not board now: the gang is gone"


class TestKnowing:
    """Which Pod is meant."""

    async def test_a_pod_that_our_watch_does_not_know_yet_is_given_a_moment(self) -> None:
        world = a_world()
        pod = make_loose("x")
        task = call(world, pod, "a0")
        await asyncio.sleep(1)
        world.update(pod)
        assert await task == ""

    async def test_an_unknown_uid_is_refused_even_where_the_name_is_known(self) -> None:
        world, members = boarding(1)
        answer = await world.barrier.bind("u-old", "default", "llm-0", "a0")
        assert answer == "Pod default/llm-0 with UID u-old is not known (yet, or any more)"
        assert world.api.calls == []
        assert world.seat(members[0]) == "a0"

    async def test_a_pod_that_is_bound_already_is_not_bound_again(self) -> None:
        world, (pod,) = boarding(1)
        world.bind(pod)
        assert await call(world, pod, "a0") == ""
        assert await call(world, pod, "a1") == "Pod default/llm-0 is already bound to a0"
        assert world.api.calls == []


class TestTrouble:
    """The API server is away or says no."""

    async def test_a_binding_is_tried_again_until_the_api_server_is_back(self) -> None:
        world, members = boarding(2)
        world.api.fail("llm-1/binding", 0, 500, 503, 429)
        assert await asyncio.gather(*(call(world, pod) for pod in members)) == ["", ""]
        assert world.api.paths().count(binding_path(members[1])) == 5

    async def test_a_refused_binding_loses_the_seat_and_says_why(self) -> None:
        world, members = boarding(2)
        world.api.fail("llm-1/binding", 404, message='pods "llm-1" not found')
        answers = await asyncio.gather(*(call(world, pod) for pod in members))
        assert answers == ["", 'binding to a1 was refused: pods "llm-1" not found']
        assert (members[1].uid, "a1") in world.store.avoided(KEY)
        assert world.registry.pods[members[0].uid].node == "a0"

    async def test_a_conflict_counts_as_bound_where_the_pod_sits_on_that_node(self) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", 409)
        world.api.objects["/api/v1/namespaces/default/pods/llm-0"] = on_node(pod, "a0")
        assert await call(world, pod) == ""
        assert world.registry.pods[pod.uid].node == "a0"

    @pytest.mark.parametrize(("node", "uid"), [("a3", "u-llm-0"), ("a0", "u-other")])
    async def test_a_conflict_over_another_node_or_pod_is_a_refusal(self, node: str, uid: str) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", 409, message="conflict")
        world.api.objects["/api/v1/namespaces/default/pods/llm-0"] = on_node(replace(pod, uid=uid), node)
        assert await call(world, pod) == "binding to a0 was refused: conflict"

    async def test_a_conflict_over_an_unchanged_pod_may_pass_but_not_for_ever(self) -> None:
        world = a_world()
        pod = make_pod(floor=1, required=LEVEL, version="1")
        world.board(pod)
        world.api.objects[POD] = on_server(pod, "1")
        world.api.fail("/binding", *[409] * 20, message="not now")
        assert await call(world, pod) == "binding to a0 was refused: not now"
        assert len(world.api.paths()) == 6
        await asyncio.sleep(1)
        world.round()
        world.api.fail("/binding", 409, 409)
        assert await call(world, pod) == ""

    async def test_a_pod_that_has_changed_since_is_bound_as_it_is_now(self) -> None:
        world = a_world()
        pod = make_pod(floor=1, required=LEVEL, version="1")
        world.board(pod)
        world.api.fail("/binding", 409)
        world.api.objects[POD] = on_server(pod, "2", Plan("a0", ("a",), 9e9, pod.uid, world.term))
        assert await call(world, pod) == ""
        versions = [c.body["metadata"]["resourceVersion"] for c in world.api.calls if c.method == "POST"]
        assert versions == ["1", "2"]

    async def test_a_pod_on_which_our_last_plan_stands_still_is_bound_by_the_new_one(self) -> None:
        world = a_world()
        pod = make_pod(floor=1, required=LEVEL, version="1")
        world.board(pod)
        world.api.fail("/binding", 409)
        world.api.objects[POD] = on_server(pod, "2", Plan("a3", ("a",), 9e9, pod.uid, world.term))
        assert await call(world, pod) == ""

    @pytest.mark.parametrize(("node", "term"), [("a0", "8"), ("a3", "8")])
    async def test_a_pod_that_another_instance_has_planned_anew_is_not_bound(
        self, node: str, term: str
    ) -> None:
        world = a_world()
        pod = make_pod(floor=1, required=LEVEL, version="1")
        world.board(pod)
        world.api.fail("/binding", 409, message="precondition failed")
        world.api.objects[POD] = on_server(pod, "2", Plan(node, ("a",), 9e9, pod.uid, term))
        assert await call(world, pod) == "binding to a0 was refused: precondition failed"
        assert len(world.api.paths()) == 1

    async def test_a_conflict_that_can_not_be_looked_into_is_tried_again(self) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", 409, 409)
        world.api.fail("pods/llm-0", 0)
        world.api.objects["/api/v1/namespaces/default/pods/llm-0"] = on_node(pod, "a0")
        assert await asyncio.wait_for(call(world, pod), 60) == ""

    async def test_a_released_member_is_bound_even_where_kube_scheduler_has_died_meanwhile(self) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", 0, 0, 0)
        await hang_up(call(world, pod))
        await asyncio.sleep(10)
        assert world.registry.pods[pod.uid].node == "a0"
        assert len(world.api.paths()) == 4

    async def test_a_member_whose_call_was_answered_no_is_not_bound_any_more_but_keeps_its_seat(self) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", *[0] * 1000)
        assert await call(world, pod) == "the gang did not board in time"
        world.api.errors.clear()
        tried = len(world.api.paths())
        await asyncio.sleep(10)
        assert len(world.api.paths()) == tried
        assert world.seat(pod) == "a0"
        assert world.store.permit(KEY).binding == frozenset()
        assert await call(world, pod) == ""

    async def test_a_binding_whose_answer_was_lost_is_found_after_the_call_was_answered(self) -> None:
        world, (pod,) = boarding(1)
        world.api.fail("/binding", *[0] * 1000)
        await call(world, pod)
        world.api.objects[POD] = on_node(pod, "a0")
        await asyncio.sleep(10)
        assert world.registry.pods[pod.uid].node == "a0"

    async def test_while_the_api_server_is_away_a_released_seat_is_promised_to_nobody_else(self) -> None:
        world, members = boarding(2)
        world.api.fail("/binding", *[0] * 1000)
        world.api.fail("/pods/llm", *[0] * 1000)
        calls = [call(world, pod) for pod in members]
        await settle()
        for task in calls:
            await hang_up(task)
        await asyncio.sleep(QUIET_SECONDS + BOARDING_SECONDS)
        world.nodes.update(make_node("a0", "a", cordoned=True))
        world.round()
        assert world.seats(*members) == ["a0", "a1"]
        assert {"a0", "a1"} <= {seat.node for seat in world.room.seats.values()}

    async def test_a_second_call_while_the_first_ones_binding_is_under_way_gets_its_answer(self) -> None:
        world, (pod,) = boarding(1)
        world.api.delay = 1
        first = call(world, pod)
        await asyncio.sleep(0.5)
        second = call(world, pod)
        assert await first == "kube-scheduler has asked again"
        assert await second == ""
        assert len(world.api.paths()) == 1

    async def test_an_answer_that_comes_after_the_pod_is_gone_revives_nobody(self) -> None:
        world, (pod,) = boarding(1)
        world.api.delay = 1
        task = call(world, pod)
        await asyncio.sleep(0.5)
        world.pods.drop(pod.uid)
        await task
        assert world.registry.pods == {}
        assert world.room.seats == {}


class TestLoosePods:
    """A Pod that belongs to no gang."""

    async def test_it_is_bound_at_once(self) -> None:
        world = a_world()
        pod = make_loose("x")
        world.update(pod)
        assert await call(world, pod, "a0") == ""
        assert world.room.free(world.room.nodes["a0"])[GPU] == 0

    async def test_it_never_gets_what_is_promised_to_a_gang(self) -> None:
        world, _ = boarding(1)
        pod = make_loose("x")
        world.update(pod)
        assert await call(world, pod, "a0") == REFUSED_PROMISED
        assert await call(world, pod, "unknown") == REFUSED_PROMISED
        assert world.api.calls == []

    async def test_of_two_that_race_for_the_last_room_beside_a_promise_one_gets_it(self) -> None:
        world = a_world({})
        world.nodes.update(make_node("big", "a", gpus=8))
        world.board(*make_members(1, required=LEVEL))
        racers = [make_loose("x"), make_loose("y")]
        world.update(*racers)
        world.api.delay = 0.1
        answers = await asyncio.gather(*(call(world, pod, "big") for pod in racers))
        assert sorted(answers) == ["", REFUSED_PROMISED]
        assert len(world.api.calls) == 1

    async def test_one_that_could_not_be_bound_gives_its_room_back(self) -> None:
        world = a_world()
        pod = make_loose("x")
        world.update(pod)
        world.api.fail("/binding", 403, message="forbidden")
        assert await call(world, pod, "a0") == "binding to a0 was refused: forbidden"
        assert world.room.seats == {}

    async def test_one_whose_call_was_dropped_gives_its_room_back(self) -> None:
        world = a_world()
        pod = make_loose("x")
        world.update(pod)
        world.api.delay = 1
        task = call(world, pod, "a0")
        await settle()
        assert world.room.seats
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert world.room.seats == {}
