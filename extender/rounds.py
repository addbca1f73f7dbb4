"""The planning round: who may board now, and where.

Looks at every gang with unseated members in queue order. A gang that is whole and fits gets its seats;
the first whole one that does not fit has a domain kept free for it (rule 14 of the design); everybody
else is served around that. A round costs nothing for gangs of which nothing changed while no room came
free.

    registry.changed ──► pending gangs ──► in order ──► place() ──► Granted ──► grant writer
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Final, Protocol

from extender.keeper import Keeper
from extender.registry import Registry
from extender.store import PermitStore
from gangs import contract
from gangs.muster import Muster
from gangs.nodes import Node, Shape
from gangs.notes import Note
from gangs.order import in_order
from gangs.packing import Candidate
from gangs.parts import Part, Site
from gangs.permits import Granted
from gangs.planner import Boarding, Kept, Placement, for_equals, place
from gangs.pods import GangKey, Pod
from gangs.room import Domain, Room, domain_of

# An NVCF partition's owners arrive one by one and nothing says how many there are to be (rule 3).
SETTLE_SECONDS: Final = 2.0
SETTLE_MOST_SECONDS: Final = 10.0
# Room comes free node by node. While a gang lacks its floor, surplus takes none of it at once: the next node
# may make it enough for the floor. But room may come without end, so surplus is held back only so long.
SURPLUS_SECONDS: Final = 2.0
SURPLUS_MOST_SECONDS: Final = 30.0


class Standing(StrEnum):
    """Why a pending gang has no seats yet; the values are our event reasons."""

    GATHERING = "GangGathering"
    HELD = "GangHeld"
    BACKING_OFF = "GangBackingOff"
    WAITING = "GangWaiting"
    FOLLOWING = "GangFollowing"


class GrantWriter(Protocol):
    """Writes grants to the API server, in its own time."""

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Nominate and release these members."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A gang with members that have no seat."""

    gang: Muster
    unseated: tuple[Pod, ...]
    standing: Standing


Planner = Callable[[Boarding, Room, Kept | None], Placement | None]


