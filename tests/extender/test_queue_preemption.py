"""Whole gangs of a queue go for others: who, when, how, and when nobody does."""

from dataclasses import replace
from typing import Any

import pytest

from extender import wire
from extender.evictor import PATIENCE_SECONDS, Evictor
from extender.preemption import (
    AGAIN_SECONDS,
    KINDS,
    LOCKED_SECONDS,
    PREEMPT,
    RECLAIM,
    Preemption,
    Rules,
)
from extender.selectors import matches
from extender.standing import Standing
from gangs.pods import Pod
from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.tree import Queue
from gangs.reasons import Reason
from tests.builders import Json, make_owner
from tests.extender.world import START, World, gang

FREE = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def a_queue(name: str, quota: float = 0, **rest: Any) -> Queue:
    return Queue(
        name, quota=Amounts(quota, UNLIMITED, UNLIMITED), limit=FREE, weight=Amounts(1, 1, 1), **rest
    )


class Theatre:
    """A world with preemption in it; its gangs run in the queue "q" unless told otherwise."""

    def __init__(self, *kinds: str, cliques: dict[str, int] | None = None, min_seconds: float = 0.0) -> None:
        self.world = World({"a": 4} if cliques is None else cliques)
        for name in ("q", "r"):
            self.world.queues.update(a_queue(name))
        self.leads = True
        self.preemption = Preemption(
            Rules(frozenset(kinds), min_seconds),
            Evictor(self.world.api, self.world.clock),
            self.world.rounds,
            self.world.registry,
            self.world.room,
            self.world.store,
            self.world.queues,
            self.world.clock,
            lambda: self.leads,
        )

    def run(self, number: int, name: str, bound_at: float = 1.0, **rest: Any) -> list[Pod]:
        """A gang that is aboard."""
        members = gang(number, name, **{"queue": "q", "created": 0.0, **rest})
        self.world.board(*members)
        running = [replace(p, node=self.world.seat(p), gates=(), bound_at=bound_at) for p in members]
        assert all(p.node for p in running)
        self.world.update(*running)
        self.world.round()
        return running

    def want(self, number: int, name: str = "big", **rest: Any) -> list[Pod]:
        """A gang that finds no room."""
        members = gang(number, name, **{"queue": "q", "created": 5.0, "priority": 10, **rest})
        self.world.board(*members)
        return members

    async def look(self, after: float = 0.0) -> list[str]:
        """One look; the reasons of what is said."""
        self.world.round(after=after)
        return [row.reason for row in await self.preemption.look()]

    def evicted(self) -> list[str]:
        """Names of Pods whose eviction was asked for, dry runs left out."""
        return [path.split("/")[-2] for path in self.world.api.paths() if path.endswith("/eviction")]

    def marked(self) -> dict[str, Any]:
        """What was annotated on which Pod."""
        return {
            call.path.rpartition("/")[2]: call.body["metadata"]["annotations"]["allaboard.dev/evicted-for"]
            for call in self.world.api.calls
            if call.method == "PATCH"
        }


