"""What a controller could not create is told to those that wait for it."""

from typing import Any

from extender.absentees import AGAIN_SECONDS, PER_LOOK
from tests.builders import Json, make_owner, make_pod
from tests.extender.world import World, gang

EVENTS = "/api/v1/namespaces/default/events"
QUOTA = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=4, used: 12, limited: 12"


def failed(message: str, at: str = "2026-01-01T00:00:00Z", **rest: Any) -> Json:
    return {"reason": "FailedCreate", "message": message, "lastTimestamp": at, **rest}


def short(name: str = "llm") -> World:
    """A gang of four of which three are here."""
    world = World()
    gather(world, name)
    return world


def gather(world: World, name: str) -> None:
    world.board(*gang(4, name, owner=make_owner(name))[:3])


def sentence(world: World) -> str:
    return world.news.sentence(world.rounds.pending["default", "llm"])


async def test_the_newest_refusal_is_told_without_the_name_of_a_pod_that_never_was() -> None:
    world = short()
    old = failed('create Pod llm-3 failed: pods "llm-3" is forbidden: something else')
    new = failed(f'create Pod llm-3 failed: pods "llm-3" is forbidden: {QUOTA}.', "2026-01-01T00:00:09Z")
    world.api.objects[EVENTS] = {"items": [new, old]}
    await world.absentees.look(world.rounds.pending)
    assert sentence(world).endswith(
        f"waiting for 1 more Pod to be created. StatefulSet llm can't create it: {QUOTA}."
    )


async def test_nothing_is_added_where_the_controller_has_no_complaint() -> None:
    world = short()
    world.api.objects[EVENTS] = {"items": []}
    await world.absentees.look(world.rounds.pending)
    assert sentence(world).endswith("waiting for 1 more Pod to be created.")


async def test_a_refusal_is_told_at_once_although_the_reason_is_the_same() -> None:
    world = short()
    list(world.news.due(world.clock()))
    world.round(3)
    assert len(list(world.news.due(world.clock()))) == 3 + 1  # and their controller
    world.api.objects[EVENTS] = {"items": [failed(QUOTA)]}
    await world.absentees.look(world.rounds.pending)
    world.round(1)
    said = list(world.news.due(world.clock()))
    assert [QUOTA in row.message for row in said] == [True] * 4
    world.round(1)
    assert list(world.news.due(world.clock())) == []


async def test_a_gang_is_asked_about_again_only_after_a_while() -> None:
    world = short()
    await world.absentees.look(world.rounds.pending)
    world.round(AGAIN_SECONDS - 1)
    await world.absentees.look(world.rounds.pending)
    assert len(world.api.paths("GET")) == 1
    world.round(1)
    await world.absentees.look(world.rounds.pending)
    assert len(world.api.paths("GET")) == 2


async def test_of_many_gangs_a_few_are_asked_about_at_a_time_and_nobody_is_forgotten() -> None:
    world = World()
    for number in range(2 * PER_LOOK):
        gather(world, f"llm-{number}")
    await world.absentees.look(world.rounds.pending)
    assert len(world.api.calls) == PER_LOOK
    await world.absentees.look(world.rounds.pending)
    await world.absentees.look(world.rounds.pending)
    assert len(world.api.calls) == 2 * PER_LOOK


async def test_a_whole_gang_and_bare_pods_cost_no_call() -> None:
    world = World()
    world.board(*gang(5, owner=make_owner("llm")))
    world.board(make_pod("bare", gang="bare", floor=2))
    await world.absentees.look(world.rounds.pending)
    assert world.api.calls == []


async def test_what_was_known_is_forgotten_once_all_are_here() -> None:
    world = short()
    world.api.objects[EVENTS] = {"items": [failed(QUOTA)]}
    await world.absentees.look(world.rounds.pending)
    assert world.absentees.why(("default", "llm"))
    world.board(*gang(4, owner=make_owner("llm")))
    await world.absentees.look(world.rounds.pending)
    assert world.absentees.why(("default", "llm")) == ""


async def test_an_api_server_that_is_away_changes_nothing() -> None:
    world = short()
    world.api.fail(EVENTS, 0)
    await world.absentees.look(world.rounds.pending)
    assert sentence(world).endswith("waiting for 1 more Pod to be created.")
