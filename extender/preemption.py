"""Whole gangs are evicted for one that waits. Off unless switched on.

    preempt   a gang of lower priority in the same queue goes for one of a higher
    reclaim   gangs of queues over their quota go for one of a queue that stays within its own

One clearing at a time: the first gang in line for which somebody may go gets a domain locked, its victims are
evicted (extender/evictor.py), and it waits, gated, until they are gone; then it boards in the next round as
any other. Nobody is touched unless the plan with the victims gone fits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from extender.evictor import Evictor
from extender.news import Announcement
from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import Rounds
from extender.standing import Pending
from extender.store import PermitStore
from gangs.muster import Muster, natural
from gangs.pods import GangKey, Pod
from gangs.preemption import Clearing, Permitted, Prey, clearing
from gangs.queues import sentences
from gangs.queues.amounts import NOTHING, Amounts, amounts_of
from gangs.queues.reclaim import may_reclaim
from gangs.reasons import Reason
from gangs.room import Domain, Room

PREEMPT: Final = "preempt"
RECLAIM: Final = "reclaim"
KINDS: Final = frozenset({PREEMPT, RECLAIM})

AGAIN_SECONDS: Final = 10.0  # after a vain look at a gang
PER_LOOK: Final = 3  # gangs; look() is called once a second
LOCKED_SECONDS: Final = 10.0  # after the last victim has gone


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is allowed. min_seconds: for how long a gang is safe where its queue doesn't say."""

    kinds: frozenset[str] = frozenset()
    min_seconds: float = 0.0


