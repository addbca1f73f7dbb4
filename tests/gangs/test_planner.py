"""Which domain a gang boards: the rules by example, then against brute force on small clusters."""

from collections import Counter
from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangs.contract import GPU
from gangs.keeping import able_domains, domain_to_keep
from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.planner import (
    Boarding,
    Kept,
    Placement,
    explain,
    for_equals,
    place,
)
from gangs.room import Room, Seat
from tests.builders import CLIQUE, LEVEL, candidates, make_node, make_room, make_shape

RACK = "rack"


def ask(number: int, **rest: object) -> Boarding:
    """All of so many members in one clique, unless told otherwise."""
    wanted = {"members": candidates(number), "floor": number, "required": LEVEL, **rest}
    return Boarding(**wanted)  # type: ignore[arg-type]


def placed(boarding: Boarding, room: Room, kept: Kept | None = None) -> Placement:
    found = place(boarding, room, kept)
    assert found is not None
    return found


def occupy(room: Room, *nodes: str) -> Room:
    for node in nodes:
        room.take(f"holder-{node}", Seat(node, {GPU: 4, "pods": 1}, "job-7"))
    return room


def racks(sizes: Mapping[str, int]) -> Room:
    """Nodes of one clique in racks of these sizes."""
    room = Room()
    for rack, size in sizes.items():
        for number in range(size):
            room.put_node(make_node(f"{rack}{number}", "a", labels={RACK: rack}))
    return room


def test_a_gang_that_fits_only_one_clique_boards_that_one() -> None:
    assert placed(ask(4), make_room({"a": 3, "b": 18})).domain == ("b",)


def test_a_gang_that_fits_only_the_fuller_clique_leaves_the_empty_one_whole() -> None:
    room = occupy(make_room({"a": 8, "b": 8}), "b0", "b1", "b2", "b3")
    found = placed(ask(4), room)
    assert found.domain == ("b",)
    assert set(found.nodes.values()) == {"b4", "b5", "b6", "b7"}


def test_of_equal_cliques_the_first_by_name_is_taken() -> None:
    assert placed(ask(2), make_room({"c": 4, "b": 4, "d": 4})).domain == ("b",)


def test_it_is_all_or_nothing() -> None:
    assert place(ask(4), make_room({"a": 3, "b": 3})) is None


def test_an_elastic_gang_takes_as_many_seats_as_there_are_from_its_floor_on() -> None:
    room = make_room({"a": 5, "b": 3})
    found = placed(ask(6, floor=4), room)
    assert found.domain == ("a",)
    assert len(found.nodes) == 5
    assert place(ask(6, floor=6), room) is None


def test_a_clique_with_room_for_members_yet_to_come_is_preferred_to_a_tighter_one() -> None:
    room = make_room({"a": 2, "b": 6, "c": 9})
    assert placed(ask(2), room).domain == ("a",)
    assert placed(ask(2, outlook=6), room).domain == ("b",)


def test_where_no_clique_takes_all_that_are_to_come_the_roomiest_is_taken() -> None:
    assert placed(ask(2, outlook=20), make_room({"a": 2, "b": 6, "c": 9})).domain == ("c",)


def test_who_joins_later_goes_where_the_others_are_or_nowhere() -> None:
    room = occupy(make_room({"a": 4, "b": 2}), "b0")
    anchored = ask(1, anchors=frozenset({("b",)}))
    assert placed(anchored, room).domain == ("b",)
    assert place(anchored, occupy(room, "b1")) is None


def test_members_never_go_to_a_kept_clique_and_the_gang_it_is_kept_for_does() -> None:
    room = make_room({"a": 4, "b": 4})
    kept = Kept(LEVEL, ("a",), "default/big")
    assert placed(ask(2), room, kept).domain == ("b",)
    assert place(ask(2), occupy(room, "b0", "b1", "b2"), kept) is None
    assert placed(ask(2), room).domain == ("a",)


def test_a_gang_without_a_level_does_not_use_the_nodes_of_a_kept_clique_either() -> None:
    room = make_room({"a": 2, "b": 1})
    kept = Kept(LEVEL, ("a",), "default/big")
    assert set(placed(ask(1, required=()), room, kept).nodes.values()) == {"b0"}
    assert place(ask(2, required=()), room, kept) is None


def test_a_node_that_refused_a_member_is_avoided_by_that_member_only() -> None:
    room = make_room({"a": 2})
    found = placed(ask(2, avoid=frozenset({("m0", "a0")})), room)
    assert found.nodes == {"m0": "a1", "m1": "a0"}


