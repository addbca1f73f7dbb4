"""The bind barrier, on virtual time: nobody before the last, then all at once."""

import asyncio
from contextlib import suppress

import pytest

from extender.barrier import BIND_SECONDS
from gangs.contract import GPU
from gangs.permits import QUIET_SECONDS
from gangs.sentences import REFUSED_PROMISED
from tests.builders import KEY, LEVEL, make_loose, make_members, make_node
from tests.extender.calls import a_world, binding_path, boarding, call
from tests.extender.world import settle

pytestmark = pytest.mark.looptime


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
