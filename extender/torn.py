"""Gangs left half bound that can't be finished where they are (rule 10 of the design).

All Bindings of a gang are created together, but the last may still fail: its node is deleted, somebody
took the room. The rest is then planned in the same domain; where that finds no room for a minute, the
bound members are evicted and the gang starts anew elsewhere. A Pod without a controller would not come
back, so it is kept and its event says what to do.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.news import Announcement
from extender.pod_calls import pod_path
from extender.rounds import Pending, Rounds, Standing
from gangs import sentences
from gangs.pods import GangKey, Pod

PATIENCE_SECONDS: Final = 60.0
REASON: Final = "GangTorn"

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""


class Torn:
    """Finds torn gangs and evicts what is bound of them."""

    def __init__(self, api: Api, rounds: Rounds, clock: Callable[[], float]) -> None:
        self._api = api
        self._rounds = rounds
        self._clock = clock
        self._since: dict[GangKey, float] = {}

    async def mend(self) -> list[Announcement]:
        """Evict the members of gangs that were torn for too long; what is to be said about it."""
        said = []
        for row in list(self._ripe()):
            for pod in row.gang.bound:
                evicted = pod.owner is not None and await self._evict(pod)
                limited = row.standing is Standing.OVER_LIMIT
                said.append(Announcement(pod, REASON, sentences.torn(row.gang, evicted, limited=limited)))
        return said

    def _ripe(self) -> Iterator[Pending]:
        now = self._clock()
        torn = {
            key: row
            for key, row in self._rounds.pending.items()
            if row.gang.torn and (row.standing is Standing.OVER_LIMIT or _finds_no_room(row))
        }
        self._since = {key: self._since.get(key, now) for key in torn}
        for key, row in torn.items():
            if now - self._since[key] >= PATIENCE_SECONDS:
                self._since[key] = now
                yield row

    async def _evict(self, pod: Pod) -> bool:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            await self._api.create(pod_path(pod, "eviction"), body)
        except ApiError as error:
            # A PodDisruptionBudget may say no; the next look, a minute on, asks again.
            log.warning("torn gang: eviction refused", pod=f"{pod.namespace}/{pod.name}", error=str(error))
            return False
        log.info("torn gang: evicted", pod=f"{pod.namespace}/{pod.name}")
        return True


def _finds_no_room(row: Pending) -> bool:
    return row.standing is Standing.WAITING and bool(row.gang.required)