class Preemption:
    """Looks for whom to evict, and sees it through."""

    def __init__(
        self,
        rules: Rules,
        evictor: Evictor,
        rounds: Rounds,
        registry: Registry,
        room: Room,
        store: PermitStore,
        queues: Queues,
        clock: Callable[[], float],
        leads: Callable[[], bool],
    ) -> None:
        self._rules = rules
        self._evictor = evictor
        self._rounds = rounds
        self._registry = registry
        self._room = room
        self._store = store
        self._queues = queues
        self._clock = clock
        self._leads = leads
        self._tried: dict[GangKey, float] = {}
        self._gone: float | None = None

    async def look(self) -> list[Announcement]:
        """One step; what is to be said about it. Call it about once a second."""
        if not self._rules.kinds:
            return []
        if marked := self._marked():
            self._gone = None
            return [_told(pod, sentences.deleted(pod)) for pod in await self._evictor.pursue(marked)]
        if self._rounds.keeper.locked:
            return self._wait_for_boarding()
        return await self._begin()

    def choose(self, row: Pending) -> Clearing | None:
        """Whom to evict so that this gang boards."""
        gang = row.gang
        if gang.aboard or not all(pod.preempts for pod in gang.ready):
            return None
        prey = list(self._prey(gang))
        if not prey:
            return None
        return clearing(self._rounds.boarding(gang), self._room, prey, self._permitted(row, prey))

    def _marked(self) -> list[Pod]:
        """Victims that are still there, and the rest of a gang whose marking was cut short by a crash."""
        marked = [p for p in self._registry.pods.values() if p.evicted_for and not p.terminal]
        rest = [p for key in {p.key for p in marked if p.gang} for p in self._remains(key, marked)]
        return marked + rest

    def _remains(self, key: GangKey, marked: list[Pod]) -> list[Pod]:
        """Members that sat beside the marked ones and are too few without them; not those that came later."""
        gang = self._registry.muster(key)
        last = max(p.bound_at for p in marked if p.key == key)
        rest = [p for p in gang.bound if not p.evicted_for and p.bound_at <= last] if gang else []
        return rest if gang and len(rest) < gang.floor else []

    def _wait_for_boarding(self) -> list[Announcement]:
        """All victims are gone: the gang has a moment to board, then others may have the domain."""
        now = self._clock()
        self._gone = self._gone or now
        self._rounds.keeper.cleared = True
        if now - self._gone >= LOCKED_SECONDS:
            self._rounds.keeper.release()
            self._gone = None
        return []

    async def _begin(self) -> list[Announcement]:
        for row in list(self._due()):
            plan = self.choose(row)
            if plan is None:
                continue
            victims = [pod for uid in sorted(plan.uids) if (pod := self._registry.pods.get(uid))]
            if why := await self._evictor.forbidden(victims):
                log.info("nobody is evicted", gang=row.gang.name, why=why)
                continue
            if self._leads() and self._still(row, plan):
                return await self._clear(row, plan, victims)
        return []

    def _due(self) -> Iterator[Pending]:
        now, pending = self._clock(), self._rounds.pending
        self._tried = {key: at for key, at in self._tried.items() if key in pending}
        ripe = [k for k in self._rounds.waiting if now - self._tried.get(k, 0.0) >= AGAIN_SECONDS]
        for key in ripe[:PER_LOOK]:
            if key in pending:
                self._tried[key] = now
                yield pending[key]

    def _still(self, row: Pending, plan: Clearing) -> bool:
        """Whether it is still the plan, after the API server was asked."""
        now = self._rounds.pending.get(row.gang.key)
        return now is not None and now.gang.key in self._rounds.waiting and self.choose(now) == plan

    async def _clear(self, row: Pending, plan: Clearing, victims: list[Pod]) -> list[Announcement]:
        gang = row.gang
        self._rounds.keeper.lock(gang, plan.domain)
        if not await self._evictor.mark(victims, gang.name):
            self._rounds.keeper.release()
            return []
        log.info("evicting", gang=gang.name, domain="/".join(plan.domain), victims=len(victims))
        await self._evictor.pursue(victims)
        said = [_told(pod, sentences.evicted(pod, gang)) for pod in victims]
        said += [_told(pod, sentences.evicted(pod, gang), on_owner=True) for pod in _one_each(victims)]
        message = sentences.evicting(gang, len(victims), len(plan.whole))
        return said + [Announcement(pod, Reason.EVICTING, message) for pod in row.unseated]

    def _prey(self, gang: Muster) -> Iterator[Prey]:
        now = self._clock()
        for key in self._registry.keys:
            other = self._registry.muster(key)
            if other is None or key == gang.key or not other.bound or self._store.permit(key).boarding:
                continue
            if self._may_go(other, gang, now):
                members = sorted(other.bound, key=lambda p: natural(p.name))
                uids = tuple(p.uid for p in members)
                floor = min(other.floor, len(uids))
                yield Prey(key, other.priority, _started(other), uids[:floor], uids[floor:])

    def _may_go(self, other: Muster, gang: Muster, now: float) -> bool:
        if not all(pod.preemptible for pod in other.everyone):
            return False
        tree, kinds = self._queues.tree, self._rules.kinds
        if not tree or other.queue == gang.queue:
            allowed, field = PREEMPT in kinds and other.priority < gang.priority, "preempt_min_seconds"
        else:
            allowed, field = RECLAIM in kinds, "reclaim_min_seconds"
        safe = tree.inherited(other.queue, field)
        return allowed and now - _started(other) >= (self._rules.min_seconds if safe is None else safe)

    def _permitted(self, row: Pending, prey: list[Prey]) -> Permitted:
        """Whether queues over their quota hold enough beyond it."""
        if not self._queues.tree:
            return lambda *_: True
        accounts, queue = self._queues.accounts(), row.gang.queue
        rows = {uid: self._registry.pods[uid] for p in prey for uid in p.everyone}
        owed = {uid: (p.queue, amounts_of(p.shape.requests)) for uid, p in rows.items() if p.queue != queue}

        def permitted(_: Domain, uids: frozenset[str]) -> bool:
            losses = _losses(owed, uids)
            return not losses or may_reclaim(accounts, queue, row.bid.need, losses)

        return permitted


def _losses(owed: Mapping[str, tuple[str, Amounts]], uids: frozenset[str]) -> dict[str, Amounts]:
    losses: dict[str, Amounts] = {}
    for uid in uids & owed.keys():
        queue, amounts = owed[uid]
        losses[queue] = losses.get(queue, NOTHING) + amounts
    return losses


def _started(gang: Muster) -> float:
    return min((p.bound_at for p in gang.bound), default=0.0)


def _one_each(victims: list[Pod]) -> list[Pod]:
    """One Pod for each controller among them."""
    return list({pod.owner.uid: pod for pod in victims if pod.owner}.values())


def _told(pod: Pod, message: str, *, on_owner: bool = False) -> Announcement:
    return Announcement(pod, Reason.EVICTED, message, pod.owner if on_owner else None)
