"""Members to nodes inside one domain, for a gang with subgroups: each subgroup in a domain of its own.

    floors, subgroup by subgroup, best domain first ──► surplus, where the rest of its subgroup sits
                  │ some floor found no room
                  └──► back-tracking over members and nodes, within bounds (gangs/exact.py has the reason)

What is still free of a node and who sits in which domain is kept by Seats; nothing is ever seated that it
does not allow, whoever proposes it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gangs.exact import SEARCH_MEMBERS, Budget
from gangs.nodes import Shape
from gangs.packing import Avoid, Candidate, OpenNodes, Table, hardest_first, in_groups
from gangs.parts import Part, Site
from gangs.room import Domain, Room, domain_of

SEARCH_LOOKS: Final = 20_000  # at one node for one member, in all domains of one plan: about 40 ms
_FREE: Final = Site()


@dataclass(frozen=True, slots=True)
class Party:
    """The gang that is to be seated.

    members: those without a node. need: how many must be placed in all. whole: the gang as a Part.
    sites: where each part sits already, by name. only_floor: seat no more than must board at once.
    """

    members: tuple[Candidate, ...]
    need: int
    whole: Part
    sites: Mapping[str, Site] = field(default_factory=dict)
    avoid: Avoid = frozenset()
    hints: Mapping[str, str] = field(default_factory=dict)
    only_floor: bool = False

    def enough(self, placed: Mapping[str, str]) -> bool:
        """Whether those placed may board."""
        return len(placed) >= self.need and self.whole.met(placed.keys())


def seat_greedily(party: Party, fill: Sequence[str], open_nodes: OpenNodes, room: Room) -> dict[str, str]:
    """Nodes by UID, {} where greed finds no room for some floor. fill: node names, first filled first."""
    seats = Seats(party, open_nodes, room)
    greed = _Greed(seats, fill)
    if not greed.floors(party.whole, fill):
        return {}
    greed.rest(party.whole)
    return seats.placed if party.enough(seats.placed) else {}


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
        _Greed(seats, fill).rest(party.whole)
    return seats.placed


def _trim(seats: "Seats") -> None:
    """Unseat whoever the others could board without: a search takes members as they come."""
    for uid in list(seats.placed):
        if seats.party.enough({u: n for u, n in seats.placed.items() if u != uid}):
            seats.rise(seats.members[uid])


def stuck(party: Party, fill: Sequence[str], open_nodes: OpenNodes, room: Room) -> Part | None:
    """The first subgroup that finds no room even if all others leave it theirs; None where each does."""
    for part in party.whole.everything[1:]:
        if part.floor and not _Greed(Seats(party, open_nodes, room), fill).floors(part, fill):
            return part
    return None


class Seats:
    """Who sits where so far. placed: node by UID."""

    def __init__(self, party: Party, open_nodes: OpenNodes, room: Room) -> None:
        self.placed: dict[str, str] = {}
        self.party = party
        self.open_nodes = open_nodes
        self.room = room
        self.table = Table(open_nodes, room)
        self.members = {member.uid: member for member in party.members}
        self._bound_by: dict[str, list[Part]] = {uid: [] for uid in self.members}
        for part in party.whole.everything:
            if part.required:
                for uid in part.members & self._bound_by.keys():
                    self._bound_by[uid].append(part)
        self._domains: dict[str, Counter[Domain]] = {part.name: Counter() for part in party.whole.everything}
        self._of = {
            part.name: [m for m in party.members if m.uid in part.members] for part in party.whole.everything
        }

    def allows(self, member: Candidate, node: str) -> bool:
        """Whether the member may sit there now."""
        if (member.uid, node) in self.party.avoid or not self.table.slots(member.shape, node):
            return False
        return all(self._agrees(part, node) for part in self._bound_by[member.uid])

    def sit(self, member: Candidate, node: str) -> None:
        """Seat the member."""
        self.table.sit(member.shape, node)
        self.placed[member.uid] = node
        for part, domain in self._in_domains(member, node):
            self._domains[part.name][domain] += 1

    def rise(self, member: Candidate) -> None:
        """Take the member's seat away again."""
        node = self.placed.pop(member.uid)
        self.table.rise(member.shape, node)
        for part, domain in self._in_domains(member, node):
            self._domains[part.name][domain] -= 1

    def domain(self, part: Part) -> Domain | None:
        """Where the part's members sit by now, None while nobody does."""
        return next((domain for domain, number in self._domains[part.name].items() if number), None)

    def anchors(self, part: Part) -> frozenset[Domain]:
        """The domains that the part may use; empty: any."""
        chosen = self.domain(part)
        return frozenset({chosen}) if chosen else self.party.sites.get(part.name, _FREE).anchors

    def waiting(self, part: Part) -> list[Candidate]:
        """Members of the part without a seat, in the gang's order."""
        return [m for m in self._of[part.name] if m.uid not in self.placed]

    def _agrees(self, part: Part, node: str) -> bool:
        domain = domain_of(self.room.nodes[node], part.required)
        anchors = self.anchors(part)
        return domain is not None and (not anchors or domain in anchors)

    def _in_domains(self, member: Candidate, node: str) -> Iterator[tuple[Part, Domain]]:
        for part in self._bound_by[member.uid]:
            if (domain := domain_of(self.room.nodes[node], part.required)) is not None:
                yield part, domain


class _Greed:
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
        near = self._seats.party.sites.get(part.name, _FREE).near
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
