"""The permit store: seats in the room follow the permits, and whoever must know is told."""

import pytest

from extender.store import REFUSAL_SECONDS, seat_of
from gangs.contract import GPU
from gangs.permits import BOARDING_SECONDS, QUIET_SECONDS, Arrived, Bound, Granted
from tests.builders import KEY, LEVEL, make_loose, make_members, make_owner, make_pod
from tests.extender.world import World


def granted(number: int = 2) -> World:
    world = World()
    world.update(*make_members(number, required=LEVEL))
    seats = {f"u-llm-{i}": f"a{i}" for i in range(number)}
    world.store.apply(KEY, Granted(seats, ("a",), number))
    return world


def free(world: World) -> list[int]:
    return [world.room.free(node)[GPU] for node in world.room.nodes.values()]


def test_promised_seats_are_taken_in_the_room_at_once() -> None:
    assert free(granted()) == [0, 0, 4, 4]


def test_a_cancelled_boarding_frees_them_all() -> None:
    world = granted()
    world.store.lose(world.registry.pods["u-llm-0"], "no disk")
    assert free(world) == [4, 4, 4, 4]


def test_a_bound_member_keeps_its_room_when_its_seat_is_used_up() -> None:
    world = granted()
    world.bind(world.registry.pods["u-llm-0"])
    assert world.store.permit(KEY).seats == {"u-llm-1": "a1"}
    assert free(world) == [0, 0, 4, 4]


def test_each_change_wakes_the_planning_round_and_marks_the_gang() -> None:
    world = granted()
    world.registry.changed.clear()
    world.woken = 0
    world.store.apply(KEY, Arrived("u-llm-0"))
    assert world.woken == 1
    assert world.registry.changed == {KEY}


def test_what_changes_nothing_wakes_nobody() -> None:
    world = granted()
    world.woken = 0
    world.store.tick()
    world.store.lose(make_loose("x"), "never had a seat")
    assert world.woken == 0


def test_a_lost_seat_is_avoided_for_a_while_and_its_reason_kept() -> None:
    world = granted()
    world.store.lose(world.registry.pods["u-llm-0"], "no disk")
    assert world.store.avoided(KEY) == {("u-llm-0", "a0")}
    assert world.store.last_failure[KEY] == "llm-0 on a0: no disk"
    world.clock.advance(REFUSAL_SECONDS)
    assert world.store.avoided(KEY) == frozenset()


@pytest.mark.parametrize("seconds", [QUIET_SECONDS, BOARDING_SECONDS])
def test_the_clock_ends_a_boarding_whose_members_do_not_come(seconds: float) -> None:
    world = granted()
    world.clock.advance(seconds)
    world.store.tick()
    assert free(world) == [4, 4, 4, 4]
    assert world.store.last_failure[KEY] == "not every member reached the barrier in time"


def test_a_forgotten_gang_starts_afresh() -> None:
    world = granted()
    world.store.lose(world.registry.pods["u-llm-0"], "no disk")
    world.store.forget(KEY)
    assert world.store.permit(KEY).failures == 0
    assert world.store.avoided(KEY) == frozenset()
    assert free(world) == [4, 4, 4, 4]


def test_forgetting_a_gang_takes_no_room_from_who_is_bound() -> None:
    world = granted()
    world.bind(world.registry.pods["u-llm-0"])
    world.store.forget(KEY)
    assert free(world) == [0, 4, 4, 4]


def test_a_seat_belongs_to_one_pod_of_one_gang() -> None:
    world = granted()
    assert world.store.seat(world.registry.pods["u-llm-1"]) == "a1"
    assert world.store.seat(make_pod("llm-1", uid="another")) is None
    assert world.store.seat(make_pod("llm-1", namespace="other")) is None
    assert world.store.seat(make_loose("llm-1")) is None


def test_word_of_a_member_that_has_no_seat_changes_no_other() -> None:
    world = granted()
    world.store.apply(KEY, Bound("stranger"))
    assert len(world.store.permit(KEY).seats) == 2


def test_whoever_holds_room_is_named_by_its_controller() -> None:
    for pod, name in ((make_pod(owner=make_owner("mine")), "mine"), (make_pod("llm-0"), "llm-0")):
        assert seat_of(pod, "a0", pod.shape).owner == name
