"""Who sits where so far, while a gang with subgroups is being seated in one domain.

What is still free of a node and which domain each subgroup has begun is kept here, and nobody is ever seated
where that does not allow it, whoever proposes it (gangs/seating.py by greed, gangs/trying.py by effort).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gangs.packing import Avoid, Candidate, OpenNodes, Table
from gangs.parts import Part, Site
from gangs.room import Domain, Room, domain_of

FREE: Final = Site()


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
        return frozenset({chosen}) if chosen else self.party.sites.get(part.name, FREE).anchors

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
