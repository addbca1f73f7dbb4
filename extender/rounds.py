"""The planning round: who may board now, and where.

Looks at every gang with unseated members in queue order. A gang that is whole and fits gets its seats;
the first whole one that does not fit has a domain kept free for it (rule 14 of the design); everybody
else is served around that. A round costs nothing for gangs of which nothing changed while no room came
free.

    registry.changed ──► pending gangs ──► in order ──► place() ──► Granted ──► grant writer
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Final, Protocol

from extender.keeper import Keeper
from extender.line import Bid, Line, bid
from extender.queues import Queues
from extender.registry import Registry
from extender.store import PermitStore
from gangs import contract
from gangs.keeping import domain_to_keep
from gangs.muster import Muster
from gangs.nodes import Node, Shape
from gangs.notes import Note
from gangs.packing import Candidate
from gangs.parts import Part, Site
from gangs.permits import Granted
from gangs.planner import Boarding, Kept, Placement, for_equals, place
from gangs.pods import GangKey, Pod
from gangs.reasons import Reason
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

    GATHERING = Reason.GATHERING
    HELD = Reason.HELD
    BACKING_OFF = Reason.BACKING_OFF
    WAITING = Reason.WAITING
    FOLLOWING = Reason.FOLLOWING
    NO_QUEUE = Reason.NO_QUEUE
    OVER_LIMIT = Reason.OVER_LIMIT


class GrantWriter(Protocol):
    """Writes grants to the API server, in its own time."""

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Nominate and release these members."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A gang with members that have no seat."""

    gang: Muster
    unseated: tuple[Pod, ...]
    bid: Bid
    standing: Standing


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
        self._shape = shape
        self._rejected: dict[GangKey, tuple[int, Kept | None, int]] = {}
        self._hopes: dict[object, bool] = {}
        self._hopes_at = -1
        self._restarted = True
        self._grown = (0, clock())  # the room's growth, and since when it is that
        self._let_through = clock()  # when surplus was held back by nobody, last

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
            held_back = surplus and self._holds_back_surplus(floor_waits)
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
        self._restarted = False

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
        self._restarted = True

    def _stand(self, gang: Muster, standing: Standing | None) -> None:
        if standing is None:
            del self.pending[gang.key]
        elif (row := self.pending[gang.key]).standing is not standing:
            self.pending[gang.key] = replace(row, standing=standing)

    def boarding(self, gang: Muster) -> Boarding:
        """What the planner is asked for the gang's unseated members."""
        permit = self._store.permit(gang.key)
        unseated = [p for p in gang.ready if p.uid not in permit.seats]
        settled = [p.node for p in gang.bound + gang.leaving] + list(permit.seats.values())
        nodes = self._known(settled)
        domains = {domain_of(n, gang.required) for n in nodes} if gang.required else set()
        domains |= _planned_domains(gang) if domains == {None} else set()
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
            part.name: _site(part, self._known(nodes))
            for part in (gang.subgroups.everything if gang.subgroups else ())
            if (nodes := [seated[uid] for uid in part.members & seated.keys()])
        }

    def _known(self, names: Iterable[str]) -> list[Node]:
        return [node for name in names if (node := self._room.with_lost_labels(name))]

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
        deadline = self._earlier_deadline(gang, placement)
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
        return torn | {key for key, row in rows if self._restarted and self._hints(row.gang.ready)}

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


def _planned_domains(gang: Muster) -> set[Domain | None]:
    """Where its plans had put it: after a restart nobody remembers labels that were lost before."""
    plans = [p.valid_plan for p in gang.bound]
    return {plan.domain for plan in plans if plan and len(plan.domain) == len(gang.required)}


def _site(part: Part, nodes: Iterable[Node]) -> Site:
    domains = {domain_of(node, part.required) for node in nodes} if part.required else set()
    near = {node.labels.get(part.preferred, "") for node in nodes} if part.preferred else set()
    return Site(frozenset(d for d in domains if d is not None), frozenset(near - {""}))
