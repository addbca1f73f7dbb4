"""A domain for each subgroup inside the gang's: the rules by example, then against brute force."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gangs.contract import GPU
from gangs.keeping import domain_to_keep
from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.parts import Part, Path, Site, assemble
from gangs.planner import Boarding, Kept, Placement, explain, place, shortages
from gangs.room import Domain, Room, Seat, domain_of
from gangs.subgroups import Subgroup
from tests.builders import CLIQUE, FOUR_GPUS, LEVEL, make_node

RACK = "rack"
BY_RACK = (RACK,)


def cluster(sizes: Mapping[str, int], gpus: int = 4) -> Room:
    """Nodes by rack; the first letter of a rack is its clique."""
    room = Room()
    for rack, size in sizes.items():
        for number in range(size):
            room.put_node(make_node(f"{rack}-{number}", rack[0], gpus, labels={RACK: rack}))
    return room


def party(paths: Mapping[str, Path], required: tuple[str, ...] = LEVEL, **rest: object) -> Boarding:
    """These members, and where each belongs; each asks for four GPUs."""
    whole = assemble(paths.items(), None)
    assert whole is not None
    members = tuple(Candidate(uid, FOUR_GPUS) for uid in paths)
    shape = {"members": members, "floor": whole.least, "required": required, "whole": whole, **rest}
    return Boarding(**shape)  # type: ignore[arg-type]


def group(name: str, number: int, floor: int, **rest: object) -> dict[str, Path]:
    """Members NAME0, NAME1, ... of one subgroup."""
    path = (Subgroup(name, floor, **rest),)  # type: ignore[arg-type]
    return {f"{name}{i}": path for i in range(number)}


def placed(boarding: Boarding, room: Room, kept: Kept | None = None) -> Placement:
    found = place(boarding, room, kept)
    assert found is not None
    return found


def racks(found: Placement, room: Room, prefix: str) -> Counter[str]:
    return Counter(room.nodes[n].labels[RACK] for uid, n in found.nodes.items() if uid.startswith(prefix))


def test_each_subgroup_boards_one_rack_inside_the_clique_of_the_gang() -> None:
    paths = {**group("p", 3, 3, required=BY_RACK), **group("d", 2, 2, required=BY_RACK)}
    room = cluster({"a1": 2, "a2": 2, "a3": 2, "b1": 3, "b2": 2})
    found = placed(party(paths), room)
    assert found.domain == ("b",)
    assert racks(found, room, "p") == {"b1": 3}
    assert racks(found, room, "d") == {"b2": 2}


def test_without_a_domain_of_the_gang_its_subgroups_may_board_far_from_each_other() -> None:
    paths = {**group("p", 3, 3, required=LEVEL), **group("d", 2, 2, required=LEVEL)}
    room = cluster({"a1": 3, "b1": 2})
    found = placed(party(paths, ()), room)
    assert {uid[0]: room.nodes[node].labels[CLIQUE] for uid, node in found.nodes.items()} == {
        "p": "a",
        "d": "b",
    }


def test_the_floor_of_one_subgroup_is_not_filled_by_the_surplus_of_another() -> None:
    paths = {**group("a", 4, 1), **group("b", 1, 1), **group("c", 1, 1)}
    found = placed(party(paths), cluster({"a1": 3}))
    assert sorted(uid[0] for uid in found.nodes) == ["a", "b", "c"]
    assert place(party(paths), cluster({"a1": 2})) is None


def test_surplus_sits_where_its_subgroup_sits_and_only_the_floor_is_placed_where_that_is_asked_for() -> None:
    paths = {**group("p", 3, 1, required=BY_RACK), **group("d", 1, 1, required=BY_RACK)}
    room = cluster({"a1": 3, "a2": 1})
    assert racks(placed(party(paths), room), room, "p") == {"a1": 3}
    lean = placed(party(paths, only_floor=True), room)
    assert racks(lean, room, "p") == {"a1": 1}
    assert len(lean.nodes) == 2


def test_a_subgroup_in_a_subgroup_has_its_domain_inside_the_outer_one() -> None:
    paths: dict[str, Path] = {}
    for replica in "xy":
        outer = Subgroup(replica, min_subgroup=2, required=LEVEL)
        paths |= {f"{replica}l": (outer, Subgroup(f"{replica}-leader", 1))}
        paths |= {
            f"{replica}w{i}": (outer, Subgroup(f"{replica}-workers", 2, required=BY_RACK)) for i in range(2)
        }
    room = cluster({"a1": 2, "a2": 1, "b1": 2, "b2": 1, "c1": 1, "c2": 1, "c3": 1})
    found = placed(party(paths, ()), room)
    for replica in "xy":
        assert len({room.nodes[n].labels[CLIQUE] for uid, n in found.nodes.items() if uid[0] == replica}) == 1
        assert list(racks(found, room, f"{replica}w").values()) == [2]


def test_who_joins_a_subgroup_later_goes_to_its_rack_or_nowhere() -> None:
    room = cluster({"a1": 2, "a2": 2})
    joining = party(group("p", 1, 0, required=BY_RACK), floor=1, sites={"p": Site(frozenset({("a2",)}))})
    assert racks(placed(joining, room), room, "p") == {"a2": 1}
    for node in ("a2-0", "a2-1"):
        room.take(f"holder-{node}", Seat(node, {GPU: 4}, "job-7"))
    assert place(joining, room) is None


def test_members_of_a_subgroup_go_near_each_other_where_that_is_preferred() -> None:
    room = cluster({"a1": 2, "a2": 3, "a3": 2})
    found = placed(party(group("p", 3, 3, preferred=BY_RACK)), room)
    assert racks(found, room, "p") == {"a2": 3}


def test_what_a_subgroup_lacks_is_told_where_the_clique_has_room_for_the_gang() -> None:
    paths = {**group("p", 3, 3, required=BY_RACK), **group("d", 1, 1)}
    rejection = explain(party(paths), cluster({"a1": 2, "a2": 2}))
    assert rejection.part == "p"
    assert rejection.nearest is not None
    assert (rejection.nearest.domain, rejection.nearest.have, rejection.nearest.need) == (("a", "a1"), 2, 3)


def test_subgroups_that_fit_alone_but_not_together_are_told_so() -> None:
    paths = {**group("p", 2, 2, required=BY_RACK), **group("d", 2, 2, required=BY_RACK)}
    rejection = explain(party(paths), cluster({"a1": 3, "a2": 1}))
    assert rejection.crowded
    assert not rejection.part


def test_what_a_subgroup_lacks_in_each_clique_is_told_too() -> None:
    paths = {**group("p", 3, 3, required=BY_RACK), **group("d", 1, 1)}
    found = shortages(party(paths), cluster({"a1": 2, "a2": 2, "b1": 3}))
    assert [(s.domain, s.have, s.need) for s in found] == [(("a", "a1"), 2, 3), (("b",), 3, 4)]


def test_the_domain_kept_for_a_gang_with_subgroups_is_one_that_holds_each_of_them() -> None:
    paths = {**group("p", 3, 3, required=BY_RACK), **group("d", 1, 1)}
    room = cluster({"a1": 2, "a2": 2, "b1": 3, "b2": 1})
    room.take("holder", Seat("b1-0", {GPU: 4}, "job-7"))
    assert place(party(paths), room) is None
    assert domain_to_keep(party(paths), room) == ("b",)


def test_a_gang_of_a_thousand_in_many_subgroups_is_seated_by_greed() -> None:
    paths: dict[str, Path] = {}
    for replica in range(60):
        outer = Subgroup(f"r{replica:02}", min_subgroup=1, required=LEVEL)
        paths |= {f"r{replica:02}w{i}": (outer, Subgroup(f"r{replica:02}-w", 18)) for i in range(18)}
    room = Room()
    for clique in range(64):
        for number in range(18):
            room.put_node(make_node(f"c{clique:02}-{number}", f"c{clique:02}"))
    assert len(placed(party(paths, ()), room).nodes) == 1080


SHAPES = (Shape({GPU: 1, "pods": 1}), Shape({GPU: 2, "pods": 1}), Shape({GPU: 3, "pods": 1}))
FRAMES: tuple[Path, ...] = (
    (Subgroup("a", 1),),
    (Subgroup("b", 2, required=BY_RACK),),
    (Subgroup("c", min_subgroup=2, required=BY_RACK), Subgroup("c-l", 1)),
    (
        Subgroup("c", min_subgroup=2, required=BY_RACK),
        Subgroup("c-w", 1, required=("kubernetes.io/hostname",)),
    ),
    (),
)


@dataclass(frozen=True)
class Scene:
    """GPUs of each node by rack; shape and frame of each member; who avoids which node."""

    racks: Mapping[str, tuple[int, ...]]
    members: tuple[tuple[int, int], ...]
    avoid: frozenset[tuple[str, str]] = frozenset()
    floor: int = 1
    min_subgroup: int | None = None
    required: bool = True

    def room(self) -> Room:
        room = Room()
        for rack, nodes in self.racks.items():
            for i, gpus in enumerate(nodes):
                room.put_node(make_node(f"{rack}-{i}", rack[0], gpus, labels={RACK: rack}))
        return room

    def boarding(self) -> Boarding | None:
        paths = [(f"m{i}", FRAMES[frame]) for i, (_, frame) in enumerate(self.members)]
        whole = assemble(paths, self.min_subgroup)
        members = tuple(Candidate(f"m{i}", SHAPES[shape]) for i, (shape, _) in enumerate(self.members))
        floor = max(min(self.floor, len(members)), whole.least if whole else 1)
        required = LEVEL if self.required else ()
        return Boarding(members, floor, required, avoid=self.avoid, whole=whole) if whole else None


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    sizes = st.lists(st.integers(0, 4), min_size=1, max_size=2).map(tuple)
    names = draw(st.sets(st.sampled_from(["a1", "a2", "b1"]), min_size=1))
    members = draw(
        st.lists(
            st.tuples(st.integers(0, len(SHAPES) - 1), st.integers(0, len(FRAMES) - 1)),
            min_size=1,
            max_size=5,
        )
    )
    nodes = [f"{rack}-{i}" for rack in ("a1", "a2", "b1") for i in range(2)]
    pairs = st.tuples(st.sampled_from([f"m{i}" for i in range(5)]), st.sampled_from(nodes))
    return Scene(
        racks={name: draw(sizes) for name in sorted(names)},
        members=tuple(members),
        avoid=draw(st.frozensets(pairs, max_size=5)),
        floor=draw(st.integers(1, 5)),
        min_subgroup=draw(st.none() | st.integers(1, 2)),
        required=draw(st.booleans()),
    )


def valid(nodes: Mapping[str, str], boarding: Boarding, room: Room) -> bool:
    """Whether every rule but the floors holds, worked out from the rules alone."""
    used: dict[str, Counter[str]] = {}
    for member in boarding.members:
        if name := nodes.get(member.uid):
            used.setdefault(name, Counter()).update(member.shape.requests)
    fits = all(room.nodes[n].allocatable.get(r, 0) >= v for n, sums in used.items() for r, v in sums.items())
    assert boarding.whole is not None
    whole = replace(boarding.whole, required=boarding.required)
    return fits and not boarding.avoid & set(nodes.items()) and _in_one_domain(whole, nodes, room)


def _in_one_domain(part: Part, nodes: Mapping[str, str], room: Room) -> bool:
    where = {domain_of(room.nodes[nodes[uid]], part.required) for uid in part.members & nodes.keys()}
    return len(where) <= 1 and None not in where and all(_in_one_domain(p, nodes, room) for p in part.parts)


def exists(boarding: Boarding, room: Room) -> bool:
    """Whether some placement of some members is valid and enough, by trying everything."""
    names = sorted(room.nodes)
    assert boarding.whole is not None
    whole = boarding.whole

    def possible(index: int, nodes: dict[str, str]) -> bool:
        if len(nodes) >= boarding.floor and whole.met(nodes.keys()):
            return True
        if index == len(boarding.members):
            return False
        uid = boarding.members[index].uid
        for name in names:
            seated = {**nodes, uid: name}
            if valid(seated, boarding, room) and possible(index + 1, seated):
                return True
        return possible(index + 1, nodes)

    return possible(0, {})


# Greed gives the subgroup that comes first the only rack which the other can use.
STEALING = Scene({"a1": (2,), "a2": (4, 4)}, ((0, 1), (0, 1), (1, 2), (1, 3)), floor=4)
# Greed seats the member of two beside the one of three, and the other member of two finds no room.
WASTED = Scene({"a1": (4, 3)}, ((2, 0), (1, 1), (1, 1)), floor=3)


@settings(max_examples=500, deadline=None)
@given(scenes())
@example(STEALING)
@example(WASTED)
def test_a_placement_with_subgroups_is_found_exactly_when_one_exists_and_is_valid(scene: Scene) -> None:
    boarding, room = scene.boarding(), scene.room()
    if boarding is None:
        return
    found = place(boarding, room)
    assert (found is not None) == exists(boarding, room)
    if found:
        assert valid(found.nodes, boarding, room)
        assert len(found.nodes) >= boarding.floor
        assert boarding.whole is not None
        assert boarding.whole.met(found.nodes.keys())


@settings(max_examples=200, deadline=None)
@given(scenes())
def test_only_the_floor_is_placed_whenever_the_floor_can_be(scene: Scene) -> None:
    boarding, room = scene.boarding(), scene.room()
    if boarding is None:
        return
    found = place(replace(boarding, only_floor=True), room)
    assert (found is not None) == exists(boarding, room)
    if found:
        assert valid(found.nodes, boarding, room)
        # Where some subgroups are enough, greed may find room for larger ones than the smallest.
        assert len(found.nodes) == boarding.floor or scene.min_subgroup is not None


def test_the_oracle_knows_wrong_from_right() -> None:
    boarding, room = STEALING.boarding(), STEALING.room()
    assert boarding is not None
    apart: dict[str, str] = {"m0": "a1-0", "m1": "a2-0"}
    assert not valid(apart, boarding, room)
    assert valid({"m0": "a2-0", "m1": "a2-0"}, boarding, room)
    assert not valid({"m0": "a1-0", "m2": "a1-0"}, boarding, room)
    crowded: Domain = ("a",)
    assert placed(boarding, room).domain == crowded