def test_what_refused_one_member_is_avoided_for_all_of_its_shape() -> None:
    members = (*candidates(2), Candidate("other", make_shape(1)))
    boarding = ask(3, members=members, avoid=frozenset({("m0", "a0"), ("stranger", "a1")}))
    assert for_equals(boarding) == {("m0", "a0"), ("m1", "a0")}


def test_hints_of_an_earlier_plan_are_kept_where_they_still_hold() -> None:
    room = make_room({"a": 4, "b": 4})
    hints = {"m0": "b3", "m1": "b2"}
    assert placed(ask(2, hints=hints), room).nodes == hints
    assert placed(ask(2, hints=hints), occupy(room, "b3")).nodes == {"m0": "b0", "m1": "b2"}
    assert placed(ask(2, hints={"m0": "gone"}), make_room({"a": 4, "b": 4})).domain == ("a",)


def test_hints_into_a_clique_without_room_for_all_are_given_up() -> None:
    room = occupy(make_room({"a": 4, "b": 4}), "b0", "b1", "b2")
    assert placed(ask(2, hints={"m0": "b3"}), room).domain == ("a",)


def test_members_of_different_shapes_share_one_clique() -> None:
    small = make_shape(1)
    members = (Candidate("small", small), *candidates(2))
    assert placed(ask(3, members=members), make_room({"a": 2, "b": 3})).domain == ("b",)
    with_small = placed(ask(2, members=(Candidate("small", small), *candidates(1))), make_room({"a": 2}))
    assert len(set(with_small.nodes.values())) == 2


def test_the_shape_with_fewest_nodes_is_seated_first() -> None:
    room = make_room({"a": 2})
    choosy = Shape({GPU: 4, "pods": 1}, node_selector=(("kubernetes.io/hostname", "a0"),))
    found = placed(ask(2, members=(*candidates(1), Candidate("choosy", choosy))), room)
    assert found.nodes == {"m0": "a1", "choosy": "a0"}


def test_a_full_node_is_filled_before_an_empty_one_is_opened() -> None:
    room = make_room({"a": 3}, gpus=8)
    room.take("holder", Seat("a1", {GPU: 4, "pods": 1}, "job-7"))
    assert Counter(placed(ask(3), room).nodes.values()) == {"a1": 1, "a0": 2}


def test_the_same_cluster_told_in_any_order_gives_the_same_plan() -> None:
    nodes = [make_node(f"{clique}{i}", clique) for clique in "ab" for i in range(2)]
    plans = []
    for order in permutations(nodes):
        room = Room()
        for node in order:
            room.put_node(node)
        plans.append(placed(ask(2), room))
    assert all(plan == plans[0] for plan in plans)


def test_the_order_of_equal_members_changes_neither_the_clique_nor_its_nodes() -> None:
    room = occupy(make_room({"a": 6, "b": 4}), "a3")
    plans = [placed(ask(4, members=order), room) for order in permutations(candidates(4))]
    assert {plan.domain for plan in plans} == {("b",)}
    assert {frozenset(plan.nodes.values()) for plan in plans} == {frozenset({"b0", "b1", "b2", "b3"})}


def test_shapes_that_are_equally_hard_are_seated_in_the_order_of_their_members() -> None:
    plans = set()
    for _ in range(20):
        twins = [Shape({GPU: 4, "pods": 1}) for _ in range(4)]
        members = tuple(Candidate(f"m{i}", shape) for i, shape in enumerate(twins))
        plans.add(tuple(sorted(placed(ask(4, members=members), make_room({"a": 4})).nodes.items())))
    assert len(plans) == 1


@pytest.mark.parametrize(
    ("sizes", "members", "used"),
    [
        pytest.param({"r": 4, "s": 3}, 3, {"s"}, id="the tightest rack that takes all"),
        pytest.param({"r": 2, "s": 5, "t": 3}, 7, {"s", "r"}, id="the roomiest, then what takes the rest"),
        pytest.param({"r": 2, "s": 2, "t": 2}, 5, {"r", "s", "t"}, id="three where two are too few"),
        pytest.param({"r": 3, "": 9}, 3, {"r"}, id="a rack rather than nodes of none"),
    ],
)
def test_a_preferred_level_is_packed_into_as_few_of_its_domains_as_possible(
    sizes: dict[str, int], members: int, used: set[str]
) -> None:
    room = racks(sizes)
    found = placed(ask(members, required=(), preferred=RACK), room)
    assert {room.nodes[n].labels[RACK] for n in found.nodes.values()} == used


