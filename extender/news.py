"""Tells people why a gang waits: events on its Pods and their controller (rule 13 of the design).

A state that lasts less than a moment is not worth a write. After that each waiting member gets an event
when the gang's reason changes, when the sentence has changed and a minute has passed, and every 30
minutes; so does the controller. What the webhook noted is told once per workload, on Pod and controller.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from extender.registry import Registry
from extender.rounds import Rounds
from extender.standing import Pending, Standing
from extender.store import PermitStore
from gangs import sentences
from gangs.muster import Muster
from gangs.planner import explain
from gangs.pods import GangKey, Owner, Pod
from gangs.queues import sentences as queue_sentences
from gangs.reasons import Reason
from gangs.room import Room

SETTLED_SECONDS: Final = 2.0
TEXT_SECONDS: Final = 60.0
REPEAT_SECONDS: Final = 1800.0


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event to be written. owner: on the Pod's controller instead of the Pod."""

    pod: Pod
    reason: Reason
    message: str
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class _Told:
    """message: what all were told at that time; latest: what newcomers were told since."""

    reason: Reason
    message: str
    at: float
    refused: bool
    latest: str = ""


class News:
    """Decides what is to be announced; told what the time is, it writes nothing itself."""

    def __init__(
        self,
        registry: Registry,
        room: Room,
        store: PermitStore,
        rounds: Rounds,
        refused: Callable[[GangKey], str] = lambda _: "",
    ) -> None:
        self._refused = refused
        self._registry = registry
        self._room = room
        self._store = store
        self._rounds = rounds
        self._since: dict[GangKey, tuple[Standing, float]] = {}
        self._told: dict[GangKey, _Told] = {}
        self._members: dict[GangKey, frozenset[str]] = {}
        self._noted: set[tuple[str, str]] = set()

    def due(self, now: float) -> Iterator[Announcement]:
        """Everything to be said now."""
        return chain.from_iterable(self.steps(now))

    def steps(self, now: float) -> Iterator[list[Announcement]]:
        """The same gang by gang, each of which may take milliseconds. Call it about once a second.

        Whoever lets others run in between need not fear that they change what is pending.
        """
        pending = self._rounds.pending
        for key in self._since.keys() - pending.keys():
            del self._since[key]
            self._told.pop(key, None)
            self._members.pop(key, None)
        yield list(self._notes())
        for key in list(pending):
            if row := pending.get(key):
                yield list(self._standing(key, row, now))

    def told(self, key: GangKey) -> str:
        """What this gang's Pods were told last, "" where that was nothing yet."""
        told = self._told.get(key)
        return told.latest if told else ""

    def standing(self, key: GangKey) -> tuple[Standing | None, str]:
        """Why the gang waits, and what its Pods were told last."""
        row = self._rounds.pending.get(key)
        return (row.standing if row else None), self.told(key)

    def sentence(self, row: Pending) -> str:
        """Why this gang waits."""
        gang = row.gang
        match row.standing:
            case Standing.NO_QUEUE:
                problem = self._rounds.line.problem(gang)
                return queue_sentences.no_queue(gang, problem) if problem else ""
            case Standing.OVER_LIMIT:
                excess = self._rounds.line.excesses.get(gang.key)
                return queue_sentences.over_limit(gang, excess) if excess else ""
            case Standing.GATHERING:
                return sentences.gathering(gang, self._refused(gang.key))
            case Standing.HELD:
                return sentences.held(gang)
            case Standing.BACKING_OFF:
                return sentences.backing_off(gang, self._store.last_failure.get(gang.key, "unknown"))
            case Standing.FOLLOWING:
                return sentences.following(gang, self._leader(gang))
            case Standing.WAITING:
                kept = self._rounds.kept_from(gang)
                waiting = sentences.waiting(gang, explain(self._rounds.boarding(gang), self._room, kept))
                nodes = {node for _, node in self._store.avoided(gang.key)}
                last = self._store.last_failure.get(gang.key, "")
                return f"{waiting} {sentences.refused(len(nodes), last)}" if nodes else waiting

    def _leader(self, gang: Muster) -> str:
        namespace = gang.key[0]
        leader = self._registry.muster((namespace, gang.after))
        return leader.name if leader else f"{namespace}/{gang.after}, of which no Pod exists,"

    def _standing(self, key: GangKey, row: Pending, now: float) -> Iterator[Announcement]:
        standing, since = self._since.get(key, (None, now))
        if standing is not row.standing:
            since = now
            self._since[key] = row.standing, now
        if now - since < SETTLED_SECONDS:
            return
        yield from self._tell(key, row, now)

    def _tell(self, key: GangKey, row: Pending, now: float) -> Iterator[Announcement]:
        here = frozenset(p.uid for p in row.unseated)
        known = self._members.get(key, frozenset())
        fresh = here - known
        # Where nobody is left who was told, these are another generation of the gang.
        told = self._told.get(key) if here & known else None
        refused = bool(self._refused(key))
        same = told and told.reason == row.standing.value and told.refused == refused
        if told and same and now - told.at < TEXT_SECONDS and not fresh:
            return
        message = self.sentence(row)
        # All are new: the gang of that name which was told before is gone, though nobody saw it go.
        if told is None or not same or fresh == here or self._is_old(told, message, now):
            told, fresh = _Told(Reason(row.standing), message, now, refused), here
            if row.gang.owner:
                yield Announcement(row.unseated[0], told.reason, message, row.gang.owner)
        self._told[key] = replace(told, latest=message)
        self._members[key] = here
        yield from (Announcement(p, told.reason, message) for p in row.unseated if p.uid in fresh)

    @staticmethod
    def _is_old(told: _Told, message: str, now: float) -> bool:
        age = now - told.at
        return age >= REPEAT_SECONDS or (told.message != message and age >= TEXT_SECONDS)

    def _notes(self) -> Iterator[Announcement]:
        """What the webhook noted, once on the Pod and once on its controller."""
        while self._registry.noted:
            pod = self._registry.noted.pop()
            for note in pod.demand.notes:
                yield Announcement(pod, Reason.NOTED, note.message)
                if pod.owner and (pod.owner.uid, note.message) not in self._noted:
                    self._noted.add((pod.owner.uid, note.message))
                    yield Announcement(pod, Reason.NOTED, note.message, pod.owner)
