"""Seats for a gang with subgroups that greed misses: back-tracking over members and nodes, within bounds.

Subgroups in domains of their own are bin packing in bin packing, which is NP-hard: past the budget of looks,
and for gangs of more than SEARCH_MEMBERS, the answer is "none found". The budget counts looks, not time, so
that equal inputs give equal answers.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gangs.exact import SEARCH_MEMBERS, Budget
from gangs.nodes import Shape
from gangs.packing import OpenNodes, hardest_first
from gangs.room import Room
from gangs.seating import Greed
from gangs.seats import Party, Seats

SEARCH_LOOKS: Final = 20_000  # at one node for one member, in all domains of one plan: about 50 ms


def seat_exactly(
    party: Party, fill: Sequence[str], open_nodes: OpenNodes, room: Room, budget: Budget
) -> dict[str, str]:
    """The same by trying everything; {} also where the budget is spent or there are too many members."""
    if len(party.members) > SEARCH_MEMBERS:
        return {}
    seats = Seats(party, open_nodes, room)
    if not _Search(seats, fill, budget).seat(0):
        return {}
    if party.only_floor:
        _trim(seats)
    else:
        Greed(seats, fill).rest(party.whole)
    return seats.placed


def _trim(seats: Seats) -> None:
    """Unseat whoever the others could board without: a search takes members as they come."""
    for uid in list(seats.placed):
        if seats.party.enough({u: n for u, n in seats.placed.items() if u != uid}):
            seats.rise(seats.members[uid])


class _Search:
    """Depth first over members; a set of seats that led nowhere is not tried again in another order."""

    def __init__(self, seats: Seats, fill: Sequence[str], budget: Budget) -> None:
        leaf = {uid: part.name for part in seats.party.whole.leaves for uid in part.members}
        shapes = hardest_first((m.shape for m in seats.party.members), seats.open_nodes)
        rank = {shape: i for i, shape in enumerate(shapes)}
        self._kinds = {m.uid: (leaf.get(m.uid, ""), m.shape) for m in seats.party.members}
        self._order = sorted(seats.party.members, key=lambda m: (self._kinds[m.uid][0], rank[m.shape]))
        self._left = [frozenset(m.uid for m in self._order[i:]) for i in range(len(self._order) + 1)]
        self._seats = seats
        self._fill = fill
        self._budget = budget
        self._taken: Counter[tuple[tuple[str, Shape], str]] = Counter()
        self._dead: set[object] = set()

    def seat(self, index: int) -> bool:
        """Seat as many of the members from this one on as it takes."""
        party, placed = self._seats.party, self._seats.placed
        if party.enough(placed):
            return True
        hoped = dict.fromkeys((*placed, *self._left[index]), "")
        if not party.enough(hoped):
            return False
        state = index, frozenset((+self._taken).items())
        if state in self._dead:
            return False
        if self._somewhere(index) or self.seat(index + 1):
            return True
        self._dead.add(state)
        return False

    def _somewhere(self, index: int) -> bool:
        member = self._order[index]
        kind = self._kinds[member.uid]
        for node in self._fill:
            if not self._budget.spend():
                return False
            if self._seats.allows(member, node):
                self._seats.sit(member, node)
                self._taken[kind, node] += 1
                if self.seat(index + 1):
                    return True
                self._taken[kind, node] -= 1
                self._seats.rise(member)
        return False