def test_a_preferred_level_begins_where_members_sit_already() -> None:
    found = placed(ask(2, preferred=RACK, near=frozenset({"s"})), racks({"r": 2, "s": 3}))
    assert all(node.startswith("s") for node in found.nodes.values())


def test_the_clique_to_keep_is_the_roomiest_of_those_that_could_hold_all_when_empty() -> None:
    room = occupy(make_room({"a": 4, "b": 4, "c": 3}), "a0", "a1", "b0")
    assert domain_to_keep(ask(4), room) == ("b",)
    assert domain_to_keep(ask(5), room) is None
    assert ("a",) in able_domains(ask(4), room)
    assert ("c",) not in able_domains(ask(4), room)


def test_a_rejection_names_the_clique_that_came_closest_and_who_sits_there() -> None:
    room = occupy(make_room({"a": 4, "b": 4}), "a0", "a1", "a2", "b0", "b1")
    room.put_node(make_node("b2", "b", cordoned=True))
    nearest = explain(ask(4), room).nearest
    assert nearest is not None
    assert (nearest.domain, nearest.have, nearest.need) == (("a",), 1, 4)
    assert nearest.whole_nodes
    assert nearest.blockers == (("taken by job-7", 3),)


def test_a_rejection_says_for_whom_the_room_elsewhere_is_kept() -> None:
    room = occupy(make_room({"a": 4, "b": 4}), "b0")
    kept = Kept(LEVEL, ("a",), "default/big")
    assert explain(ask(4), room, kept).kept_for == "default/big"
    assert explain(ask(5), room, kept).kept_for == ""


def test_a_cluster_without_the_level_has_no_nearest_clique() -> None:
    room = Room()
    room.put_node(make_node("n"))
    assert explain(ask(1), room).nearest is None
    assert place(ask(1), room) is None


_CLUSTERS = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=4), max_size=3)


@settings(max_examples=150, deadline=None)
@given(_CLUSTERS, st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 2, 4]))
def test_equal_members_find_a_clique_exactly_when_one_has_room_and_no_node_is_overcommitted(
    cluster: dict[str, list[int]], number: int, floor: int, gpus: int
) -> None:
    floor = min(number, floor)
    room = Room()
    for clique, nodes in cluster.items():
        for i, free in enumerate(nodes):
            room.put_node(make_node(f"{clique}{i}", clique, free))
    found = place(ask(number, members=candidates(number, make_shape(gpus)), floor=floor), room)
    capacity = {clique: sum(free // gpus for free in nodes) for clique, nodes in cluster.items()}
    assert (found is not None) == any(slots >= floor for slots in capacity.values())
    if found:
        assert {room.nodes[n].labels[CLIQUE] for n in found.nodes.values()} == set(found.domain)
        assert floor <= len(found.nodes) == min(number, capacity[found.domain[0]])
        _assert_nobody_sits_on_another(found, room, dict.fromkeys(found.nodes, gpus))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=4),
    st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=6),
)
def test_members_of_any_shapes_never_overcommit_a_node(nodes: list[int], sizes: list[int]) -> None:
    shapes = {size: make_shape(size) for size in (1, 2, 4)}
    room = Room()
    for i, free in enumerate(nodes):
        room.put_node(make_node(f"a{i}", "a", free))
    members = tuple(Candidate(f"m{i}", shapes[size]) for i, size in enumerate(sizes))
    found = place(ask(len(sizes), members=members, floor=1), room)
    assert (found is not None) == (min(sizes) <= max(nodes))
    if found:
        _assert_nobody_sits_on_another(found, room, {f"m{i}": size for i, size in enumerate(sizes)})


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 12))
def test_no_choice_of_racks_is_smaller_than_the_one_taken(sizes: list[int], number: int) -> None:
    room = racks({f"r{i}-": size for i, size in enumerate(sizes)})
    found = place(ask(number, required=(), preferred=RACK), room)
    assert (found is not None) == (number <= sum(sizes))
    if found:
        used = {room.nodes[n].labels[RACK] for n in found.nodes.values()}
        largest = sorted(sizes, reverse=True)
        assert len(used) == next(k for k in range(1, len(sizes) + 1) if sum(largest[:k]) >= number)


def _assert_nobody_sits_on_another(found: Placement, room: Room, gpus: Mapping[str, int]) -> None:
    taken: Counter[str] = Counter()
    for uid, node in found.nodes.items():
        taken[node] += gpus[uid]
    assert all(used <= room.nodes[node].allocatable[GPU] for node, used in taken.items())
