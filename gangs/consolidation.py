"""Which running gangs would have to move so that one that waits finds a domain.

Where room is enough in sum and in no domain, the cheapest set of moves: fewest gangs, the smallest of them,
each whole and into room that is free already (nobody moves in a circle). A proposal and no more: nothing
here moves anybody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gangs.planner import Boarding, Kept, Placement, place
from gangs.pods import GangKey
from gangs.preemption import Prey, clearing
from gangs.room import Domain, Room, Seat

TRIES: Final = 60  # sets of gangs; each may be planned elsewhere in the whole cluster


@dataclass(frozen=True, slots=True)
class Resident:
    """A gang that runs and could be moved. boarding: as if all of its members were to board anew."""

    key: GangKey
    name: str
    boarding: Boarding


@dataclass(frozen=True, slots=True)
class Move:
    """One gang to another domain; target is () where it needs none."""

    gang: str
    members: int
    target: Domain


@dataclass(frozen=True, slots=True)
class Proposal:
    """The moves after which the gang that waits boards this domain."""

    domain: Domain
    moves: tuple[Move, ...]


def proposal(boarding: Boarding, room: Room, residents: Iterable[Resident]) -> Proposal | None:
    """The cheapest moves, None where none are found or room is too little in sum."""
    if not boarding.required or not _enough_in_sum(boarding, room):
        return None
    by_key = {resident.key: resident for resident in residents}
    elsewhere = _Elsewhere(boarding, room, by_key)
    prey = [Prey(key, len(r.boarding.members), 0.0, _uids(r)) for key, r in by_key.items()]
    found = clearing(boarding, room, prey, lambda d, uids: elsewhere.seats(d, uids) is not None, TRIES)
    seats = elsewhere.seats(found.domain, found.uids) if found else None
    if not found or not seats:
        return None
    moves = [Move(by_key[key].name, len(seats[key].nodes), seats[key].domain) for key in sorted(seats)]
    return Proposal(found.domain, tuple(moves))


def _enough_in_sum(boarding: Boarding, room: Room) -> bool:
    shape = boarding.members[0].shape
    return sum(d.slots for d in room.domains(boarding.required, shape).values()) >= boarding.need


def _uids(resident: Resident) -> tuple[str, ...]:
    return tuple(member.uid for member in resident.boarding.members)


class _Elsewhere:
    """Plans gangs away from a domain, in a copy of the room where they still have their present seats."""

    def __init__(self, boarding: Boarding, room: Room, residents: Mapping[GangKey, Resident]) -> None:
        self._level = boarding.required
        self._copy = room.copied()
        self._residents = residents
        self._gang_of = {uid: key for key, resident in residents.items() for uid in _uids(resident)}

    def seats(self, domain: Domain, uids: Iterable[str]) -> dict[GangKey, Placement] | None:
        """Where each of these gangs would go, None where one finds no room; the largest choose first."""
        keys = {self._gang_of[uid] for uid in uids}
        kept = Kept(self._level, domain, "")
        found: dict[GangKey, Placement] = {}
        taken: list[str] = []
        try:
            for key in sorted(keys, key=lambda k: (-len(self._residents[k].boarding.members), k)):
                boarding = self._residents[key].boarding
                placement = place(boarding, self._copy, kept)
                if placement is None:
                    return None
                found[key] = placement
                for member in boarding.members:
                    holder = f"{member.uid} moved"
                    self._copy.take(holder, Seat(placement.nodes[member.uid], member.shape.requests, ""))
                    taken.append(holder)
            return found
        finally:
            for holder in taken:
                self._copy.give(holder)
