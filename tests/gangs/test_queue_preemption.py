"""Victims are minimal: against brute force on small clusters, and what a person would choose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangs.packing import Candidate
from gangs.planner import Boarding, place
from gangs.preemption import Clearing, Prey, clearing
from gangs.queues.amounts import Amounts
from gangs.queues.ledger import Ledger
from gangs.queues.reclaim import may_reclaim
from gangs.queues.tree import Queue, tree_of
from gangs.room import Room, Seat
from tests.builders import LEVEL, candidates, make_room, make_shape


def a_room(cliques: Mapping[str, int], seats: Mapping[str, tuple[str, int]]) -> Room:
    """Cliques of four-GPU nodes, and who holds how many GPUs on which."""
    room = make_room(cliques)
    for uid, (node, gpus) in seats.items():
        room.take(uid, Seat(node, make_shape(gpus).requests, uid))
    return room


def prey(name: str, *core: str, priority: int = 0, started: float = 0, surplus: tuple[str, ...] = ()) -> Prey:
    return Prey(("ns", name), priority, started, core, surplus)


def wanting(members: int, gpus: int = 4) -> Boarding:
    return Boarding(candidates(members, make_shape(gpus)), members, LEVEL)


class TestChoice:
    """Whom a person would choose."""

    def test_the_lowest_gang_of_the_queue_goes_first(self) -> None:
        room = a_room({"a": 2}, {"x": ("a0", 4), "y": ("a1", 4)})
        found = clearing(wanting(1), room, [prey("x", "x", priority=5), prey("y", "y", priority=1)])
        assert found
        assert found.whole == (("ns", "y"),)

    def test_of_equal_priority_the_youngest_goes_first(self) -> None:
        room = a_room({"a": 2}, {"x": ("a0", 4), "y": ("a1", 4)})
        found = clearing(wanting(1), room, [prey("x", "x", started=9), prey("y", "y", started=1)])
        assert found
        assert found.whole == (("ns", "x"),)

    def test_one_gang_of_higher_priority_goes_rather_than_two_lower_ones(self) -> None:
        room = a_room({"a": 2, "b": 2}, {"x": ("a0", 4), "y": ("a1", 4), "z0": ("b0", 4), "z1": ("b1", 4)})
        found = clearing(
            wanting(2), room, [prey("x", "x"), prey("y", "y"), prey("z", "z0", "z1", priority=3)]
        )
        assert found
        assert (found.whole, found.domain) == ((("ns", "z"),), ("b",))

    def test_surplus_goes_before_any_floor_and_no_more_of_it_than_needed(self) -> None:
        room = a_room({"a": 4}, {"x0": ("a0", 4), "x1": ("a1", 4), "x2": ("a2", 4), "y": ("a3", 4)})
        elastic = prey("x", "x0", priority=9, surplus=("x1", "x2"))
        found = clearing(wanting(1), room, [elastic, prey("y", "y")])
        assert found == Clearing(("a",), (), (), frozenset({"x2"}))

    def test_a_gang_that_goes_whole_takes_its_members_elsewhere_along(self) -> None:
        room = a_room({"a": 1, "b": 1}, {"x0": ("a0", 4), "x1": ("b0", 4)})
        found = clearing(wanting(1), room, [prey("x", "x0", "x1")])
        assert found
        assert found.uids == {"x0", "x1"}

    def test_nobody_goes_where_it_would_not_help(self) -> None:
        room = a_room(
            {"a": 2, "b": 2}, {"x": ("a0", 4), "fixed": ("a1", 4), "y": ("b0", 4), "more": ("b1", 4)}
        )
        assert clearing(wanting(2), room, [prey("x", "x"), prey("y", "y")]) is None

    def test_nobody_goes_who_must_not(self) -> None:
        room = a_room({"a": 1}, {"x": ("a0", 4)})
        assert clearing(wanting(1), room, [prey("x", "x")], permitted=lambda _, uids: not uids) is None

    def test_past_the_tries_needless_victims_are_still_taken_back(self) -> None:
        seats = {f"x{i}": (f"a{i}", 4) for i in range(6)}
        gangs = [
            prey("one", "x0"),
            prey("two", "x1", "x2", priority=1),
            prey("rest", "x3", "x4", "x5", priority=2),
        ]
        found = clearing(wanting(3), a_room({"a": 6}, seats), gangs, tries=0)
        assert found
        assert found.whole in ((("ns", "one"), ("ns", "two")), (("ns", "rest"),))


@dataclass(frozen=True)
class Scene:
    """A small cluster, who sits where, and who wants in."""

    room: Room
    gangs: tuple[Prey, ...]
    boarding: Boarding


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    nodes = [f"{clique}{i}" for clique in "ab" for i in range(3)]
    free = dict.fromkeys(nodes, 4)
    seats: dict[str, tuple[str, int]] = {}
    gangs = []
    for number in range(draw(st.integers(1, 5))):
        members = []
        for i in range(draw(st.integers(1, 3))):
            gpus = draw(st.sampled_from([2, 4]))
            able = [n for n in nodes if free[n] >= gpus]
            if able:
                node = draw(st.sampled_from(able))
                free[node] -= gpus
                seats[f"g{number}-{i}"] = (node, gpus)
                members.append(f"g{number}-{i}")
        if members:
            floor = draw(st.integers(1, len(members)))
            row = prey(f"g{number}", *members[:floor], priority=draw(st.integers(0, 2)), started=number)
            gangs.append(Prey(row.key, row.priority, row.started, row.core, tuple(members[floor:])))
    shapes = draw(st.lists(st.sampled_from([2, 4]), min_size=1, max_size=3))
    members_in = tuple(Candidate(f"m{i}", make_shape(gpus)) for i, gpus in enumerate(shapes))
    room = a_room({"a": 3, "b": 3}, seats)
    return Scene(room, tuple(gangs), Boarding(members_in, len(members_in), LEVEL))


def subsets(items: Iterable[str]) -> Iterable[tuple[str, ...]]:
    rows = list(items)
    return chain.from_iterable(combinations(rows, n) for n in range(len(rows) + 1))


def brute(scene: Scene) -> tuple[int, tuple[int, ...]] | None:
    """Every set of whole gangs, all surplus gone: fewest gangs, then the lowest priorities."""
    best = None
    surplus = {uid for p in scene.gangs for uid in p.surplus}
    for names in subsets(p.key[1] for p in scene.gangs):
        chosen = [p for p in scene.gangs if p.key[1] in names]
        gone = surplus | {uid for p in chosen for uid in p.everyone}
        if fits(scene, gone):
            cost = len(chosen), tuple(sorted((p.priority for p in chosen), reverse=True))
            best = cost if best is None else min(best, cost)
    return best


def fits(scene: Scene, gone: Iterable[str]) -> bool:
    room = Room()
    for node in scene.room.nodes.values():
        room.put_node(node)
    for uid, seat in scene.room.seats.items():
        if uid not in set(gone):
            room.take(uid, seat)
    return place(scene.boarding, room) is not None


@settings(max_examples=300, deadline=None)
@given(scenes())
def test_victims_are_as_few_and_as_low_as_brute_force_finds_and_never_half_a_gang(scene: Scene) -> None:
    found = clearing(scene.boarding, scene.room, scene.gangs)
    expected = brute(scene)
    assert (found and found.cost[:2]) == expected
    if found is None:
        return
    assert fits(scene, found.uids)
    for gang in scene.gangs:
        if gang.key in found.whole:
            assert gang.everyone <= found.uids
        else:
            assert found.uids.isdisjoint(gang.core)
    loose = [uid for p in scene.gangs if p.key not in found.whole for uid in p.surplus if uid in found.uids]
    assert not any(fits(scene, found.uids - {uid}) for uid in loose), "somebody goes who need not"


class TestReclaim:
    """A queue below its quota takes back from those over theirs."""

    def ledger(self, **held: float) -> Ledger:
        """Two orgs with a quota of 8 each; a, b below the one, c below the other, 4 each."""
        rows = [("x", "", 8), ("y", "", 8), ("a", "x", 4), ("b", "x", 4), ("c", "y", 4)]
        queues = [Queue(name, parent, quota=Amounts(quota)) for name, parent, quota in rows]
        return Ledger(tree_of(queues), {name: Amounts(gpus) for name, gpus in held.items()})

    @pytest.mark.parametrize(
        ("held", "need", "losses", "allowed"),
        [
            ({"a": 0, "b": 8}, 4, {"b": 4}, True),
            ({"a": 0, "b": 6}, 4, {"b": 4}, False),  # b would fall below its quota
            ({"a": 2, "b": 8}, 4, {"b": 4}, False),  # a would exceed its own
            ({"a": 0, "c": 12}, 4, {"c": 4}, True),
            ({"a": 0, "b": 8, "c": 12}, 4, {"c": 4}, False),  # its parent x has its quota already
            ({"a": 0, "c": 8}, 4, {"c": 2}, False),  # the parent y would fall below its quota
            ({"a": 0, "b": 6, "c": 14}, 2, {"b": 2, "c": 4}, True),
        ],
    )
    def test_a_queue_reclaims_within_its_quota_what_others_hold_over_theirs(
        self, held: dict[str, float], need: float, losses: dict[str, float], allowed: bool
    ) -> None:
        rows = {name: Amounts(gpus) for name, gpus in losses.items()}
        assert may_reclaim(self.ledger(**held), "a", Amounts(need), rows) == allowed
