"""Gangs that lost a member: where a period is set they run on for so long, else for ever."""

from dataclasses import replace

import pytest

from extender import wire
from extender.stale import Stale
from gangs import contract
from gangs.pods import Demand, Pod
from gangs.reasons import Reason
from tests.builders import LEVEL, make_members, make_owner, pod_object
from tests.extender.world import World


def running(period: float | None) -> tuple[World, Stale, list[Pod]]:
    """A gang of three, all bound."""
    world = World({"a": 4})
    demand = Demand(min_member=3, size=3, required=LEVEL, staleness=period)
    members = make_members(3, demand=demand, owner=make_owner())
    world.board(*members)
    world.bind(*members)
    return world, Stale(world.api, world.registry, world.clock), members


async def ended(world: World, stale: Stale, after: float) -> list[str]:
    """Who is told, after so many seconds, that it is evicted."""
    await stale.end()
    world.clock.advance(after)
    said = await stale.end()
    assert {row.reason for row in said} <= {Reason.STALE}
    return sorted(row.pod.name for row in said)


async def test_the_rest_of_a_gang_that_lost_a_member_is_evicted_after_its_period() -> None:
    world, stale, members = running(30)
    world.pods.drop(members[2].uid)
    assert await ended(world, stale, 29) == []
    world.clock.advance(1)
    said = await stale.end()
    assert [row.pod.name for row in said] == ["llm-0", "llm-1"]
    assert "2 of 3 members run" in said[0].message
    assert "this one is evicted" in said[0].message
    assert world.api.paths() == [f"/api/v1/namespaces/default/pods/llm-{i}/eviction" for i in (0, 1)]


async def test_without_a_period_it_runs_on_for_ever() -> None:
    world, stale, members = running(None)
    world.pods.drop(members[2].uid)
    assert await ended(world, stale, 1e6) == []


async def test_a_member_that_is_replaced_in_time_ends_the_clock() -> None:
    world, stale, members = running(30)
    world.pods.drop(members[2].uid)
    await stale.end()
    world.clock.advance(29)
    world.board(replace(members[2], uid="u-new"))
    world.bind(replace(members[2], uid="u-new"))
    await stale.end()
    world.pods.drop("u-new")
    assert await ended(world, stale, 29) == []


async def test_a_gang_of_which_a_member_has_succeeded_is_ending_not_stale() -> None:
    world, stale, members = running(30)
    seat = world.registry.pods[members[0].uid].node
    world.update(replace(members[0], node=seat, terminal=True, succeeded=True))
    assert await ended(world, stale, 1e6) == []


async def test_an_eviction_that_is_refused_is_told_and_tried_again_a_minute_later() -> None:
    world, stale, members = running(0)
    world.pods.drop(members[2].uid)
    world.api.fail("/llm-0/eviction", 429)
    said = await stale.end()
    assert "could not be evicted" in next(row.message for row in said if row.pod.name == "llm-0")
    assert await stale.end() == []
    world.clock.advance(60)
    assert "is evicted" in (await stale.end())[0].message


@pytest.mark.parametrize(
    ("text", "period"), [("90s", 90.0), ("0s", 0.0), ("-1s", None), ("soon", None), ("", None)]
)
def test_the_period_is_read_from_the_pod_and_what_is_none_means_for_ever(
    text: str, period: float | None
) -> None:
    obj = pod_object(annotations={contract.ANNOTATION_STALENESS: text})
    assert wire.pod(obj).demand.staleness == period


def test_groves_gangs_are_never_stale() -> None:
    obj = pod_object(annotations={contract.ANNOTATION_STALENESS: "90s"})
    obj["metadata"]["labels"][contract.GROVE_PODGANG] = "inference-0"
    assert wire.pod(obj).demand.staleness is None
