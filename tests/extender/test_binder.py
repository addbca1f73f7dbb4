"""Bindings: made again and again until the API server has said yes or no, and never against its word."""

import asyncio
from dataclasses import replace

import pytest

from gangs.permits import BOARDING_SECONDS, QUIET_SECONDS
from gangs.pods import Plan
from tests.builders import KEY, make_node
from tests.extender.calls import POD, binding_path, boarding, call, changed_since, hang_up, on_node
from tests.extender.world import settle

pytestmark = pytest.mark.looptime


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
        world, pod = changed_since("1")
        world.api.fail("/binding", *[409] * 20, message="not now")
        assert await call(world, pod) == "binding to a0 was refused: not now"
        assert len(world.api.paths()) == 6
        await asyncio.sleep(1)
        world.round()
        world.api.fail("/binding", 409, 409)
        assert await call(world, pod) == ""

    async def test_a_pod_that_has_changed_since_is_bound_as_it_is_now(self) -> None:
        world, pod = changed_since("2", Plan("a0", ("a",), 9e9, "u-llm-0", "7"))
        world.api.fail("/binding", 409)
        assert await call(world, pod) == ""
        versions = [c.body["metadata"]["resourceVersion"] for c in world.api.calls if c.method == "POST"]
        assert versions == ["1", "2"]

    async def test_a_pod_on_which_our_last_plan_stands_still_is_bound_by_the_new_one(self) -> None:
        world, pod = changed_since("2", Plan("a3", ("a",), 9e9, "u-llm-0", "7"))
        world.api.fail("/binding", 409)
        assert await call(world, pod) == ""

    @pytest.mark.parametrize(("node", "term"), [("a0", "8"), ("a3", "8")])
    async def test_a_pod_that_another_instance_has_planned_anew_is_not_bound(
        self, node: str, term: str
    ) -> None:
        world, pod = changed_since("2", Plan(node, ("a",), 9e9, "u-llm-0", term))
        world.api.fail("/binding", 409, message="precondition failed")
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
