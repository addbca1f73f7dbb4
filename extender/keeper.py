"""The domain that is kept free for the gang at the head of the queue (rule 14 of the design).

A gang that needs a whole clique would never board under a steady stream of small ones: they would take
each node that comes free. So the first gang that is whole and finds no room has one domain kept for it,
the same until its nodes can't hold the gang any more, or another one has more room; whoever is behind it is
served around that domain.
"""

from collections.abc import Callable
from dataclasses import replace

from gangs.keeping import able_domains, domains_to_keep, roomiest
from gangs.muster import Muster
from gangs.planner import Boarding, Kept, slots_in
from gangs.pods import GangKey
from gangs.room import Domain, Room


class Keeper:
    """What is kept, and for whom. Changed by the planning round alone."""

    def __init__(self, room: Room) -> None:
        self.kept: Kept | None = None
        self._room = room
        self._head: Muster | None = None
        self._looked = (-1, -1, -1)
        self._able: tuple[Domain, ...] = ()
        self.locked = False
        self.cleared = False

    @property
    def head(self) -> GangKey | None:
        """The gang for which a domain is kept, or would be if one could hold it."""
        return self._head.key if self._head else None

    def kept_from(self, gang: Muster) -> Kept | None:
        """What is kept for another one."""
        return None if self.head == gang.key else self.kept

    def lock(self, gang: Muster, domain: Domain) -> None:
        """This domain is being cleared for the gang: nobody gets in, whoever's turn it is.

        The gang itself does once cleared is set, the others after release().
        """
        self._head, self.kept, self.locked = gang, Kept(gang.required, domain, gang.name), True
        self.cleared = False

    def keep_for(self, gang: Muster, boarding: Callable[[Muster], Boarding]) -> None:
        """This gang is the head now; looks for its domain anew only where something has changed.

        Does nothing while a domain is locked: then it is cleared for another gang.
        """
        looked = self._room.changes, gang.floor, self._room.growth
        if self.locked or (self.head == gang.key and self._looked == looked):
            return
        anew = self.head != gang.key or self._looked[:2] != looked[:2]
        self._looked = looked
        wanted = replace(boarding(gang), avoid=frozenset())
        if gang.required:
            self._keep_one(gang, wanted, anew=anew)
        elif anew:
            found = domains_to_keep(wanted, self._room)
            self.kept = Kept(*found[0], gang.name, found[1:]) if found else None
        self._head = gang

    def _keep_one(self, gang: Muster, wanted: Boarding, *, anew: bool) -> None:
        """Keep the roomiest domain that could hold it, and stay with that until another one has more room.

        What is kept only grows, while others take what comes free elsewhere; so it is left for a domain that
        is emptied faster, and never for one that is not.
        """
        if anew:
            self._able = able_domains(wanted, self._room)
        best = roomiest(self._able, wanted, self._room)
        same = self.kept.domain if self.kept and self.head == gang.key else None
        if best is not None and same is not None and same in self._able:
            more = slots_in(wanted, self._room, best) > slots_in(wanted, self._room, same)
            best = best if more else same
        self.kept = Kept(gang.required, best, gang.name) if best is not None else None

    def release(self) -> None:
        """Nobody is the head."""
        self.kept = self._head = None
        self.locked = False
