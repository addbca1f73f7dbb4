"""Moves that are proposed for a gang at the head of its queue: cheapest, whole, and into free room."""

from collections.abc import Mapping
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from gangs.consolidation import Move, Proposal, Resident, proposal
from gangs.packing import Candidate
from gangs.planner import Boarding
from gangs.room import Room, Seat
from tests.builders import FOUR_GPUS, LEVEL, candidates, make_room


def a_room(cliques: Mapping[str, int], gangs: Mapping[str, tuple[str, ...]]) -> tuple[Room, list[Resident]]:
    """Cliques with so many nodes; gangs by name, a whole node a member."""
    room, residents = make_room(cliques), []
    for name, nodes in gangs.items():
        members = tuple(Candidate(f"{name}-{node}", FOUR_GPUS) for node in nodes)
        for member, node in zip(members, nodes, strict=True):
            room.take(member.uid, Seat(node, FOUR_GPUS.requests, name))
        residents.append(Resident(("ns", name), f"ns/{name}", Boarding(members, len(members), LEVEL)))
    return room, residents


def wanting(members: int) -> Boarding:
    return Boarding(candidates(members), members, LEVEL)


def test_the_smallest_gang_whose_move_helps_is_proposed_with_where_it_would_go() -> None:
    room, residents = a_room({"a": 4, "b": 4}, {"pair": ("a0", "a1"), "single": ("b0",), "other": ("b1",)})
    assert proposal(wanting(4), room, residents) == Proposal(("a",), (Move("ns/pair", 2, ("b",)),))
    assert proposal(wanting(3), room, residents) == Proposal(("b",), (Move("ns/other", 1, ("a",)),))


def test_nothing_is_proposed_where_room_is_too_little_in_sum() -> None:
    room, residents = a_room({"a": 2, "b": 2}, {"one": ("a0", "a1"), "two": ("b0",)})
    assert proposal(wanting(2), room, residents) is None


def test_nothing_is_proposed_where_who_would_move_finds_no_room_elsewhere() -> None:
    room, residents = a_room({"a": 3, "b": 3}, {"one": ("a0", "a1"), "two": ("b0", "b1")})
    assert proposal(wanting(2), room, residents) is None


def test_a_proposal_leaves_everything_as_it_was() -> None:
    room, residents = a_room({"a": 2, "b": 2}, {"one": ("a0",), "two": ("b0",)})
    before, growth = dict(room.seats), room.growth
    assert proposal(wanting(2), room, residents) is not None
    assert (dict(room.seats), room.growth) == (before, growth)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_as_few_gangs_move_as_brute_force_finds(data: st.DataObject) -> None:
    """Cliques of whole nodes, where room is a matter of counting."""
    nodes = [f"{clique}{i}" for clique in "abc" for i in range(4)]
    free, gangs = set(nodes), {}
    for number in range(data.draw(st.integers(0, 6))):
        clique = data.draw(st.sampled_from("abc"))
        mine = sorted(n for n in free if n[0] == clique)[: data.draw(st.integers(1, 3))]
        if mine:
            gangs[f"g{number}"] = tuple(mine)
            free -= set(mine)
    need = data.draw(st.integers(1, 4))
    room, residents = a_room(dict.fromkeys("abc", 4), gangs)
    found = proposal(wanting(need), room, residents)
    if need <= max(sum(n[0] == c for n in free) for c in "abc"):
        return  # it fits as it is
    assert (len(found.moves) if found else None) == fewest(gangs, free, need)


def fewest(gangs: Mapping[str, tuple[str, ...]], free: set[str], need: int) -> int | None:
    """The fewest gangs of one clique that fit into the others' room, so that the need fits."""
    if len(free) < need:
        return None
    best: int | None = None
    for clique in "abc":
        here = [nodes for nodes in gangs.values() if nodes[0][0] == clique]
        left = {c: sum(n[0] == c for n in free) for c in "abc"}
        for number in range(1, len(here) + 1):
            for chosen in combinations(here, number):
                gained = left[clique] + sum(map(len, chosen))
                rest = [left[c] for c in "abc" if c != clique]
                if gained >= need and packs(sorted(map(len, chosen), reverse=True), rest):
                    best = number if best is None else min(best, number)
    return best


def packs(sizes: list[int], bins: list[int]) -> bool:
    if not sizes:
        return True
    return any(
        room >= sizes[0] and packs(sizes[1:], [*bins[:i], room - sizes[0], *bins[i + 1 :]])
        for i, room in enumerate(bins)
    )
