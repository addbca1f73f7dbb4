"""When people are told why a gang waits: soon, not too often, and newcomers too."""

import re
from dataclasses import replace

from extender.news import REPEAT_SECONDS, SETTLED_SECONDS, TEXT_SECONDS, Announcement
from extender.standing import Standing
from gangs.notes import Note
from gangs.pods import Demand, Pod
from gangs.reasons import Reason
from tests.builders import LEVEL, make_loose, make_members, make_node, make_owner, make_pod
from tests.extender.world import World


def told(world: World, after: float = 0.0) -> list[Announcement]:
    """What is said after a round so many seconds later."""
    world.round(after)
    return list(world.news.due(world.clock()))


def reasons(said: list[Announcement]) -> list[tuple[str, str]]:
    return sorted((row.pod.name, row.reason) for row in said)


def gathering(number: int = 2) -> World:
    """A gang of four of which so many are here, just before it has settled."""
    world = World()
    world.board(*make_members(number, floor=4, required=LEVEL))
    assert told(world) == []
    return world


def test_a_state_that_lasts_less_than_a_moment_is_not_told() -> None:
    world = gathering()
    assert told(world, SETTLED_SECONDS - 0.1) == []
    world.update(*make_members(4, required=LEVEL))
    assert told(world, 10) == []


def test_each_waiting_member_gets_an_event_once() -> None:
    world = gathering()
    said = told(world, SETTLED_SECONDS)
    assert reasons(said) == [("llm-0", "GangGathering"), ("llm-1", "GangGathering")]
    assert "2 of 4 members are here" in said[0].message
    assert told(world, 1) == told(world, TEXT_SECONDS) == []


def test_a_changed_reason_is_told_at_once_when_it_has_settled() -> None:
    world = gathering(3)
    told(world, SETTLED_SECONDS)
    world.update(make_loose("squatter", node="a0"), *make_members(4, required=LEVEL))
    assert told(world) == []
    said = told(world, SETTLED_SECONDS)
    assert reasons(said) == [(f"llm-{i}", "GangWaiting") for i in range(4)]
    assert "Closest: a has 3 (1 taken by squatter)." in said[0].message


def test_a_changed_sentence_waits_until_a_minute_has_passed() -> None:
    world = World()
    world.board(*make_members(5, required=LEVEL))
    told(world)
    told(world, SETTLED_SECONDS)
    world.nodes.update(make_node("a0", "a", cordoned=True))
    assert told(world, TEXT_SECONDS - 1) == []
    said = told(world, 1)
    assert len(said) == 5
    assert "has 3 (1 cordoned)" in said[0].message


def test_the_same_sentence_is_repeated_every_half_hour() -> None:
    world = gathering()
    told(world, SETTLED_SECONDS)
    assert told(world, REPEAT_SECONDS - 1) == []
    assert len(told(world, 1)) == 2
    assert told(world, 1) == []


def test_a_new_member_is_told_at_once_and_the_others_are_not_told_again() -> None:
    world = gathering()
    told(world, SETTLED_SECONDS)
    world.update(*make_members(1, floor=4, start=2, required=LEVEL))
    said = told(world, 1)
    assert reasons(said) == [("llm-2", "GangGathering")]
    assert told(world, 1) == []


def test_a_new_member_is_told_what_holds_now_and_the_others_a_minute_later() -> None:
    world = gathering()
    told(world, SETTLED_SECONDS)
    world.update(*make_members(1, floor=4, start=2, required=LEVEL))
    [said] = told(world, 1)
    assert "3 of 4 members are here" in said.message == world.news.told(("default", "llm"))
    assert told(world, TEXT_SECONDS - 2) == []
    assert len(told(world, 1)) == 3


def test_another_generation_of_a_gang_is_not_told_what_the_one_before_was() -> None:
    world = gathering()
    told(world, SETTLED_SECONDS)
    for number in range(2):
        world.pods.drop(f"u-llm-{number}")
    again = [replace(pod, uid=f"again-{pod.name}") for pod in make_members(3, floor=9, required=LEVEL)]
    world.update(*again)
    said = told(world, 1)
    assert len(said) == 3
    assert {"3 of 9 members are here" in row.message for row in said} == {True}


def test_a_gang_that_got_its_seats_is_told_nothing_more() -> None:
    world = gathering()
    told(world, SETTLED_SECONDS)
    world.update(*make_members(4, required=LEVEL))
    assert told(world, REPEAT_SECONDS * 2) == []


def test_a_cancelled_boarding_is_told_with_its_reason() -> None:
    world = World()
    world.board(*make_members(2, required=LEVEL))
    for _ in range(7):
        world.store.lose(world.registry.pods["u-llm-0"], "no disk")
        world.round(after=10)
    world.store.lose(world.registry.pods["u-llm-0"], "no disk")
    assert told(world) == []
    said = told(world, SETTLED_SECONDS)
    assert reasons(said) == [("llm-0", Standing.BACKING_OFF), ("llm-1", Standing.BACKING_OFF)]
    assert said[0].message.startswith("Gang default/llm: boarding was cancelled (llm-0 on a")
    assert said[0].message.endswith(": no disk); it is tried again shortly.")


