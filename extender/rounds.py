"""The planning round: who may board now, and where.

Looks at every gang with unseated members in queue order. A gang that is whole and fits gets its seats;
the first whole one that does not fit has a domain kept free for it (rule 14 of the design); everybody
else is served around that. A round costs nothing for gangs of which nothing changed while no room came
free.

    registry.changed ──► pending gangs ──► in order ──► place() ──► Granted ──► grant writer
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Final, Protocol

from extender.asking import Asking
from extender.keeper import Keeper
from extender.line import Line, bid
from extender.queues import Queues
from extender.registry import Registry
from extender.standing import Pending, Standing
from extender.store import PermitStore
from extender.surplus import Surplus
from gangs import contract
from gangs.keeping import domain_to_keep
from gangs.muster import Muster
from gangs.nodes import Shape
from gangs.notes import Note
from gangs.permits import Granted
from gangs.planner import Boarding, Kept, Placement, for_equals, place
from gangs.pods import GangKey, Pod
from gangs.room import Domain, Room

# An NVCF partition's owners arrive one by one and nothing says how many there are to be (rule 3).
SETTLE_SECONDS: Final = 2.0
SETTLE_MOST_SECONDS: Final = 10.0


class GrantWriter(Protocol):
    """Writes grants to the API server, in its own time."""

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Nominate and release these members."""


Planner = Callable[[Boarding, Room, Kept | None], Placement | None]