class TestPreempt:
    """A gang of higher priority in the same queue."""

    async def test_a_lower_gang_of_the_queue_goes_whole_marked_and_told_for_whom(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "low", owner=make_owner("low"))
        stage.want(4)
        said = await stage.preemption.look()
        names = [f"low-{i}" for i in range(4)]
        assert sorted(stage.evicted()) == names
        assert stage.marked() == dict.fromkeys(names, "default/big")
        assert {row.reason for row in said} == {Reason.EVICTED, Reason.EVICTING}
        assert sum(row.owner is not None for row in said) == 1
        told = {row.message for row in said if row.pod.name == "low-0"}
        assert told == {
            'Pod default/low-0 is evicted for gang default/big (queue "q", priority 10), '
            "which boards once it is gone."
        }
        message = next(row.message for row in said if row.reason == Reason.EVICTING)
        assert message == (
            "Gang default/big: 4 Pods are evicted for it, 1 gang of them whole; it boards once they are gone."
        )

    async def test_the_gang_boards_when_the_last_victim_is_gone_and_not_before(self) -> None:
        stage = Theatre(PREEMPT)
        low = stage.run(4, "low")
        big = stage.want(4)
        await stage.look()
        leaving = [replace(p, terminating=True, evicted_for="default/big") for p in low]
        stage.world.update(*leaving)
        for pod in leaving[:3]:
            stage.world.pods.drop(pod.uid)
        await stage.look(after=1)
        assert not any(stage.world.seats(*big))
        stage.world.pods.drop(leaving[3].uid)
        for _ in range(2):  # the first look sees that they are gone, and the round after it plans
            await stage.look(after=1)
        assert all(stage.world.seats(*big))
        assert not stage.world.rounds.keeper.locked

    async def test_who_replaces_the_first_victims_does_not_board_beside_the_last(self) -> None:
        stage = Theatre(PREEMPT, cliques={"a": 6})
        low = stage.run(4, "low")
        stage.want(6)
        stage.world.update(*(replace(p, evicted_for="default/big") for p in low))
        stage.world.pods.drop(low[0].uid)
        again = gang(1, "low", floor=4, queue="q", start=9)
        stage.world.board(*again)
        assert not any(stage.world.seats(*again))
        assert stage.world.standing(("default", "low")) is Standing.GATHERING

    async def test_nobody_else_gets_into_the_domain_meanwhile_not_even_who_is_ahead(self) -> None:
        stage = Theatre(PREEMPT)
        low = stage.run(4, "low")
        stage.want(4)
        await stage.look()
        for pod in low[:2]:
            stage.world.pods.drop(pod.uid)
        stage.world.update(*(replace(p, terminating=True, evicted_for="default/big") for p in low[2:]))
        other = gang(2, "other", queue="r", priority=99, created=0)
        stage.world.board(*other)
        assert not any(stage.world.seats(*other))

    async def test_nobody_of_equal_or_higher_priority_goes(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "equal", priority=10)
        stage.want(4)
        assert await stage.look() == []
        assert stage.world.api.calls == []

    async def test_nobody_of_another_queue_goes(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "other", queue="r")
        stage.want(4)
        assert await stage.look() == []

    async def test_who_is_not_to_preempt_or_not_to_be_preempted_is_left_alone(self) -> None:
        for preemptible, preempts in ((False, True), (True, False)):
            stage = Theatre(PREEMPT)
            stage.run(4, "low", preemptible=preemptible)
            stage.want(4, preempts=preempts)
            assert await stage.look() == []

    async def test_surplus_of_an_elastic_gang_goes_first_and_its_floor_stays(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "elastic", floor=2)
        stage.want(1)
        await stage.look()
        assert stage.evicted() == ["elastic-3"]

    async def test_a_gang_is_safe_for_as_long_as_its_queue_or_the_default_says(self) -> None:
        for queue_seconds, default in ((60.0, 0.0), (None, 60.0)):
            stage = Theatre(PREEMPT, min_seconds=default)
            stage.world.queues.update(a_queue("q", preempt_min_seconds=queue_seconds))
            stage.run(4, "young", bound_at=START - 30)
            stage.want(4)
            assert await stage.look() == []
            assert Reason.EVICTED in await stage.look(after=30)

    async def test_nobody_goes_unless_it_is_switched_on(self) -> None:
        for kinds in ((), (RECLAIM,)):
            stage = Theatre(*kinds)
            stage.run(4, "low")
            stage.want(4)
            assert await stage.look() == []
            assert stage.world.api.calls == []

    async def test_nobody_goes_where_that_would_not_be_enough(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(2, "low")
        stage.run(2, "high", priority=10)
        stage.want(3)
        assert await stage.look() == []

    async def test_in_vain_a_gang_is_looked_at_again_only_after_a_while(self, monkeypatch: Any) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "equal", priority=10)
        stage.want(4)
        looks: list[Any] = []
        monkeypatch.setattr(stage.preemption, "choose", looks.append)
        for _ in range(int(AGAIN_SECONDS)):
            await stage.look(after=1)
        assert len(looks) == 1
        await stage.look(after=1)
        assert len(looks) == 2

    async def test_a_former_leader_evicts_nobody(self) -> None:
        stage = Theatre(PREEMPT)
        stage.run(4, "low")
        stage.want(4)
        stage.leads = False
        await stage.look()
        assert stage.evicted() == []


class TestReclaim:
    """A queue that stays within its quota."""

    def stage(self, quota_q: float, quota_r: float) -> Theatre:
        stage = Theatre(*KINDS)
        stage.world.queues.update(a_queue("q", quota_q))
        stage.world.queues.update(a_queue("r", quota_r))
        return stage

    async def test_it_takes_back_what_another_queue_holds_over_quota_whatever_the_priority(self) -> None:
        stage = self.stage(8, 8)
        stage.run(2, "one", queue="r", priority=50)
        stage.run(2, "two", queue="r", priority=60)
        stage.want(2, priority=0)
        await stage.look()
        assert sorted(stage.evicted()) == ["one-0", "one-1"]

    async def test_what_another_queue_holds_within_quota_stays(self) -> None:
        stage = self.stage(8, 16)
        stage.run(4, "one", queue="r")
        stage.want(2)
        assert await stage.look() == []

    async def test_a_queue_that_would_exceed_its_quota_gets_nothing(self) -> None:
        stage = self.stage(4, 0)
        stage.run(4, "one", queue="r")
        stage.want(2)
        assert await stage.look() == []