class Rounds:
    """Runs planning rounds. pending says why each gang without seats has none."""

    def __init__(
        self,
        registry: Registry,
        room: Room,
        store: PermitStore,
        writer: GrantWriter,
        clock: Callable[[], float],
        lifted: Callable[[Note], bool],
        planner: Planner = place,
        shape: Callable[[Pod], Shape] = attrgetter("shape"),
    ) -> None:
        self.pending: dict[GangKey, Pending] = {}
        self.keeper = Keeper(room)
        self._registry = registry
        self._room = room
        self._store = store
        self._writer = writer
        self._clock = clock
        self._lifted = lifted
        self._planner = planner
        self._shape = shape
        self._rejected: dict[GangKey, tuple[int, Kept | None]] = {}
        self._restarted = True
        self._grown = (0, clock())  # the room's growth, and since when it is that
        self._let_through = clock()  # when surplus was held back by nobody, last

    def run(self) -> None:
        """One round."""
        self._collect()
        if self.keeper.head not in self.pending:
            self.keeper.release()
        head: GangKey | None = None
        floor_waits = False
        for gang in in_order(p.gang for p in self.pending.values()):
            surplus = gang.subgroups is not None and gang.complete
            held_back = surplus and self._holds_back_surplus(floor_waits)
            standing = Standing.WAITING if held_back else self._consider(gang)
            floor_waits |= standing is Standing.WAITING and not gang.complete
            if standing is Standing.WAITING and head is None and self._lacks_floor(gang):
                head = gang.key
                self.keeper.keep_for(gang, self.boarding)
            elif self.keeper.head == gang.key:
                self.keeper.release()
            self._stand(gang, standing)
        self._restarted = False

    def restart(self) -> None:
        """A new term begins: look at every gang again, and go on with plans made before it."""
        self.pending.clear()
        self.keeper.release()
        self._rejected.clear()
        self._registry.changed.update(self._registry.keys)
        self._restarted = True

    def _stand(self, gang: Muster, standing: Standing | None) -> None:
        if standing is None:
            del self.pending[gang.key]
        else:
            self.pending[gang.key] = replace(self.pending[gang.key], standing=standing)

    def boarding(self, gang: Muster) -> Boarding:
        """What the planner is asked for the gang's unseated members."""
        permit = self._store.permit(gang.key)
        unseated = [p for p in gang.ready if p.uid not in permit.seats]
        settled = [p.node for p in gang.bound + gang.leaving] + list(permit.seats.values())
        nodes = [self._room.nodes[n] for n in settled if n in self._room.nodes]
        domains = {domain_of(n, gang.required) for n in nodes} if gang.required else set()
        near = {n.labels.get(gang.preferred, "") for n in nodes} if gang.preferred else set()
        parts = gang.subgroups and (gang.subgroups.relaxed() if gang.aboard else gang.subgroups)
        return Boarding(
            members=tuple(Candidate(p.uid, self._shape(p)) for p in unseated),
            floor=gang.missing or 1,
            required=gang.required,
            preferred=gang.preferred,
            anchors=frozenset(d for d in domains if d is not None),
            near=frozenset(near - {""}),
            outlook=max(len(unseated) + len(gang.gated), gang.size - len(gang.bound) - len(permit.seats)),
            avoid=self._store.avoided(gang.key),
            hints=self._hints(unseated),
            whole=parts,
            sites=self._sites(gang) if parts else {},
            only_floor=parts is not None and not gang.aboard,
        )

    def _sites(self, gang: Muster) -> dict[str, Site]:
        """Where members of each subgroup sit, or are to sit."""
        seats = self._store.permit(gang.key).seats
        seated = {p.uid: p.node for p in gang.bound + gang.leaving} | dict(seats)
        return {
            part.name: _site(part, [self._room.nodes[n] for n in nodes if n in self._room.nodes])
            for part in (gang.subgroups.everything if gang.subgroups else ())
            if (nodes := [seated[uid] for uid in part.members & seated.keys()])
        }

    def _collect(self) -> None:
        """Bring pending up to date with what changed since the last round."""
        for key in self._registry.changed:
            self._rejected.pop(key, None)
            self.pending.pop(key, None)
            live = [p for p in self._registry.members(key) if p.live]
            if not live:
                self._store.forget(key)
                continue
            seats = self._store.permit(key).seats
            unseated = tuple(p for p in live if not p.node and p.uid not in seats)
            # While a gang is being bound there is news of it all the time, and nothing to plan.
            gang = self._registry.muster(key) if unseated else None
            if gang:
                self.pending[key] = Pending(gang, unseated, Standing.GATHERING)
        self._registry.changed.clear()

    def _consider(self, gang: Muster) -> Standing | None:
        """Grant seats if the gang may board now; what holds it if not, None where nothing does."""
        permit = self._store.permit(gang.key)
        if permit.boarding and not (permit.released and gang.aboard):
            return self.pending[gang.key].standing  # surplus; its turn comes once the floor is aboard
        if any(note.blocking and not self._lifted(note) for note in gang.notes):
            return Standing.HELD
        if not gang.whole or not self._settled(gang) or all(p.uid in permit.seats for p in gang.ready):
            return Standing.GATHERING
        if self._clock() < permit.not_before:
            return Standing.BACKING_OFF
        return Standing.FOLLOWING if self._follows(gang) else self._board(gang)

    def _holds_back_surplus(self, floor_waits: bool) -> bool:
        """Whether what came free lately is left to a gang that lacks its floor."""
        now = self._clock()
        if self._grown[0] != self._room.growth:
            self._grown = self._room.growth, now
        fresh = floor_waits and now - self._grown[1] < SURPLUS_SECONDS
        if not fresh or now - self._let_through >= SURPLUS_MOST_SECONDS:
            self._let_through = now
            return False
        return True

    def _follows(self, gang: Muster) -> bool:
        """Whether a gang that must be aboard before this one is not."""
        if not gang.after or gang.aboard:
            return False
        leader = self._registry.muster((gang.key[0], gang.after))
        return leader is None or not leader.complete

    def _board(self, gang: Muster) -> Standing | None:
        kept = self.keeper.kept_from(gang)
        if self._rejected.get(gang.key) == (self._room.growth, kept):
            return Standing.WAITING
        boarding = self.boarding(gang)
        placement = self._plan(boarding, kept)
        if placement is None:
            if not boarding.avoid:  # what is avoided now may be tried again later, without any news
                self._rejected[gang.key] = self._room.growth, kept
            return Standing.WAITING
        self._grant(gang, placement)
        left = [p for p in gang.ready if p.uid not in self._store.permit(gang.key).seats]
        if left:
            return Standing.WAITING
        return Standing.GATHERING if gang.gated else None

    def _plan(self, boarding: Boarding, kept: Kept | None) -> Placement | None:
        if boarding.avoid:
            # What one member was refused for, its equals most likely are; if need be, only it.
            wary = replace(boarding, avoid=for_equals(boarding))
            placement = self._planner(wary, self._room, kept)
            if placement:
                return placement
        return self._planner(boarding, self._room, kept)

    def _grant(self, gang: Muster, placement: Placement) -> None:
        deadline = self._earlier_deadline(gang, placement)
        subgroups = None if gang.aboard else gang.subgroups
        granted = Granted(placement.nodes, placement.domain, gang.missing, deadline, subgroups)
        self._store.apply(gang.key, granted)
        seats = [(p, placement.nodes[p.uid]) for p in gang.ready if p.uid in placement.nodes]
        self._writer.grant(gang, seats, placement.domain, self._store.permit(gang.key).deadline)

    def _settled(self, gang: Muster) -> bool:
        if gang.aboard or gang.size_from != contract.SIZE_FROM_PARTITION:
            return True
        first, last = self._registry.quiet_since(gang.key)
        now = self._clock()
        return now - last >= SETTLE_SECONDS or now - first >= SETTLE_MOST_SECONDS

    def _lacks_floor(self, gang: Muster) -> bool:
        """Whether a domain is worth keeping for it: surplus would hold its own domain for ever."""
        seated = len(gang.bound) + len(self._store.permit(gang.key).seats)
        return gang.in_domains and seated < gang.floor

    def _hints(self, pods: Iterable[Pod]) -> dict[str, str]:
        """After a restart: where an earlier plan, still in force, had put these members."""
        now = self._clock()
        plans = ((p.uid, p.valid_plan) for p in pods) if self._restarted else ()
        return {uid: plan.node for uid, plan in plans if plan and plan.deadline > now}

    def _earlier_deadline(self, gang: Muster, placement: Placement) -> float | None:
        """The deadline of the same plan made before a restart; another plan begins afresh."""
        if not self._restarted:
            return None
        plans = [(p.valid_plan, placement.nodes.get(p.uid)) for p in gang.ready]
        same = [plan for plan, node in plans if plan and plan.node == node and plan.deadline > self._clock()]
        return (
            min((plan.deadline for plan in same), default=None) if len(same) == len(placement.nodes) else None
        )


def _site(part: Part, nodes: Iterable[Node]) -> Site:
    domains = {domain_of(node, part.required) for node in nodes} if part.required else set()
    near = {node.labels.get(part.preferred, "") for node in nodes} if part.preferred else set()
    return Site(frozenset(d for d in domains if d is not None), frozenset(near - {""}))
