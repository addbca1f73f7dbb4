"""Which domain a gang boards, and which node each member takes.

The caller hands in the gang's members that are to be placed and the room of the cluster; place() answers
with a Placement or None, and explain() says which domain came closest and what it lacks. Nothing here
knows of Pods on the wire, of time or of permits.

    Boarding ──► domains that could hold the floor ──► best first ──► pack() ──► node per member
                                                  greed found none ──► match(), search() ──┘

Best is the domain with the least room left that still takes every member there is or will be (KAI's
rule: whole cliques stay whole); where none takes them all, the one that takes most. Ties go by name, so
equal inputs give equal answers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from gangs.exact import Budget, match, search
from gangs.nodes import Node, Shape
from gangs.packing import Candidate, hardness, in_groups, pack
from gangs.parts import Part, Site
from gangs.room import Domain, Level, Room, domain_of
from gangs.seating import seat_greedily, stuck
from gangs.seats import Party
from gangs.shortage import Shortage, Tie, shortage, tie
from gangs.trying import SEARCH_LOOKS, seat_exactly

WHOLE_CLUSTER: Final[Domain] = ()


@dataclass(frozen=True, slots=True)
class Boarding:
    """What is to be placed.

    members: those without a node yet, in rank order.
    floor: how many of them must be placed or none is.
    required: node labels that all members must share, widest first; () for none.
    preferred: a node label that as many as possible should share, "" for none.
    anchors: domains of the required level that hold members already; empty: free choice.
    near: values of the preferred label that hold members already.
    outlook: how many members are to come in all, those to be placed now included.
    avoid: (member, node) pairs that kube-scheduler refused lately.
    hints: nodes that an earlier plan gave to members; kept where still possible.
    whole: the gang's subgroups, None for a gang without. sites: where each of them sits already, by name.
    only_floor: place no more than must board at once, but where all would fit; of a gang with subgroups.
    """

    members: tuple[Candidate, ...]
    floor: int
    required: Level = ()
    preferred: str = ""
    anchors: frozenset[Domain] = frozenset()
    near: frozenset[str] = frozenset()
    outlook: int = 0
    avoid: frozenset[tuple[str, str]] = frozenset()
    hints: Mapping[str, str] = field(default_factory=dict)
    whole: Part | None = None
    sites: Mapping[str, Site] = field(default_factory=dict)
    only_floor: bool = False

    @property
    def need(self) -> int:
        """How many must be placed for a placement to count."""
        return max(1, self.floor)


@dataclass(frozen=True, slots=True)
class Kept:
    """A domain kept free for the gang at the head of the queue; nobody else is placed into it.

    others: more of them, where only subgroups of the gang ask for domains.
    """

    level: Level
    domain: Domain
    gang: str
    others: tuple[tuple[Level, Domain], ...] = ()

    def holds(self, node: Node) -> bool:
        """Whether the node is part of what is kept."""
        return any(domain_of(node, level) == domain for level, domain in self.all)

    @property
    def all(self) -> tuple[tuple[Level, Domain], ...]:
        """Every domain that is kept."""
        return (self.level, self.domain), *self.others


@dataclass(frozen=True, slots=True)
class Placement:
    """A node for each member placed (by UID), and the domain they share."""

    domain: Domain
    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why there is no placement: the domain that came closest, or None where no domain exists.

    kept_for: the gang at the head for which a domain that would have done is kept, "" if none is.
    tie: the first member that can't go everywhere because of its volumes.
    part: the subgroup that finds no room in a domain which has enough for the gang; what it lacks is in
    nearest. crowded: each subgroup would find room there, but not all of them at once.
    home: where its other members are, if no node belongs to that domain now.
    largest: how many members the largest domain could hold if it were empty and every node of it usable; None
    where members differ or the domain is settled, so that nothing can be said.
    """

    nearest: Shortage | None
    kept_for: str = ""
    tie: Tie | None = None
    part: str = ""
    crowded: bool = False
    home: Domain = ()
    largest: int | None = None


def place(boarding: Boarding, room: Room, kept: Kept | None = None) -> Placement | None:
    """Place at least the floor of the gang into one domain; None where that can't be done.

    Deterministic: equal inputs give equal answers; the order of members decides only which of two equals
    takes which node. Members of one shape: a placement that exists is found. Several shapes: found where
    greed or a search of SEARCH_STEPS steps finds it. Never is a node given more than it has.
    """
    found = _seated(_ranked(boarding, room), boarding, room, kept)
    return next((Placement(domain, nodes) for domain, nodes in found), None)