class Rounds:
    """Runs planning rounds.

    pending: why each gang without seats has none. waiting: those that were whole in the last round and found
    no domain for their floor, in their order.
    """

    def __init__(
        self,
        registry: Registry,
        room: Room,
        store: PermitStore,
        queues: Queues,
        writer: GrantWriter,
        clock: Callable[[], float],
        lifted: Callable[[Note], bool],
        planner: Planner = place,
        shape: Callable[[Pod], Shape] = attrgetter("shape"),
        keeper: type[Keeper] = Keeper,
    ) -> None:
        self.pending: dict[GangKey, Pending] = {}
        self.moved: set[GangKey] = set()  # gangs that may look otherwise now; whoever mirrors them empties it
        self.keeper = keeper(room)
        self.line = Line(queues)
        self.waiting: list[GangKey] = []
        self._queues = queues
        self._registry = registry
        self._room = room
        self._store = store
        self._writer = writer
        self._clock = clock
        self._lifted = lifted
        self._planner = planner
        self._asking = Asking(room, store, shape, clock)
        self._surplus = Surplus(room, clock)
        self._rejected: dict[GangKey, tuple[int, Kept | None, int]] = {}
        self._hopes: dict[object, bool] = {}
        self._hopes_at = -1

    def run(self) -> None:
        """One round."""
        self._collect()
        if self.keeper.head not in self.pending:
            self.keeper.release()
        self.line = Line(self._queues)
        self.waiting = []
        floor_waits = False
        for gang in self.line.in_turn([p.bid for p in self.pending.values()], self._begun()):
            surplus = gang.subgroups is not None and gang.complete
            held_back = surplus and self._surplus.held_back(floor_waits)
            standing = Standing.WAITING if held_back else self._consider(gang)
            floor_waits |= standing is Standing.WAITING and not gang.complete
            if self._short(gang) and (gang.aboard or standing in (Standing.WAITING, Standing.OVER_LIMIT)):
                self.line.reserve(self.pending[gang.key].bid, self.has_hope)
            waits = standing is Standing.WAITING and self._lacks_floor(gang)
            if waits:
                self.waiting.append(gang.key)
            if waits and self._leads_the_line(gang):
                self.keeper.keep_for(gang, self.boarding)
            elif self.keeper.head == gang.key and not waits:
                self._next_head()
            self._stand(gang, standing)
        self._asking.restarted = False

    def kept_from(self, gang: Muster) -> Kept | None:
        """What this gang may not use: what is kept for the head, unless it may go before that."""
        kept = self.keeper.kept_from(gang)
        return None if kept and not self.keeper.locked and self._passes_head(gang) else kept

    def restart(self) -> None:
        """A new term begins: look at every gang again, and go on with plans made before it."""
        self.pending.clear()
        self.keeper.release()
        self._rejected.clear()
        self._registry.changed.update(self._registry.keys)
        self._asking.restarted = True

    def boarding(self, gang: Muster) -> Boarding:
        """What the planner is asked for the gang's unseated members."""
        return self._asking.boarding(gang)

    def _stand(self, gang: Muster, standing: Standing | None) -> None:
        if standing is None:
            del self.pending[gang.key]
        elif (row := self.pending[gang.key]).standing is not standing:
            self.pending[gang.key] = replace(row, standing=standing)

    def _collect(self) -> None:
        """Bring pending up to date with what changed since the last round."""
        self.moved |= self._registry.changed
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
                self.pending[key] = Pending(gang, unseated, bid(gang, seats.keys()), Standing.GATHERING)
        self._registry.changed.clear()

    def _consider(self, gang: Muster) -> Standing | None:
        """Grant seats if the gang may board now; what holds it if not, None where nothing does."""
        permit = self._store.permit(gang.key)
        if permit.boarding and not (permit.released and gang.aboard):
            return self.pending[gang.key].standing  # surplus; its turn comes once the floor is aboard
        if any(note.blocking and not self._lifted(note) for note in gang.notes):
            return Standing.HELD
        if self.line.problem(gang):
            return Standing.NO_QUEUE
        if not gang.whole or not self._settled(gang) or all(p.uid in permit.seats for p in gang.ready):
            return Standing.GATHERING
        if self._clock() < permit.not_before:
            return Standing.BACKING_OFF
        return Standing.FOLLOWING if self._follows(gang) else self._board(gang)

    def _follows(self, gang: Muster) -> bool:
        """Whether a gang that must be aboard before this one is not."""
        if not gang.after or gang.aboard:
            return False
        leader = self._registry.muster((gang.key[0], gang.after))
        return leader is None or not leader.complete

    def _board(self, gang: Muster) -> Standing | None:
        if self.keeper.locked and self.keeper.head == gang.key and not self.keeper.cleared:
            return Standing.WAITING
        kept = self.kept_from(gang)
        admitted = self.line.admitted(self.pending[gang.key].bid)
        if not admitted:
            return Standing.OVER_LIMIT
        tried = self._room.growth, kept, len(admitted)
        if self._rejected.get(gang.key) == tried:
            return Standing.WAITING
        boarding = self.boarding(gang)
        if len(admitted) < len(boarding.members):
            uids = {pod.uid for pod in admitted}
            boarding = replace(boarding, members=tuple(m for m in boarding.members if m.uid in uids))
        around = kept or self.keeper.kept_from(gang)
        placement = self._plan(boarding, around)
        if placement is None and around is not kept:
            placement = self._plan(boarding, kept)  # ahead of the head, it uses that domain only if it must
        if placement is None:
            if not boarding.avoid:  # what is avoided now may be tried again later, without any news
                self._rejected[gang.key] = tried
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
        deadline = self._asking.earlier_deadline(gang, placement)
        subgroups = None if gang.aboard else gang.subgroups
        granted = Granted(placement.nodes, placement.domain, gang.missing, deadline, subgroups)
        self._store.apply(gang.key, granted)
        seats = [(p, placement.nodes[p.uid]) for p in gang.ready if p.uid in placement.nodes]
        self.line.granted(pod for pod, _ in seats)
        self._writer.grant(gang, seats, placement.domain, self._store.permit(gang.key).deadline)

    def _settled(self, gang: Muster) -> bool:
        if gang.aboard or gang.size_from != contract.SIZE_FROM_PARTITION:
            return True
        first, last = self._registry.quiet_since(gang.key)
        now = self._clock()
        return now - last >= SETTLE_SECONDS or now - first >= SETTLE_MOST_SECONDS

    def _lacks_floor(self, gang: Muster) -> bool:
        """Whether a domain is worth keeping for it: surplus would hold its own domain for ever."""
        return gang.in_domains and self._short(gang)

    def _short(self, gang: Muster) -> bool:
        """Whether fewer than its floor have seats."""
        return len(gang.bound) + len(self._store.permit(gang.key).seats) < gang.floor

    def has_hope(self, gang: Muster) -> bool:
        """Whether some domain could hold it if nobody else were there; looked at anew when nodes change."""
        wanted = replace(self.boarding(gang), avoid=frozenset())
        shapes = frozenset(Counter(member.shape for member in wanted.members).items())
        asked = wanted.required, wanted.anchors, wanted.need, shapes
        if self._hopes_at != self._room.changes:
            self._hopes, self._hopes_at = {}, self._room.changes
        if asked not in self._hopes:
            self._hopes[asked] = domain_to_keep(wanted, self._room) is not None
        return self._hopes[asked]

    def _next_head(self) -> None:
        """The head waits no longer: whoever's turn came before and who waits is the next one."""
        self.keeper.release()
        waiting = (self.pending[key].gang for key in self.waiting)
        if gang := next(filter(self.has_hope, waiting), None):
            self.keeper.keep_for(gang, self.boarding)

    def _leads_the_line(self, gang: Muster) -> bool:
        """Whether a domain is kept for it: the first that could ever board, until one goes before it."""
        if self.keeper.head == gang.key:
            return True
        return (self.keeper.head is None or self._passes_head(gang)) and self.has_hope(gang)

    def _passes_head(self, gang: Muster) -> bool:
        head, row = self.pending.get(self.keeper.head or ("", "")), self.pending.get(gang.key)
        return head is not None and row is not None and self.line.passes(row.bid, head.bid)

    def _begun(self) -> set[GangKey]:
        """Gangs bound in part and, after a restart, those with a plan in force: looked at before all others.

        Else somebody might use up the limit of their queue before they are whole.
        """
        rows = self.pending.items()
        torn = {key for key, row in rows if row.gang.aboard and self._short(row.gang)}
        return torn | {
            key for key, row in rows if self._asking.restarted and self._asking.hints(row.gang.ready)
        }
