"""Gangs that lost a member and run on without it (rule 17 of the design).

Only where their Pods carry a staleness period: then a gang of which fewer than the floor are bound for that
long is evicted whole, so that it can board anew together, instead of holding GPUs for a peer that does not
come. A gang with a member that has succeeded is ending, not stale, and Grove's gangs are Grove's to end.
The period and what ends it are KAI's (stalenessGracePeriod).
"""

from collections.abc import Callable, Iterator
from typing import Final

from extender.evictions import Creator, evict
from extender.news import Announcement
from extender.registry import Registry
from gangs import sentences
from gangs.muster import Muster
from gangs.pods import GangKey
from gangs.reasons import Reason

_AGAIN_SECONDS: Final = 60.0  # a PodDisruptionBudget may have said no


class Stale:
    """Finds stale gangs and evicts what is left of them."""

    def __init__(self, api: Creator, registry: Registry, clock: Callable[[], float]) -> None:
        self._api = api
        self._registry = registry
        self._clock = clock
        self._ripe_at: dict[GangKey, float] = {}

    async def end(self) -> list[Announcement]:
        """Evict the members of gangs that were stale for too long; what is to be said about it."""
        said = []
        for gang in list(self._ripe()):
            for pod in gang.bound:
                evicted = await evict(self._api, pod, "stale gang")
                said.append(Announcement(pod, Reason.STALE, sentences.stale(gang, evicted)))
        return said

    def _ripe(self) -> Iterator[Muster]:
        now = self._clock()
        stale = {gang.key: gang for gang in self._gangs() if gang.stale}
        self._ripe_at = {
            key: self._ripe_at.get(key, now + (gang.staleness or 0.0)) for key, gang in stale.items()
        }
        for key, gang in stale.items():
            if now >= self._ripe_at[key]:
                self._ripe_at[key] = now + _AGAIN_SECONDS
                yield gang

    def _gangs(self) -> Iterator[Muster]:
        for key in list(self._registry.perishable):
            if gang := self._registry.muster(key):
                yield gang
