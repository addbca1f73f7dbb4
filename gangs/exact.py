"""Placements inside one domain that greedy packing misses.

    one shape, some pairs avoided ──► augmenting paths: finds as many seats as there are, always
    several shapes                ──► back-tracking: finds the floor if it can be had, within bounds

Several shapes on nodes are vector bin packing, which is NP-hard: past the budget of steps, and for gangs
of more than SEARCH_MEMBERS, the answer is "none found". The budget counts steps, not time, so that equal
inputs give equal answers.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gangs.nodes import Shape
from gangs.packing import Avoid, Candidate, OpenNodes, Table, hardest_first
from gangs.room import Room

SEARCH_STEPS: Final = 5_000  # about 40 ms of CPU time: 13 members of 3 shapes on 6 nodes
SEARCH_MEMBERS: Final = 64  # members of larger gangs are too many to try in turn


@dataclass(slots=True)
class Budget:
    """Steps that the search may still take; shared by all domains of one plan."""

    steps: int = SEARCH_STEPS

    def spend(self) -> bool:
        """Whether there was a step left."""
        self.steps -= 1
        return self.steps >= 0


def match(
    members: Sequence[Candidate], fill: Sequence[str], slots: Mapping[str, int], avoid: Avoid
) -> dict[str, str]:
    """A node for as many members of one shape as possible, by UID (a maximum bipartite matching)."""
    placed: dict[str, str] = {}
    guests: dict[str, list[str]] = {node: [] for node in fill}
    for member in members:
        path = _path_to_free_seat(member.uid, fill, slots, guests, avoid)
        for uid, node in path:
            if uid in placed:
                guests[placed[uid]].remove(uid)
            guests[node].append(uid)
            placed[uid] = node
    return placed


def _path_to_free_seat(
    start: str,
    fill: Sequence[str],
    slots: Mapping[str, int],
    guests: Mapping[str, list[str]],
    avoid: Avoid,
) -> list[tuple[str, str]]:
    """Who moves where so that the newcomer gets a seat, last mover first; [] where nothing helps."""
    came_by: dict[str, str] = {}  # node: who would move there
    left: dict[str, str] = {}  # member: the node that it would leave
    queue = deque([start])
    while queue:
        uid = queue.popleft()
        for node in fill:
            if node in came_by or (uid, node) in avoid or not slots.get(node):
                continue
            came_by[node] = uid
            if len(guests[node]) < slots[node]:
                return _walk_back(node, came_by, left)
            for guest in guests[node]:
                left[guest] = node
                queue.append(guest)
    return []


def _walk_back(node: str, came_by: Mapping[str, str], left: Mapping[str, str]) -> list[tuple[str, str]]:
    path = [(came_by[node], node)]
    while path[-1][0] in left:
        freed = left[path[-1][0]]
        path.append((came_by[freed], freed))
    return path


def search(
    members: Sequence[Candidate],
    floor: int,
    fill: Sequence[str],
    open_nodes: OpenNodes,
    room: Room,
    avoid: Avoid,
    budget: Budget,
) -> dict[str, str]:
    """Nodes for at least the floor of the members, by UID; {} if there are none or the budget is spent."""
    if len(members) > SEARCH_MEMBERS:
        return {}
    order = {shape: i for i, shape in enumerate(hardest_first((m.shape for m in members), open_nodes))}
    queue = sorted(members, key=lambda m: order[m.shape])
    found = _Search(queue, fill, Table(open_nodes, room), avoid, budget)
    return found.placed if found.seat(0, len(members) - floor) else {}


class _Search:
    """Depth first; a set of seats that led nowhere is not tried again in another order."""

    def __init__(
        self, members: Sequence[Candidate], fill: Sequence[str], table: Table, avoid: Avoid, budget: Budget
    ) -> None:
        self.placed: dict[str, str] = {}
        self._members = members
        self._fill = fill
        self._table = table
        self._avoid = avoid
        self._budget = budget
        self._seats: Counter[tuple[Shape, str]] = Counter()
        self._dead: set[object] = set()

    def seat(self, index: int, spare: int) -> bool:
        """Seat the members from this one on, leaving out at most so many."""
        if index == len(self._members):
            return True
        seats = index, spare, frozenset(self._seats.items())
        if seats in self._dead or not self._budget.spend():
            return False
        if self._somewhere(index, spare) or (spare > 0 and self.seat(index + 1, spare - 1)):
            return True
        self._dead.add(seats)
        return False

    def _somewhere(self, index: int, spare: int) -> bool:
        member = self._members[index]
        for node in self._fill:
            if (member.uid, node) in self._avoid or not self._table.slots(member.shape, node):
                continue
            self._change(member, node, 1)
            if self.seat(index + 1, spare):
                return True
            self._change(member, node, -1)
        return False

    def _change(self, member: Candidate, node: str, number: int) -> None:
        seat = member.shape, node
        self._seats[seat] += number
        if number > 0:
            self._table.sit(member.shape, node)
            self.placed[member.uid] = node
            return
        self._table.rise(member.shape, node)
        del self.placed[member.uid]
        if not self._seats[seat]:
            del self._seats[seat]