def explain(boarding: Boarding, room: Room, kept: Kept | None = None) -> Rejection:
    """Why place() finds nothing: looks at every node of the nearest domain, so not for the hot path."""
    domains = list(eligible(boarding, room))
    if not domains:
        return Rejection(None, home=min(boarding.anchors, default=()))
    nearest = min(domains, key=lambda d: (-slots_in(boarding, room, d), d))
    would_do = kept and any(holds(d, boarding, room) for d in domains)
    tied = next((tie(m.uid, m.shape, room) for m in boarding.members if m.shape.ties), None)
    found = _lack(boarding, room, nearest)
    kept_for = kept.gang if kept and would_do else ""
    largest = _largest(boarding, room)
    return Rejection(found.shortage, kept_for, tied, found.part, found.crowded, largest=largest)


@dataclass(frozen=True, slots=True)
class _Lack:
    """What a domain lacks. part, crowded: as in Rejection."""

    shortage: Shortage
    part: str = ""
    crowded: bool = False


def _lack(boarding: Boarding, room: Room, domain: Domain) -> _Lack:
    found = shortage(_lead(boarding), boarding.required, domain, room, boarding.need)
    if boarding.whole and found.have >= found.need:
        return _lack_of_a_part(found, boarding, boarding.whole, domain, room)
    return _Lack(found)


def _lack_of_a_part(found: Shortage, boarding: Boarding, whole: Part, domain: Domain, room: Room) -> _Lack:
    """The domain has room for so many: then what does which subgroup lack in it?"""
    open_nodes = _open_nodes(domain, boarding, room, None)
    part = stuck(_party(boarding, whole), _fill_order(boarding, room, open_nodes), open_nodes, room)
    if part is None:
        return _Lack(found, crowded=True)
    level = tuple(dict.fromkeys((*boarding.required, *part.required)))
    members = [m for m in boarding.members if m.uid in part.members]
    lead = min({m.shape for m in members}, key=hardness)
    rooms = room.domains(level, lead)
    inside = [d for d in rooms if d[: len(domain)] == domain]
    if not inside:
        return _Lack(found, part.name)
    nearest = min(inside, key=lambda d: (-rooms[d].slots, d))
    return _Lack(shortage(lead, level, nearest, room, part.least), part.name)


def shortages(boarding: Boarding, room: Room) -> list[Shortage]:
    """What each domain lacks that can't take the floor, by name. Packs every one: not for the hot path.

    Where there is room for so many, what the first subgroup lacks that finds none.
    """
    return [
        _lack(boarding, room, domain).shortage
        for domain in sorted(eligible(boarding, room))
        if not holds(domain, boarding, room)
    ]


def for_equals(boarding: Boarding) -> frozenset[tuple[str, str]]:
    """What the boarding avoids, for every member of the same shape as the one that was refused."""
    shapes = {m.uid: m.shape for m in boarding.members}
    refused = {(shapes[uid], node) for uid, node in boarding.avoid if uid in shapes}
    return frozenset((m.uid, node) for shape, node in refused for m in boarding.members if m.shape is shape)


def _largest(boarding: Boarding, room: Room) -> int | None:
    shape = _lead(boarding)
    alike = all(member.shape is shape for member in boarding.members)
    return room.largest(boarding.required, shape) if alike and not boarding.anchors else None


def _ranked(boarding: Boarding, room: Room) -> list[Domain]:
    """Domains that may hold the floor, best first."""
    hinted = {
        domain_of(room.nodes[node], boarding.required)
        for node in boarding.hints.values()
        if node in room.nodes
    }
    wanted = max(boarding.outlook, len(boarding.members))
    to_come = wanted - len(boarding.members)
    now = _fits(boarding, room)
    later = _fits(boarding, room, to_come) if to_come else now
    lead = room.domains(boarding.required, _lead(boarding))

    def rank(domain: Domain) -> tuple[bool, bool, int, Domain]:
        fit = later[domain]
        free = lead[domain].free if domain in lead else 0
        return domain not in hinted, fit < wanted, free if fit >= wanted else -fit, domain

    return sorted((d for d, fit in now.items() if fit >= boarding.need), key=rank)


def _lead(boarding: Boarding) -> Shape:
    """The shape by which domains are compared: the hardest, whichever member comes first."""
    shapes = {m.shape for m in boarding.members}
    return shapes.pop() if len(shapes) == 1 else min(shapes, key=hardness)


def eligible(boarding: Boarding, room: Room) -> Iterable[Domain]:
    """The domains that the gang may use, full ones included."""
    if not boarding.required:
        return (WHOLE_CLUSTER,)
    known = room.domains(boarding.required, _lead(boarding))
    return [d for d in known if d in boarding.anchors] if boarding.anchors else known


def _fits(boarding: Boarding, room: Room, to_come: int = 0) -> Mapping[Domain, int]:
    """How many members each domain takes at most: an upper bound, as shapes are counted each alone.

    to_come: members of the hardest shape that are expected beyond those to be placed.
    """
    counts = _by_shape(boarding.members)
    counts[_lead(boarding)] += to_come
    fits = dict.fromkeys(eligible(boarding, room), 0)
    for shape, number in counts.items():
        rooms = room.domains(boarding.required, shape)
        for domain in fits:
            if left := rooms.get(domain):
                fits[domain] += left.slots if left.slots < number else number  # min() costs twice as much
    return fits


