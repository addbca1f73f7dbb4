"""Gangs that an autoscaler has to help (rule 20 of the design), where --scale-up-after is set.

A cluster autoscaler looks at Pods that kube-scheduler found unschedulable, and never sees one behind a
scheduling gate. So a gang that fits no domain even if nobody else were there has its gates dropped after a
while: kube-scheduler then finds its Pods unschedulable, and the guard holds them until the gang has a
place, exactly as after a boarding that failed. A gate can't come back, and Pods that are held by refusal
cost kube-scheduler work, so there are never more than MOST of them for this reason (rule 6).
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.news import Announcement
from extender.pod_calls import pod_path
from extender.rounds import Rounds
from extender.standing import Pending, Standing
from gangs import sentences
from gangs.pods import GangKey, Pod
from gangs.reasons import Reason

MOST: Final = 500

log = structlog.get_logger(__name__)


class Patcher(Protocol):
    """What is needed of the API client."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""


class ScaleUp:
    """Releases gangs that only more nodes can help. after: seconds that they wait first, None for never."""

    def __init__(self, api: Patcher, rounds: Rounds, clock: Callable[[], float], after: float | None) -> None:
        self._api = api
        self._rounds = rounds
        self._clock = clock
        self._after = after
        self._since: dict[GangKey, float] = {}

    async def release(self) -> list[Announcement]:
        """Drop the gates of gangs whose time has come; what is to be said about it."""
        if self._after is None:
            return []
        said: list[Announcement] = []
        left = MOST - sum(not pod.gates for row in self._rounds.pending.values() for pod in row.unseated)
        for row in list(self._ripe(self._after)):
            gated = [pod for pod in row.gang.ready if pod.gated]
            if len(gated) > left:
                log.warning("gang stays gated", gang=row.gang.name, members=len(gated), most=MOST)
                continue
            left -= len(gated)
            text = sentences.released(row.gang)
            said += [Announcement(pod, Reason.RELEASED, text) for pod in gated if await self._ungate(pod)]
        return said

    def _ripe(self, after: float) -> Iterator[Pending]:
        now = self._clock()
        hopeless = {
            key: row
            for key, row in self._rounds.pending.items()
            if row.standing is Standing.WAITING
            and not row.gang.aboard
            and not self._rounds.has_hope(row.gang)
        }
        self._since = {key: self._since.get(key, now) for key in hopeless}
        yield from (row for key, row in hopeless.items() if now - self._since[key] >= after)

    async def _ungate(self, pod: Pod) -> bool:
        """False where it was refused; the next look tries again."""
        meta = {"uid": pod.uid, "resourceVersion": pod.version}
        try:
            await self._api.patch(pod_path(pod), {"metadata": meta, "spec": {"schedulingGates": None}})
        except ApiError as error:
            log.warning("gate not dropped", pod=f"{pod.namespace}/{pod.name}", error=str(error))
            return False
        return True
