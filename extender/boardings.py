"""Tells people that a gang boards, and that it is aboard.

Most boardings take less than a second, and a write for each member would double their cost. So members
are told only of a boarding that lasts, and that it is over only if they were told before that they wait;
the controller is told once either way.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from extender.journal import Entry, Outcome
from extender.news import Announcement
from extender.registry import Registry
from extender.store import PermitStore
from gangs import sentences
from gangs.pods import GangKey
from gangs.reasons import Reason
from gangs.room import Domain

LASTING_SECONDS: Final = 2.0


class Boardings:
    """Follows the store's journal. Says nothing itself."""

    def __init__(self, registry: Registry, store: PermitStore) -> None:
        self._registry = registry
        self._store = store
        self._begun: dict[GangKey, float] = {}
        self._aboard: dict[GangKey, Domain] = {}
        self._told: set[str] = set()  # UIDs of unbound Pods that had an event of ours
        store.journal.listeners.append(self._follow)

    def heard(self, said: Iterable[Announcement]) -> list[Announcement]:
        """Remember who was told what; gives it back."""
        kept = list(said)
        self._told.update(row.pod.uid for row in kept if row.owner is None)
        self._told &= self._registry.pods.keys()
        return kept

    def due(self, now: float) -> Iterator[Announcement]:
        """Everything to be said now. Call it about once a second."""
        for key, at in list(self._begun.items()):
            if not self._store.permit(key).boarding:
                del self._begun[key]
            elif now - at >= LASTING_SECONDS:
                del self._begun[key]
                yield from self._granted(key)
        aboard, self._aboard = self._aboard, {}
        for key, domain in aboard.items():
            yield from self._boarded(key, domain)

    def _follow(self, entry: Entry) -> None:
        if entry.outcome is Outcome.GRANTED:
            self._begun[entry.key] = entry.at
        else:
            self._begun.pop(entry.key, None)
        if entry.outcome is Outcome.BOARDED and entry.whole:
            self._aboard[entry.key] = entry.domain

    def _granted(self, key: GangKey) -> Iterator[Announcement]:
        permit, gang = self._store.permit(key), self._registry.muster(key)
        if gang is None:
            return
        failed = self._store.last_failure.get(key, "") if permit.failures else ""
        reason = Reason.REPLANNED if failed else Reason.GRANTED
        message = sentences.granted(gang, permit.domain, len(permit.seats), failed)
        seated = [pod for pod in gang.ready if pod.uid in permit.seats]
        self._told.update(pod.uid for pod in seated)
        if gang.owner and seated:
            yield Announcement(seated[0], reason, message, gang.owner)
        yield from (Announcement(pod, reason, message) for pod in seated)

    def _boarded(self, key: GangKey, domain: Domain) -> Iterator[Announcement]:
        gang = self._registry.muster(key)
        if gang is None or len(gang.bound) < gang.floor:
            return  # torn, or gone meanwhile
        message = sentences.boarded(gang, domain)
        if gang.owner:
            yield Announcement(gang.bound[0], Reason.BOARDED, message, gang.owner)
        told = [pod for pod in gang.bound if pod.uid in self._told]
        self._told -= {pod.uid for pod in told}
        yield from (Announcement(pod, Reason.BOARDED, message) for pod in told)
