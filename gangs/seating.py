"""Members to nodes inside one domain, for a gang with subgroups: each subgroup in a domain of its own.

    floors, subgroup by subgroup, best domain first ──► surplus, where the rest of its subgroup sits

Greed takes no step back but for one subgroup's own; what it may miss is found by gangs/trying.py.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from gangs.packing import Candidate, OpenNodes, hardest_first, in_groups
from gangs.parts import Part
from gangs.room import Domain, Room, domain_of
from gangs.seats import FREE, Party, Seats


def seat_greedily(party: Party, fill: Sequence[str], open_nodes: OpenNodes, room: Room) -> dict[str, str]:
    """Nodes by UID, {} where greed finds no room for some floor. fill: node names, first filled first."""
    seats = Seats(party, open_nodes, room)
    greed = Greed(seats, fill)
    if not greed.floors(party.whole, fill):
        return {}
    greed.rest(party.whole)
    return seats.placed if party.enough(seats.placed) else {}


def stuck(party: Party, fill: Sequence[str], open_nodes: OpenNodes, room: Room) -> Part | None:
    """The first subgroup that finds no room even if all others leave it theirs; None where each does."""
    for part in party.whole.everything[1:]:
        if part.floor and not Greed(Seats(party, open_nodes, room), fill).floors(part, fill):
            return part
    return None


class Greed:
    """Subgroup by subgroup, the best domain first, no step taken back but for one subgroup's own."""

    def __init__(self, seats: Seats, fill: Sequence[str]) -> None:
        self._seats = seats
        self._fill = fill
        self._scopes: dict[str, Sequence[str]] = {"": fill}

    def floors(self, part: Part, scope: Sequence[str]) -> bool:
        """Seat what the part's floor lacks; leaves nothing behind where that fails."""
        for nodes in self._options(part, scope):
            before = set(self._seats.placed)
            if self._floor_in(part, nodes):
                self._scopes[part.name] = nodes
                return True
            for uid in self._seats.placed.keys() - before:
                self._seats.rise(self._seats.members[uid])
            for inner in part.everything:
                self._scopes.pop(inner.name, None)
        return False

    def rest(self, part: Part) -> None:
        """Seat who is left, where the part's others sit: as many as there is room for, or are needed."""
        scope = self._scopes.get(part.name, self._fill)
        for inner in part.parts:
            if self._spare() > 0 and (inner.name in self._scopes or self.floors(inner, scope)):
                self.rest(inner)
        inside = frozenset(uid for inner in part.parts for uid in inner.members)
        self._take([m for m in self._seats.waiting(part) if m.uid not in inside], scope, self._spare())

    def _floor_in(self, part: Part, nodes: Sequence[str]) -> bool:
        if not part.parts:
            lacks = self._lacks(part)
            return self._take(self._seats.waiting(part), nodes, lacks) >= lacks
        met = 0
        for inner in sorted(part.parts, key=lambda p: (not p.required, -p.least, p.name)):
            if met >= part.floor:
                break
            met += bool(inner.floor) and self.floors(inner, nodes)
        return met >= part.floor

    def _lacks(self, part: Part) -> int:
        return max(0, part.least - len(part.members & self._seats.placed.keys()))

    def _options(self, part: Part, scope: Sequence[str]) -> Iterable[Sequence[str]]:
        """The nodes of each domain that the part may take, best first, each in the order to be filled."""
        wanted = self._seats.waiting(part)
        if not part.required:
            return (self._preferred(part, scope, wanted),)
        domains = self._domains(part, scope)
        fits = {domain: self._fit(wanted, nodes) for domain, nodes in domains.items()}
        hinted = {node for m in wanted if (node := self._seats.party.hints.get(m.uid))}

        def rank(domain: Domain) -> tuple[bool, bool, int, Domain]:
            fit, slots = fits[domain]
            enough = fit >= len(wanted)
            return hinted.isdisjoint(domains[domain]), not enough, slots if enough else -fit, domain

        able = sorted((d for d, (fit, _) in fits.items() if fit >= self._lacks(part)), key=rank)
        return (self._preferred(part, domains[domain], wanted) for domain in able)

    def _domains(self, part: Part, scope: Sequence[str]) -> dict[Domain, list[str]]:
        anchors = self._seats.anchors(part)
        domains: dict[Domain, list[str]] = {}
        for name in scope:
            domain = domain_of(self._seats.room.nodes[name], part.required)
            if domain is not None and (not anchors or domain in anchors):
                domains.setdefault(domain, []).append(name)
        return domains

    def _fit(self, wanted: Sequence[Candidate], nodes: Sequence[str]) -> tuple[int, int]:
        """How many of them the nodes take at most, each shape counted as if it were alone; and all slots."""
        counts = Counter(member.shape for member in wanted)
        slots = {shape: sum(self._seats.table.slots(shape, n) for n in nodes) for shape in counts}
        return sum(min(n, slots[shape]) for shape, n in counts.items()), max(slots.values(), default=0)

    def _preferred(self, part: Part, nodes: Sequence[str], wanted: Sequence[Candidate]) -> Sequence[str]:
        if not part.preferred or not wanted:
            return nodes
        shape = hardest_first((m.shape for m in wanted), self._seats.open_nodes)[0]
        slots = {node: self._seats.table.slots(shape, node) for node in nodes}
        near = self._seats.party.sites.get(part.name, FREE).near
        return in_groups(nodes, slots, self._seats.room, part.preferred, near, len(wanted))

    def _spare(self) -> int:
        party = self._seats.party
        return party.need - len(self._seats.placed) if party.only_floor else len(party.members)

    def _take(self, members: Sequence[Candidate], nodes: Sequence[str], most: int) -> int:
        """Seat up to so many of these, where they sat if possible; how many were."""
        before = len(self._seats.placed)
        for member in members[: max(most, 0)]:
            hint = self._seats.party.hints.get(member.uid)
            if hint and hint in nodes and self._seats.allows(member, hint):
                self._seats.sit(member, hint)
        for shape in hardest_first((m.shape for m in members), self._seats.open_nodes):
            alike = [m for m in members if m.shape is shape]
            self._seat_alike(alike, nodes, most - (len(self._seats.placed) - before))
        return len(self._seats.placed) - before

    def _seat_alike(self, members: Sequence[Candidate], nodes: Sequence[str], most: int) -> None:
        start = 0  # nodes before it are full for this shape
        for member in members:
            if most <= 0:
                return
            if member.uid in self._seats.placed:
                continue
            while start < len(nodes) and not self._seats.table.slots(member.shape, nodes[start]):
                start += 1
            free = (nodes[i] for i in range(start, len(nodes)) if self._seats.allows(member, nodes[i]))
            if node := next(free, None):
                self._seats.sit(member, node)
                most -= 1