def test_nodes_that_kube_scheduler_refused_are_counted_where_there_seems_to_be_room() -> None:
    world = World({"a": 2})
    world.board(*make_members(2, required=LEVEL))
    for _ in range(4):
        for number in range(2):
            world.store.lose(world.registry.pods[f"u-llm-{number}"], "taken")
        world.round(after=5)
    assert world.standing() is Standing.WAITING
    told(world)
    said = told(world, SETTLED_SECONDS)
    assert "Closest: a has 2. kube-scheduler has refused 2 nodes just now" in said[0].message
    assert re.search(r"the last: llm-\d on a\d: taken\.$", said[0].message)


def test_a_gang_that_boards_while_others_are_told_is_told_nothing() -> None:
    world = World({"a": 1})
    world.board(*make_members(2, name="first", required=LEVEL))
    world.board(*make_members(2, name="second", required=LEVEL, created=1))
    world.board(*make_members(9, name="third", required=LEVEL, created=2))
    told(world)
    world.clock.advance(SETTLED_SECONDS)
    steps = world.news.steps(world.clock())
    said = [*next(steps), *next(steps)]
    for number in range(3):
        world.nodes.update(make_node(f"n{number}", "a"))
    world.round()
    said += [row for step in steps for row in step]
    assert {row.pod.gang for row in said} == {"first", "third"}


def test_the_gang_ahead_is_named() -> None:
    world = World({"a": 4})
    world.update(make_loose("squatter", node="a0"))
    world.board(*make_members(4, name="big", required=LEVEL))
    world.board(*make_members(2, name="small", required=LEVEL, created=1))
    told(world)
    said = told(world, SETTLED_SECONDS)
    assert [row.message.partition(" Room elsewhere")[2] for row in said if row.pod.gang == "small"] == [
        " is kept for gang default/big, which is ahead in the queue."
    ] * 2


def test_the_controller_is_told_once_whenever_its_members_are() -> None:
    world = World()
    world.board(*make_members(2, floor=4, required=LEVEL, owner=make_owner()))
    told(world)
    said = told(world, SETTLED_SECONDS)
    assert [row.owner for row in said] == [make_owner(), None, None]
    assert len({row.message for row in said}) == 1
    assert told(world, 1) == []
    assert [row.owner for row in told(world, REPEAT_SECONDS)] == [make_owner(), None, None]


def test_a_newcomer_is_told_without_telling_the_controller_again() -> None:
    world = World()
    world.board(*make_members(2, floor=4, required=LEVEL, owner=make_owner()))
    told(world)
    told(world, SETTLED_SECONDS)
    world.update(*make_members(1, floor=4, start=2, required=LEVEL, owner=make_owner()))
    assert [(row.pod.name, row.owner) for row in told(world, 1)] == [("llm-2", None)]


class TestNotes:
    """What the webhook noted."""

    def noted(self, name: str, *messages: str, **rest: object) -> Pod:
        demand = Demand(9, notes=tuple(Note(m) for m in messages))
        return make_pod(name, demand=demand, **rest)  # type: ignore[arg-type]

    def test_they_are_told_at_once_on_each_pod_and_once_on_the_owner(self) -> None:
        world = World()
        world.update(*(self.noted(f"llm-{i}", "no such level", owner=make_owner()) for i in range(2)))
        said = told(world)
        assert {row.reason for row in said} == {Reason.NOTED}
        assert sorted(row.pod.name for row in said if not row.owner) == ["llm-0", "llm-1"]
        assert [row.owner for row in said if row.owner] == [make_owner()]
        assert {row.message for row in said} == {"no such level"}

    def test_they_are_told_once_only(self) -> None:
        world = World()
        world.update(self.noted("llm-0", "no such level"))
        assert len(told(world)) == 1
        world.update(self.noted("llm-0", "no such level"))
        assert told(world) == []

    def test_another_note_is_told_on_the_owner_too(self) -> None:
        world = World()
        world.update(self.noted("llm-0", "one", "two", owner=make_owner()))
        assert len(told(world)) == 4


def test_a_namesake_that_comes_within_the_second_is_told_its_own_sentence() -> None:
    world = gathering(3)
    told(world, SETTLED_SECONDS)
    for pod in make_members(3, floor=4, required=LEVEL):
        world.pods.drop(pod.uid)
    world.update(make_pod("llm-0", uid="u-again", floor=2, required=LEVEL))
    [row] = told(world, 0.5)
    assert "1 of 2 members are here" in row.message