class TestEviction:
    """How the victims go."""

    def stage(self) -> Theatre:
        stage = Theatre(PREEMPT)
        stage.run(4, "low")
        stage.want(4)
        return stage

    @staticmethod
    def budget(allowed: int, **labels: str) -> Json:
        spec = {"selector": {"matchLabels": labels}}
        row = {"metadata": {"name": "pdb"}, "spec": spec, "status": {"disruptionsAllowed": allowed}}
        return {"items": [row]}

    @pytest.mark.parametrize(
        ("allowed", "app", "goes"), [(3, "low", False), (4, "low", True), (0, "x", True)]
    )
    async def test_a_budget_must_cover_all_victims_together(self, allowed: int, app: str, goes: bool) -> None:
        stage = self.stage()
        stage.world.api.objects[_BUDGETS] = self.budget(allowed, app=app)
        for i in range(4):
            path = f"/api/v1/namespaces/default/pods/low-{i}"
            stage.world.api.objects[path] = {"metadata": {"labels": {"app": "low"}}}
        await stage.look()
        assert bool(stage.evicted()) == goes
        assert bool(stage.marked()) == goes

    async def test_nobody_goes_if_one_eviction_fails_as_a_dry_run(self) -> None:
        stage = self.stage()
        stage.world.api.fail("low-2/eviction", 429)
        assert await stage.look() == []
        assert stage.evicted() == []
        assert stage.marked() == {}

    async def test_nobody_goes_if_one_can_not_be_marked_and_the_marks_are_taken_back(self) -> None:
        stage = self.stage()
        real = stage.world.api.patch

        async def patch(path: str, body: Any) -> Json:
            if path.endswith("low-2") and body["metadata"]["annotations"]["allaboard.dev/evicted-for"]:
                stage.world.api.fail(path, 500)
            return await real(path, body)

        stage.world.api.patch = patch  # type: ignore[method-assign]
        await stage.look()
        assert stage.evicted() == []
        assert stage.marked() == {"low-0": None, "low-1": None, "low-2": "default/big"}
        assert not stage.world.rounds.keeper.locked

    async def test_who_is_refused_is_asked_again_and_after_a_minute_deleted_with_an_event(
        self,
    ) -> None:
        stage = self.stage()
        await stage.look()
        rest = [replace(stage.world.registry.pods["u-low-0"], evicted_for="default/big")]
        for name in ("low-1", "low-2", "low-3"):
            stage.world.pods.drop(f"u-{name}")
        stage.world.update(*rest)
        stage.world.api.calls.clear()
        assert await stage.look(after=1) == []
        assert stage.evicted() == ["low-0"]
        assert await stage.look(after=PATIENCE_SECONDS) == [Reason.EVICTED]
        (call,) = [c for c in stage.world.api.calls if c.method == "DELETE"]
        assert call.body == {"preconditions": {"uid": "u-low-0"}}

    async def test_the_next_leader_goes_on_with_who_is_marked_and_takes_the_rest_of_a_gang_along(
        self,
    ) -> None:
        stage = Theatre(PREEMPT)
        low = stage.run(4, "low")
        stage.world.update(*(replace(p, evicted_for="default/big") for p in low[:2]))
        await stage.look()
        assert sorted(stage.evicted()) == ["low-0", "low-1", "low-2", "low-3"]

    async def test_members_that_came_after_the_victims_stay(self) -> None:
        stage = Theatre(PREEMPT, cliques={"a": 4, "b": 4})
        old = stage.run(1, "low", bound_at=5)
        stage.world.update(*(replace(p, evicted_for="default/big", terminating=True) for p in old))
        new = gang(2, "low", queue="q", start=1)
        stage.world.board(*new)
        stage.world.update(
            *(replace(p, node=stage.world.seat(p) or "b0", gates=(), bound_at=50.0) for p in new[:1])
        )
        await stage.look()
        assert stage.evicted() == []

    async def test_a_domain_that_was_cleared_in_vain_is_given_to_others_after_a_while(self) -> None:
        stage = self.stage()
        await stage.look()
        for i in range(4):
            stage.world.pods.drop(f"u-low-{i}")
        stage.world.rounds._planner = lambda *_: None
        await stage.look(after=1)
        assert stage.world.rounds.keeper.locked
        await stage.look(after=LOCKED_SECONDS)
        assert not stage.world.rounds.keeper.locked


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
    ],
)
def test_a_budgets_selector_selects_as_the_api_server_does(selector: Any, selected: bool) -> None:
    assert matches(selector, {"a": "1"}) == selected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("1.5m", 90), ("250ms", 0.25), ("", None), ("soon", None), ("5 m", None)],
)
def test_a_queues_minimal_runtime_is_a_go_duration(text: str, seconds: float | None) -> None:
    queue = wire.queue({"metadata": {"name": "q"}, "spec": {"preemptMinRuntime": text}})
    assert queue.preempt_min_seconds == seconds
