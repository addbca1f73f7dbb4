"""Whom to evict so that a gang boards: whole gangs, as few and as low as possible.

A gang is evicted whole or not at all, but for its surplus: members beyond its floor go one by one, and
before anybody's floor does. The answer is the cheapest that really makes the gang fit:

    fewest gangs evicted whole ─► the lowest priorities among those ─► the fewest members in all

Per domain the sets are tried in this order until one fits (so the first is the best), each by a plan in a
copy of that domain with the victims gone. Domains that can't be cheaper than the best so far are not tried.
The number of tries is bounded; past it a domain's gangs are added lowest first and needless ones taken back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from gangs.nodes import Node
from gangs.planner import Boarding, place
from gangs.pods import GangKey
from gangs.room import Domain, Room, domain_of, scarcest

TRIES: Final = 400  # plans in one domain each; about 0.2 ms apiece at 18 nodes

Permitted = Callable[[Domain, frozenset[str]], bool]
"""Whether these members may go together so that the gang boards that domain."""


@dataclass(frozen=True, slots=True)
class Prey:
    """A gang that may be evicted. core: members that go all together; surplus: those beyond its floor.

    started: epoch seconds; of equal priority the youngest goes first.
    """

    key: GangKey
    priority: int
    started: float
    core: tuple[str, ...]
    surplus: tuple[str, ...] = ()

    @property
    def everyone(self) -> frozenset[str]:
        """All members."""
        return frozenset((*self.core, *self.surplus))


@dataclass(frozen=True, slots=True)
class Clearing:
    """Who has to go, and the domain in which the gang then boards. whole: gangs of which nobody is left."""

    domain: Domain
    whole: tuple[GangKey, ...]
    priorities: tuple[int, ...]
    uids: frozenset[str]

    @property
    def cost(self) -> tuple[int, tuple[int, ...], int, Domain]:
        """The smallest is chosen."""
        return len(self.whole), self.priorities, len(self.uids), self.domain


def clearing(
    boarding: Boarding,
    room: Room,
    prey: Iterable[Prey],
    permitted: Permitted = lambda *_: True,
    tries: int = TRIES,
) -> Clearing | None:
    """The cheapest eviction that makes the boarding fit, None where none does or none is permitted.

    Minimal as long as the tries suffice. Deterministic.
    """
    by_rank = sorted(prey, key=lambda p: (p.priority, -p.started, p.key))
    by_uid = {uid: (rank, p) for rank, p in enumerate(by_rank) for uid in p.everyone}
    domains = _domains(boarding, room).items()
    sites = {domain: _Site(boarding, room, domain, nodes, by_uid, permitted) for domain, nodes in domains}
    budget, best = _Budget(tries), None
    for least, domain in sorted((s.least, d) for d, s in sites.items() if s.least is not None):
        if best and least > len(best.whole):
            break
        site = sites[domain]
        found = site.cheapest(budget, len(best.whole) if best else len(site.gangs))
        if found and (best is None or found.cost < best.cost):
            best = found
    return best


def _domains(boarding: Boarding, room: Room) -> dict[Domain, list[Node]]:
    """The domains that may be boarded, and their nodes."""
    found: dict[Domain, list[Node]] = {}
    for node in room.nodes.values():
        domain = domain_of(node, boarding.required)
        if domain is not None and (not boarding.anchors or domain in boarding.anchors):
            found.setdefault(domain, []).append(node)
    return found


@dataclass(slots=True)
class _Budget:
    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(slots=True)
class _Site:
    """One domain, with a room of its own in which victims come and go."""

    boarding: Boarding
    room: Room
    domain: Domain
    nodes: Sequence[Node]
    prey: Mapping[str, tuple[int, Prey]]
    permitted: Permitted
    gangs: list[Prey] = field(init=False)
    surplus: list[tuple[Prey, str]] = field(init=False)
    _copy: Room = field(init=False)

    def __post_init__(self) -> None:
        self._copy = Room()
        for node in self.nodes:
            self._copy.put_node(node)
            for uid, seat in self.room.holders(node.name):
                self._copy.take(uid, seat)
        here = sorted((self.prey[uid][0], uid) for uid in self._copy.seats if uid in self.prey)
        ranked = {rank: self.prey[uid][1] for rank, uid in here}
        self.gangs = [p for p in ranked.values() if not self._copy.seats.keys().isdisjoint(p.core)]
        self.surplus = [(p, u) for p in ranked.values() for u in p.surplus if u in self._copy.seats]

    @property
    def least(self) -> int | None:
        """At least so many gangs must go whole, by the scarcest resource alone; None: all are too few."""
        lead = scarcest(self.boarding.members[0].shape.requests)
        asked = sorted(m.shape.requests.get(lead, 0) for m in self.boarding.members)
        free = sum(max(0, self._copy.free(node).get(lead, 0)) for node in self._copy.nodes.values())
        short = sum(asked[: self.boarding.need]) - free - self._holds(lead, (uid for _, uid in self.surplus))
        gains = sorted((self._holds(lead, p.core) for p in self.gangs), reverse=True)
        return next((n for n, gain in enumerate(accumulate(gains, initial=0)) if gain >= short), None)

    def cheapest(self, budget: _Budget, most: int) -> Clearing | None:
        """The cheapest eviction here, of at most so many whole gangs."""
        for chosen in self._sets(most):
            if not budget.spend():
                return self._greedy()
            if self._fits(self._with_surplus(chosen)):
                return self._trimmed(chosen)
        return None

    def _sets(self, most: int) -> Iterator[tuple[Prey, ...]]:
        """Sets of gangs, small ones first, and of equal size those first whose highest is the lowest."""
        for size in range(self.least or 0, min(most, len(self.gangs)) + 1):
            for indices in _colex(len(self.gangs), size):
                yield tuple(self.gangs[i] for i in indices)

    def _greedy(self) -> Clearing | None:
        """Lowest first until it fits; then whoever turns out to be needless stays, highest first."""
        chosen: list[Prey] = []
        waiting = list(self.gangs)
        while not self._fits(self._with_surplus(chosen)):
            if not waiting:
                return None
            chosen.append(waiting.pop(0))
        for gang in reversed(chosen[:]):
            rest = [g for g in chosen if g is not gang]
            if self._fits(self._with_surplus(rest)):
                chosen = rest
        return self._trimmed(tuple(chosen))

    def _with_surplus(self, chosen: Iterable[Prey]) -> frozenset[str]:
        whole = {uid for p in chosen for uid in p.everyone}
        return frozenset(whole | {uid for _, uid in self.surplus})

    def _trimmed(self, chosen: tuple[Prey, ...]) -> Clearing:
        """Without the surplus that need not go: of the highest gangs, and their first members, it stays."""
        whole = {uid for p in chosen for uid in p.everyone}
        uids = self._with_surplus(chosen)
        keep_first = sorted(self.surplus, key=lambda row: (-row[0].priority, row[0].started, row[0].key))
        for _, uid in keep_first:
            if uid not in whole and self._fits(uids - {uid}):
                uids -= {uid}
        return Clearing(
            self.domain,
            tuple(p.key for p in chosen),
            tuple(sorted((p.priority for p in chosen), reverse=True)),
            uids,
        )

    def _fits(self, uids: frozenset[str]) -> bool:
        gone = {uid: seat for uid, seat in self._copy.seats.items() if uid in uids}
        for uid in gone:
            self._copy.give(uid)
        try:
            fits = place(self.boarding, self._copy) is not None
        finally:
            for uid, seat in gone.items():
                self._copy.take(uid, seat)
        return fits and self.permitted(self.domain, uids)

    def _holds(self, resource: str, uids: Iterable[str]) -> int:
        seats = (self._copy.seats.get(uid) for uid in uids)
        return sum(seat.requests.get(resource, 0) for seat in seats if seat)


def _colex(number: int, size: int) -> Iterator[tuple[int, ...]]:
    """Subsets of range(number), ascending each, ordered by their last element first."""
    if size == 0:
        yield ()
        return
    for last in range(size - 1, number):
        for rest in _colex(last, size - 1):
            yield (*rest, last)
