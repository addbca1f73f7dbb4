"""What a domain lacks: the facts behind "Closest: c0003 has 15 (2 cordoned, 1 taken by job-7)"."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gangs.apart import is_apart
from gangs.devices import class_of
from gangs.nodes import Node, Shape, blocker, reaches
from gangs.ports import port_of
from gangs.room import Domain, Level, Room, fitting, scarcest

TAKEN_BY: Final = "taken by "
_NAMED: Final = 3  # nodes of a tied member that are named


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why a domain can't take the gang.

    have, need: members of the gang's first shape that fit, and that must be placed.
    each: what one of them asks for (gangs/requests.py).
    whole_nodes: no node of the domain could take two, so that members and nodes are counted alike.
    blockers: what holds the nodes without room, as (words, nodes), most frequent first.
    """

    level: Level
    domain: Domain
    have: int
    need: int
    each: Mapping[str, int]
    whole_nodes: bool
    blockers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Tie:
    """A member whose volumes let it go to few nodes. nodes: the first of them by name; number: of all.

    why: what keeps it away from the first, "" if there is room.
    """

    uid: str
    nodes: tuple[str, ...]
    number: int
    why: str


def tie(uid: str, shape: Shape, room: Room) -> Tie:
    """Look at every node of the cluster for those that the member's volumes allow."""
    nodes = sorted((n for n in room.nodes.values() if reaches(shape, n)), key=lambda n: n.name)
    why = _why(shape, nodes[0], room) if nodes and not room.slots(shape, nodes[0]) else ""
    return Tie(uid, tuple(n.name for n in nodes[:_NAMED]), len(nodes), why)


def shortage(shape: Shape, level: Level, domain: Domain, room: Room, need: int) -> Shortage:
    """Look at every node of the domain and count what keeps the shape away."""
    counts: Counter[str] = Counter()
    have, most = 0, 0
    for node in room.nodes_of(level, domain):
        most = max(most, fitting(shape.requests, node.allocatable))
        slots = room.slots(shape, node)
        have += slots
        if not slots:
            counts[_why(shape, node, room)] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Shortage(level, domain, have, need, shape.requests, most < 2, tuple(ordered))


def _why(shape: Shape, node: Node, room: Room) -> str:
    refused = blocker(shape, node)
    if refused:
        return refused.value
    if not fitting(shape.requests, node.allocatable):
        lacking = next((class_of(n) for n in shape.requests if class_of(n) and n not in node.allocatable), "")
        return f"without devices of class {lacking}" if lacking else "too small"
    free = room.free(node)
    for name, value in shape.requests.items():
        if port_of(name) and free.get(name, value) < value:
            return f"with host port {port_of(name)} in use"
        if is_apart(name) and free.get(name, 1) < value:
            return "with a Pod that its anti-affinity excludes"
        if class_of(name) and free.get(name, 0) < value:
            return f"with {class_of(name)} in use"
    scarce = scarcest(shape.requests)
    holders = [(-seat.requests.get(scarce, 0), seat.owner) for _, seat in room.holders(node.name)]
    return f"{TAKEN_BY}{min(holders)[1]}" if holders else "full"
