"""The planner against brute force on small clusters: it finds what exists, and never what doesn't."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gangs.contract import GPU
from gangs.exact import SEARCH_MEMBERS, Budget, search
from gangs.keeping import able_domains, domain_to_keep
from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.planner import Boarding, Placement, place
from gangs.room import Room
from tests.builders import CLIQUE, LEVEL, make_node, make_room, make_shape

SHAPES = (
    Shape({GPU: 1, "cpu": 30_000, "pods": 1}),
    Shape({GPU: 2, "cpu": 1_000, "pods": 1}),
    Shape({GPU: 3, "pods": 1}),
    Shape({GPU: 1, "pods": 1}, node_selector=(("kubernetes.io/hostname", "a0"),)),
)


@dataclass(frozen=True)
class Scene:
    """GPUs of each node by clique, the shape of each member, and who avoids which node."""

    cliques: Mapping[str, tuple[int, ...]]
    shapes: tuple[int, ...]
    avoid: frozenset[tuple[str, str]]
    floor: int

    def room(self) -> Room:
        room = Room()
        for clique, nodes in self.cliques.items():
            for i, gpus in enumerate(nodes):
                room.put_node(make_node(f"{clique}{i}", clique, gpus))
        return room

    def boarding(self) -> Boarding:
        members = tuple(Candidate(f"m{i}", SHAPES[shape]) for i, shape in enumerate(self.shapes))
        return Boarding(members, min(self.floor, len(members)), LEVEL, avoid=self.avoid)


@st.composite
def scenes(draw: st.DrawFn, shapes: int = len(SHAPES)) -> Scene:
    cliques = draw(
        st.dictionaries(st.sampled_from("ab"), st.lists(st.integers(0, 5), max_size=3), max_size=2)
    )
    members = draw(st.lists(st.integers(0, shapes - 1), min_size=1, max_size=5))
    uids, names = [f"m{i}" for i in range(5)], [f"{clique}{i}" for clique in "ab" for i in range(3)]
    pairs = st.tuples(st.sampled_from(uids), st.sampled_from(names))
    avoid = draw(st.frozensets(pairs, max_size=8))
    floor = draw(st.integers(1, 5))
    return Scene({c: tuple(nodes) for c, nodes in cliques.items()}, tuple(members), avoid, floor)


def most(boarding: Boarding, room: Room, clique: str) -> int:
    """How many members fit into the clique at best, by trying everything."""
    nodes = [node for node in room.nodes.values() if node.labels.get(CLIQUE) == clique]
    left = {node.name: dict(node.allocatable) for node in nodes}

    def seated(index: int) -> int:
        if index == len(boarding.members):
            return 0
        member, best = boarding.members[index], seated(index + 1)
        for node in nodes:
            free, needs = left[node.name], member.shape.requests
            allowed = all(node.labels.get(k) == v for k, v in member.shape.node_selector)
            if not allowed or (member.uid, node.name) in boarding.avoid:
                continue
            if all(free.get(name, 0) >= value for name, value in needs.items()):
                left[node.name] = {name: have - needs.get(name, 0) for name, have in free.items()}
                best = max(best, 1 + seated(index + 1))
                left[node.name] = free
        return best

    return seated(0)


def exists(scene: Scene) -> bool:
    boarding, room = scene.boarding(), scene.room()
    return any(most(boarding, room, clique) >= boarding.floor for clique in scene.cliques)


def assert_valid(found: Placement, boarding: Boarding, room: Room) -> None:
    shapes = {m.uid: m.shape for m in boarding.members}
    used: dict[str, Counter[str]] = {}
    for uid, name in found.nodes.items():
        node = room.nodes[name]
        assert (uid, name) not in boarding.avoid
        assert (node.labels[CLIQUE],) == found.domain
        assert all(node.labels.get(k) == v for k, v in shapes[uid].node_selector)
        used.setdefault(name, Counter()).update(shapes[uid].requests)
    for name, sums in used.items():
        assert all(room.nodes[name].allocatable.get(resource, 0) >= n for resource, n in sums.items())
    assert len(found.nodes) >= boarding.floor


# Greed gives the node of four to the member of three, and the second member of two finds none.
WASTED = Scene({"a": (4, 3)}, (2, 1, 1), frozenset(), 3)
# Greed gives a0 to m0, and m1 can use no other.
STEALING = Scene({"a": (1, 1)}, (0, 0), frozenset({("m1", "a1")}), 2)


@settings(max_examples=600, deadline=None)
@given(scenes())
@example(WASTED)
@example(STEALING)
def test_a_placement_is_found_exactly_when_one_exists_and_is_valid(scene: Scene) -> None:
    boarding, room = scene.boarding(), scene.room()
    found = place(boarding, room)
    assert (found is not None) == exists(scene)
    if found:
        assert_valid(found, boarding, room)


@settings(max_examples=300, deadline=None)
@given(scenes(shapes=1))
def test_members_that_are_alike_but_avoid_different_nodes_are_seated_whenever_they_can_be(
    scene: Scene,
) -> None:
    found = place(scene.boarding(), scene.room())
    assert (found is not None) == exists(scene)


@settings(max_examples=200, deadline=None)
@given(scenes(), st.integers(0, 3))
def test_more_capacity_never_loses_a_placement(scene: Scene, more: int) -> None:
    if place(scene.boarding(), scene.room()):
        roomier = {clique: (*(n + more for n in nodes), more) for clique, nodes in scene.cliques.items()}
        assert place(scene.boarding(), replace(scene, cliques=roomier).room())


@settings(max_examples=200, deadline=None)
@given(scenes(), st.randoms(use_true_random=False))
def test_neither_the_order_of_members_nor_of_nodes_changes_the_domain_or_its_nodes(
    scene: Scene, random: Random
) -> None:
    boarding = replace(scene.boarding(), avoid=frozenset())
    members, nodes = list(boarding.members), list(scene.room().nodes.values())
    random.shuffle(members)
    random.shuffle(nodes)
    shuffled = Room()
    for node in nodes:
        shuffled.put_node(node)
    first = place(boarding, scene.room())
    second = place(replace(boarding, members=tuple(members)), shuffled)
    assert _seats(first, boarding) == _seats(second, boarding)


def _seats(found: Placement | None, boarding: Boarding) -> object:
    shapes = {m.uid: SHAPES.index(m.shape) for m in boarding.members}
    return found and (found.domain, sorted((node, shapes[uid]) for uid, node in found.nodes.items()))


def test_domains_are_ranked_by_the_hardest_shape_whichever_member_comes_first() -> None:
    room = make_room({"a": 6, "b": 4})
    members = (Candidate("small", make_shape(0)), Candidate("large", make_shape(4)))
    for order in (members, members[::-1]):
        found = place(Boarding(order, 2, LEVEL), room)
        assert found is not None
        assert found.domain == ("b",)


def test_a_clique_that_only_a_search_can_fill_is_known_to_hold_the_gang_when_empty() -> None:
    boarding, room = WASTED.boarding(), WASTED.room()
    assert domain_to_keep(boarding, room) == ("a",)
    assert ("a",) in able_domains(boarding, room)


def test_a_search_stops_when_its_budget_is_spent_and_where_there_are_too_many_members() -> None:
    shapes = (make_shape(1), make_shape(2))
    room = make_room({"a": 64})
    members = [Candidate(f"m{i}", shapes[i % 2]) for i in range(SEARCH_MEMBERS + 1)]
    fill = sorted(room.nodes)
    slots = {shape: dict(room.members(LEVEL, shape, ("a",))) for shape in shapes}

    def found(number: int, steps: int) -> int:
        budget = Budget(steps)
        return len(search(members[:number], number, fill, slots, room, frozenset(), budget))

    assert found(SEARCH_MEMBERS, SEARCH_MEMBERS) == SEARCH_MEMBERS
    assert found(SEARCH_MEMBERS, SEARCH_MEMBERS - 1) == 0
    assert found(SEARCH_MEMBERS + 1, 10 * SEARCH_MEMBERS) == 0
