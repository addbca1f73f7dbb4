"""Gangs left half bound: given a minute, then evicted or told what to do."""

from dataclasses import replace
from typing import Any

from extender.torn import PATIENCE_SECONDS, Torn
from gangs.pods import Demand, Owner, Plan, Pod
from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.tree import Queue
from gangs.reasons import Reason
from gangs.subgroups import Subgroup
from tests.builders import LEVEL, make_loose, make_members, make_owner
from tests.extender.world import World

EVICTIONS = [f"/api/v1/namespaces/default/pods/llm-{i}/eviction" for i in range(3)]


def half_bound(owner: Owner | None, **asks: Any) -> tuple[World, Torn, list[Pod]]:
    """A gang of four in a clique of four, of which three are bound and the last seat is taken by others."""
    world = World({"a": 4, "b": 4})
    members = make_members(4, owner=owner, created=1, **(asks or {"required": LEVEL}))
    world.board(*members)
    planned = [replace(p, plan=Plan(world.seat(p), ("a",), 480, p.uid, world.term)) for p in members]
    world.update(*planned)
    for pod in planned[:3]:
        world.update(replace(pod, node=world.seat(pod), gates=(), bound_at=5))
    world.update(make_loose("thief", node=world.seat(planned[3])))
    world.store.lose(planned[3], "somebody took the room")
    world.round(after=1)
    return world, Torn(world.api, world.rounds, world.clock), planned


async def test_bound_members_are_evicted_after_a_minute_and_told_why() -> None:
    world, torn, _ = half_bound(make_owner())
    assert await torn.mend() == []
    world.round(after=PATIENCE_SECONDS - 1)
    assert await torn.mend() == []
    world.round(after=1)
    said = await torn.mend()
    assert sorted(world.api.paths()) == EVICTIONS
    assert {row.reason for row in said} == {Reason.TORN}
    assert sorted(row.pod.name for row in said) == ["llm-0", "llm-1", "llm-2"]
    assert "this one is evicted" in said[0].message


async def test_a_gang_of_which_only_a_subgroup_asks_for_a_clique_is_mended_too() -> None:
    workers = Subgroup("workers", 4, required=LEVEL)
    world, torn, _ = half_bound(make_owner(), demand=Demand(4, subgroups=(workers,)))
    await torn.mend()
    world.round(after=PATIENCE_SECONDS)
    said = await torn.mend()
    assert sorted(world.api.paths()) == EVICTIONS
    assert "the rest finds no room in their domains for a minute" in said[0].message


async def test_an_eviction_names_the_pod_by_uid() -> None:
    world, torn, _ = half_bound(make_owner())
    await torn.mend()
    world.round(after=PATIENCE_SECONDS)
    await torn.mend()
    body = next(call.body for call in world.api.calls if call.path == EVICTIONS[0])
    assert body["kind"] == "Eviction"
    assert body["deleteOptions"] == {"preconditions": {"uid": "u-llm-0"}}


async def test_pods_that_nobody_would_create_again_are_kept_and_told_what_to_do() -> None:
    world, torn, _ = half_bound(None)
    await torn.mend()
    world.round(after=PATIENCE_SECONDS)
    said = await torn.mend()
    assert world.api.calls == []
    assert "delete it to free the gang" in said[0].message


async def test_a_refused_eviction_is_asked_again_a_minute_later() -> None:
    world, torn, _ = half_bound(make_owner())
    await torn.mend()
    world.api.fail("eviction", 429, 429, 429)
    world.round(after=PATIENCE_SECONDS)
    said = await torn.mend()
    assert "so it is kept" in said[0].message
    world.round(after=PATIENCE_SECONDS - 1)
    assert await torn.mend() == []
    world.round(after=1)
    await torn.mend()
    assert sorted(world.api.paths()[3:]) == EVICTIONS


async def test_room_that_comes_within_the_minute_mends_the_gang_by_itself() -> None:
    world, torn, members = half_bound(make_owner())
    await torn.mend()
    world.pods.drop("u-thief")
    world.round(after=31)
    assert world.seat(members[3]) == "a3"
    world.round(after=29)
    assert await torn.mend() == []
    assert world.api.calls == []


def torn_in_a_queue(limit_after: float) -> tuple[World, Torn, list[Pod]]:
    """A gang of four, all that its queue allows; three are bound when the fourth loses its seat."""
    world = World({"a": 8})
    world.queues.update(_limited(16))
    members = make_members(4, required=LEVEL, owner=make_owner(), created=1, queue="q")
    world.board(*members)
    planned = [replace(p, plan=Plan(world.seat(p), ("a",), 480, p.uid, world.term)) for p in members]
    world.update(*planned)
    for pod in planned[:3]:
        world.update(replace(pod, node=world.seat(pod), gates=(), bound_at=5))
    world.queues.update(_limited(limit_after))
    world.store.lose(planned[3], "the node was refused")
    return world, Torn(world.api, world.rounds, world.clock), planned


def _limited(gpus: float) -> Queue:
    return Queue("q", limit=Amounts(gpus, UNLIMITED, UNLIMITED))


def test_nobody_of_its_queue_takes_what_a_torn_gang_still_needs_below_the_limit() -> None:
    world, _, members = torn_in_a_queue(limit_after=16)
    other = make_members(1, name="other", required=LEVEL, queue="q", priority=99)
    world.board(*other)
    for _ in range(3):
        world.round(after=1)
    assert world.seats(*other) == [""]
    assert world.seat(members[3])


async def test_a_gang_torn_by_the_limit_of_its_queue_starts_anew_and_is_told_so() -> None:
    world, torn, _ = torn_in_a_queue(limit_after=12)
    world.round(after=1)
    await torn.mend()
    world.round(after=PATIENCE_SECONDS)
    said = await torn.mend()
    assert sorted(world.api.paths()) == EVICTIONS
    assert "3 of 4 members are bound and the rest is over the limit of its queue for a minute now" in (
        said[0].message
    )
