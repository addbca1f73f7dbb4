"""Who sits where, and what is left: by example, and against a room counted anew for all histories."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangs.contract import GPU
from gangs.nodes import Shape
from gangs.room import DomainRoom, Level, Room, Seat, domain_of, fitting, scarcest
from tests.builders import CLIQUE, FOUR_GPUS, LEVEL, make_node, make_room, make_shape

ONE_GPU = make_shape(1)


def seat(node: str, gpus: int = 4, owner: str = "job-7") -> Seat:
    return Seat(node, {GPU: gpus, "pods": 1}, owner)


def test_the_largest_domain_is_counted_as_if_it_were_empty_and_anew_when_nodes_change() -> None:
    room, shape = make_room({"a": 3, "b": 2}), make_shape(4)
    room.take("u", Seat("a0", {GPU: 4}, "job"))
    room.put_node(make_node("a1", "a", cordoned=True))
    assert room.largest(LEVEL, shape) == room.largest(LEVEL, shape) == 3
    room.put_node(make_node("b2", "b", gpus=8))
    assert room.largest(LEVEL, shape) == 4
    assert room.largest((), shape) == 7
    assert room.largest(("no/label",), shape) == 0


def test_a_node_has_as_many_slots_as_its_scarcest_resource_allows() -> None:
    room = make_room({"a": 1}, gpus=8)
    node = room.nodes["a0"]
    assert room.slots(FOUR_GPUS, node) == 2
    assert room.slots(Shape({GPU: 1, "cpu": 32_000, "pods": 1}), node) == 2
    assert room.slots(Shape({"nvidia.com/pgpu": 1, "pods": 1}), node) == 0


def test_a_promised_seat_takes_room_until_it_is_given_back() -> None:
    room = make_room({"a": 1})
    room.take("u-1", seat("a0"))
    assert room.slots(FOUR_GPUS, room.nodes["a0"]) == 0
    room.give("u-1")
    assert room.slots(FOUR_GPUS, room.nodes["a0"]) == 1


def test_a_holder_has_one_seat_only() -> None:
    room = make_room({"a": 2})
    room.take("u-1", seat("a0"))
    room.take("u-1", seat("a1"))
    assert room.free(room.nodes["a0"])[GPU] == 4
    assert room.free(room.nodes["a1"])[GPU] == 0
    assert [uid for uid, _ in room.holders("a1")] == ["u-1"]


def test_the_same_seat_twice_counts_once_and_giving_nothing_changes_nothing() -> None:
    room = make_room({"a": 1}, gpus=8)
    room.take("u-1", seat("a0"))
    grown = room.growth
    room.take("u-1", seat("a0"))
    room.give("nobody")
    assert room.free(room.nodes["a0"])[GPU] == 4
    assert room.growth == grown


def test_growth_rises_when_room_may_have_come_and_not_when_it_went() -> None:
    room = make_room({"a": 1})
    grown = room.growth
    room.take("u-1", seat("a0"))
    assert room.growth == grown
    room.give("u-1")
    assert room.growth > grown
    grown = room.growth
    room.put_node(make_node("a0", "a"))
    assert room.growth == grown
    room.put_node(make_node("a0", "a", cordoned=True))
    assert room.growth > grown


def test_a_dropped_node_offers_nothing_and_remembers_its_holders_when_it_comes_back() -> None:
    room = make_room({"a": 1}, gpus=8)
    room.take("u-1", seat("a0"))
    room.drop_node("a0")
    assert room.members(LEVEL, FOUR_GPUS, ("a",)) == {}
    room.put_node(make_node("a0", "a", gpus=8))
    assert room.members(LEVEL, FOUR_GPUS, ("a",)) == {"a0": 1}


def test_an_overcommitted_node_has_no_slots_rather_than_negative_ones() -> None:
    room = make_room({"a": 2})
    for number in range(2):
        room.take(f"u-{number}", seat("a0"))
    assert room.free(room.nodes["a0"])[GPU] == -4
    assert room.domains(LEVEL, FOUR_GPUS) == {("a",): DomainRoom(1, 4)}


def test_a_domain_counts_slots_and_free_units_of_nodes_that_take_the_shape() -> None:
    room = make_room({"a": 2, "b": 1})
    room.put_node(make_node("loose"))
    room.take("u-1", seat("a0", 3))
    assert room.domains(LEVEL, ONE_GPU) == {("a",): DomainRoom(5, 5), ("b",): DomainRoom(4, 4)}
    assert room.domains(LEVEL, FOUR_GPUS) == {("a",): DomainRoom(1, 4), ("b",): DomainRoom(1, 4)}


def test_a_domain_whose_last_node_is_gone_or_relabelled_exists_no_more() -> None:
    room = make_room({"a": 1, "b": 1})
    assert set(room.domains(LEVEL, FOUR_GPUS)) == {("a",), ("b",)}
    room.put_node(make_node("a0", "c"))
    room.drop_node("b0")
    assert set(room.domains(LEVEL, FOUR_GPUS)) == {("c",)}


def test_a_level_of_two_labels_needs_both() -> None:
    level = ("zone", CLIQUE)
    assert domain_of(make_node("n", "a", labels={"zone": "z"}), level) == ("z", "a")
    assert domain_of(make_node("n", "a"), level) is None
    assert domain_of(make_node("n"), ()) == ()


def test_the_nodes_of_a_domain_come_by_name() -> None:
    room = make_room({"b": 1, "a": 3})
    assert [n.name for n in room.nodes_of(LEVEL, ("a",))] == ["a0", "a1", "a2"]
    assert [n.name for n in room.nodes_of((), ())] == ["a0", "a1", "a2", "b0"]


@pytest.mark.parametrize(
    ("requests", "scarce"),
    [
        ({GPU: 1, "cpu": 1, "a.example/x": 1}, GPU),
        ({"cpu": 1, "b.example/x": 1, "a.example/x": 1}, "a.example/x"),
        ({"memory": 1, "pods": 1}, "cpu"),
    ],
)
def test_a_shape_is_packed_by_what_is_scarce(requests: dict[str, int], scarce: str) -> None:
    assert scarcest(requests) == scarce


def test_fitting_never_goes_below_none() -> None:
    assert fitting({GPU: 4}, {GPU: -8}) == 0
    assert fitting({GPU: 4, "pods": 1}, {GPU: 11, "pods": 9}) == 2


_NAMES = st.sampled_from(["n0", "n1", "n2", "n3"])
_UIDS = st.sampled_from(["u0", "u1", "u2", "u3", "u4"])
_STEPS = st.one_of(
    st.tuples(st.just("put"), _NAMES, st.sampled_from(["", "a", "b"]), st.integers(0, 8), st.booleans()),
    st.tuples(st.just("drop"), _NAMES),
    st.tuples(st.just("take"), _UIDS, _NAMES, st.integers(0, 8)),
    st.tuples(st.just("give"), _UIDS),
    st.tuples(st.just("look")),
)
_LEVELS: tuple[Level, ...] = ((), LEVEL)


@settings(max_examples=80, deadline=None)
@given(st.lists(_STEPS, max_size=30))
def test_what_is_cached_equals_what_is_counted_anew_whatever_happened_before(steps: list[Any]) -> None:
    room = Room()
    for step in steps:
        match step:
            case "put", name, clique, gpus, cordoned:
                room.put_node(make_node(name, clique, gpus, cordoned=cordoned))
            case "drop", name:
                room.drop_node(name)
            case "take", uid, name, gpus:
                room.take(uid, seat(name, gpus))
            case "give", uid:
                room.give(uid)
            case _:
                _look(room)
    assert _look(room) == _look(_counted_anew(room))


def _look(room: Room) -> list[Any]:
    views = []
    for level in _LEVELS:
        for shape in (ONE_GPU, FOUR_GPUS):
            domains = dict(room.domains(level, shape))
            views.append((domains, {d: dict(room.members(level, shape, d)) for d in domains}))
    return views


def _counted_anew(room: Room) -> Room:
    fresh = Room()
    for node in room.nodes.values():
        fresh.put_node(node)
    for uid, taken in room.seats.items():
        fresh.take(uid, taken)
    return fresh
