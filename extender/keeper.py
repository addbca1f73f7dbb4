"""The domain that is kept free for the gang at the head of the queue (rule 14 of the design).

A gang that needs a whole clique would never board under a steady stream of small ones: they would take
each node that comes free. So the first gang that is whole and finds no room has one domain kept for it,
the same until its nodes can't hold the gang any more; whoever is behind it is served around that domain.
"""

from collections.abc import Callable
from dataclasses import replace

from gangs.keeping import domain_to_keep, domains_to_keep, holds_when_empty
from gangs.muster import Muster
from gangs.planner import Boarding, Kept
from gangs.pods import GangKey
from gangs.room import Domain, Room


class Keeper:
    """What is kept, and for whom. Changed by the planning round alone."""

    def __init__(self, room: Room) -> None:
        self.kept: Kept | None = None
        self._room = room
        self._head: Muster | None = None
        self._looked = (-1, -1)
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
        if self.locked:
            return
        looked = self._room.changes, gang.floor
        if self.head == gang.key and self._looked == looked:
            return
        same = self.kept if self.head == gang.key else None
        self._head, self._looked = gang, looked
        wanted = replace(boarding(gang), avoid=frozenset())
        if not gang.required:
            found = domains_to_keep(wanted, self._room)
            self.kept = Kept(*found[0], gang.name, found[1:]) if found else None
            return
        if same and same.level == gang.required and holds_when_empty(wanted, self._room, same.domain):
            return
        domain = domain_to_keep(wanted, self._room)
        self.kept = Kept(gang.required, domain, gang.name) if domain else None

    def release(self) -> None:
        """Nobody is the head."""
        self.kept = self._head = None
        self.locked = False