def _by_shape(members: Iterable[Candidate]) -> dict[Shape, int]:
    counts: dict[Shape, int] = {}
    for member in members:
        counts[member.shape] = counts.get(member.shape, 0) + 1
    return counts


def slots_in(boarding: Boarding, room: Room, domain: Domain) -> int:
    """How many members of the hardest shape the domain takes now."""
    left = room.domains(boarding.required, _lead(boarding)).get(domain)
    return left.slots if left else 0


def holds(domain: Domain, boarding: Boarding, room: Room) -> bool:
    """Whether the floor finds room in the domain now."""
    enough = _fits(boarding, room).get(domain, 0) >= boarding.need
    return enough and any(_seated([domain], boarding, room, None))


def _seated(
    ranked: Sequence[Domain], boarding: Boarding, room: Room, kept: Kept | None
) -> Iterator[tuple[Domain, Mapping[str, str]]]:
    """The domains that take the floor, and who sits where: by greed, then by effort where that may help."""
    if boarding.whole:
        yield from _by_parts(ranked, boarding, boarding.whole, room, kept)
        return
    for domain, nodes in chain(
        _greedily(ranked, boarding, room, kept), _exactly(ranked, boarding, room, kept)
    ):
        if len(nodes) >= boarding.need:
            yield domain, nodes


def _greedily(
    ranked: Iterable[Domain], boarding: Boarding, room: Room, kept: Kept | None
) -> Iterator[tuple[Domain, Mapping[str, str]]]:
    for domain in ranked:
        open_nodes = _open_nodes(domain, boarding, room, kept)
        fill = _fill_order(boarding, room, open_nodes)
        yield domain, pack(boarding.members, fill, open_nodes, room, boarding.avoid, boarding.hints)


def _exactly(
    ranked: Iterable[Domain], boarding: Boarding, room: Room, kept: Kept | None
) -> Iterator[tuple[Domain, Mapping[str, str]]]:
    """The same domains again, packed with more effort where effort can find more than greed did."""
    shapes = _by_shape(boarding.members)
    if len(shapes) == 1 and not boarding.avoid:
        return
    budget = Budget()
    for domain in ranked:
        open_nodes = _open_nodes(domain, boarding, room, kept)
        fill = _fill_order(boarding, room, open_nodes)
        if len(shapes) == 1:
            yield domain, match(boarding.members, fill, open_nodes[_lead(boarding)], boarding.avoid)
        else:
            yield (
                domain,
                search(boarding.members, boarding.need, fill, open_nodes, room, boarding.avoid, budget),
            )


def _by_parts(
    ranked: Sequence[Domain], boarding: Boarding, whole: Part, room: Room, kept: Kept | None
) -> Iterator[tuple[Domain, Mapping[str, str]]]:
    """The same for a gang with subgroups."""
    party = _party(boarding, whole)
    budget = Budget(SEARCH_LOOKS)
    for exactly in (False, True):
        for domain in ranked:
            open_nodes = _open_nodes(domain, boarding, room, kept)
            fill = _fill_order(boarding, room, open_nodes)
            if exactly:
                nodes = seat_exactly(party, fill, open_nodes, room, budget)
            else:
                nodes = seat_greedily(party, fill, open_nodes, room)
            if nodes:
                yield domain, nodes


def _party(boarding: Boarding, whole: Part) -> Party:
    return Party(
        members=boarding.members,
        need=boarding.need,
        whole=whole,
        sites=boarding.sites,
        avoid=boarding.avoid,
        hints=boarding.hints,
        only_floor=boarding.only_floor,
    )


def _open_nodes(
    domain: Domain, boarding: Boarding, room: Room, kept: Kept | None
) -> dict[Shape, Mapping[str, int]]:
    """Per shape, the nodes of the domain that take it and are kept for nobody."""
    open_nodes: dict[Shape, Mapping[str, int]] = {}
    for shape in _by_shape(boarding.members):
        slots = room.members(boarding.required, shape, domain)
        open_nodes[shape] = {n: s for n, s in slots.items() if not (kept and kept.holds(room.nodes[n]))}
    return open_nodes


def _fill_order(boarding: Boarding, room: Room, open_nodes: Mapping[Shape, Mapping[str, int]]) -> list[str]:
    """The domain's nodes in the order in which they are filled: best preferred group first, fullest first."""
    slots = open_nodes[_lead(boarding)]
    names = {name for nodes in open_nodes.values() for name in nodes}
    ordered = sorted(names, key=lambda n: (slots.get(n, 0), n))
    wanted = max(boarding.outlook, len(boarding.members))
    return in_groups(ordered, slots, room, boarding.preferred, boarding.near, wanted)
