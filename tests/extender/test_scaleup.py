"""Gangs that only more nodes can help are ungated after a while, where that is asked for."""

from dataclasses import replace

import pytest

from extender import scaleup
from extender.scaleup import ScaleUp
from gangs.reasons import Reason
from tests.builders import make_node
from tests.extender.world import World, gang


def waiting(number: int, after: float | None = 60.0) -> tuple[World, ScaleUp]:
    """So many members and one clique of four."""
    world = World({"a": 4})
    world.board(*(replace(p, version="5") for p in gang(number)))
    return world, ScaleUp(world.api, world.rounds, world.clock, after)


async def test_its_gates_fall_after_the_time_that_was_set_and_an_event_says_why() -> None:
    world, scale_up = waiting(5)
    assert await scale_up.release() == []
    world.clock.advance(59)
    assert await scale_up.release() == []
    world.clock.advance(1)
    said = await scale_up.release()
    assert {row.reason for row in said} == {Reason.RELEASED}
    assert "a cluster autoscaler sees its Pods" in said[0].message
    assert [call.path for call in world.api.calls] == [
        f"/api/v1/namespaces/default/pods/llm-{i}" for i in range(5)
    ]
    assert world.api.calls[0].body == {
        "metadata": {"uid": "u-llm-0", "resourceVersion": "5"},
        "spec": {"schedulingGates": None},
    }


async def test_a_gang_that_waits_for_others_to_leave_keeps_its_gates() -> None:
    world, scale_up = waiting(4)
    assert world.written.grants
    world.board(*(replace(p, version="5") for p in gang(4, name="next")))
    await scale_up.release()
    world.clock.advance(1e6)
    assert await scale_up.release() == []


async def test_it_boards_like_any_other_once_nodes_have_come() -> None:
    world, scale_up = waiting(5, after=0)
    assert len(await scale_up.release()) == 5
    world.update(*(replace(p, gates=(), version="6") for p in gang(5)))
    world.nodes.update(make_node("a4", "a"))
    world.round()
    assert len(world.written.grants[-1].seats) == 5
    assert await scale_up.release() == []


async def test_by_default_no_gate_ever_falls() -> None:
    world, scale_up = waiting(5, after=None)
    world.clock.advance(1e6)
    assert await scale_up.release() == []


async def test_no_more_pods_are_held_by_refusal_for_it_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scaleup, "MOST", 9)
    world, scale_up = waiting(5, after=0)
    world.board(*(replace(p, version="5") for p in gang(6, name="more")))
    assert {row.pod.demand.required for row in await scale_up.release()} == {("nvidia.com/gpu.clique",)}
    assert len(world.api.calls) == 5
    world.update(*(replace(p, gates=(), version="6") for p in gang(5)))
    world.round()
    assert await scale_up.release() == []


async def test_a_write_that_is_refused_is_tried_again() -> None:
    world, scale_up = waiting(5, after=0)
    world.api.fail("/llm-0", 409)
    assert sorted(row.pod.name for row in await scale_up.release()) == [f"llm-{i}" for i in range(1, 5)]
    assert "llm-0" in {row.pod.name for row in await scale_up.release()}
