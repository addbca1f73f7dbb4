"""The status of Queues, written while KAI's own controllers don't (rule 16 of the design).

    allocated   what bound Pods of the queue and those below it take
    requested   the same of all unfinished Pods, bound or not
    childQueues its direct children

As in KAI both add up along the tree. A queue is written only where something has changed.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.queues import PATH, Queues
from extender.registry import Registry
from gangs.contract import GPU
from gangs.queues.amounts import Amounts, amounts_of
from gangs.queues.ledger import Ledger

AGAIN_SECONDS: Final = 2.0
KAI_SECONDS: Final = 60.0  # KAI does not come and go more often
_KAI: Final = "/apis/apps/v1/namespaces/kai-scheduler/deployments/queue-controller"
_BATCH: Final = 1000  # Pods that are counted before kube-scheduler's calls get their turn

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""


class QueueStatus:
    """Writes what has changed since it last did."""

    def __init__(self, api: Api, queues: Queues, registry: Registry, clock: Callable[[], float]) -> None:
        self._api = api
        self._queues = queues
        self._registry = registry
        self._clock = clock
        self._written: dict[str, Json] = {}
        self._looked = self._asked = float("-inf")
        self._kai = True

    async def write(self) -> None:
        """Bring every Queue's status up to date. Call it about once a second; does nothing in between."""
        now = self._clock()
        if not self._queues.tree or now - self._looked < AGAIN_SECONDS:
            return
        self._looked = now
        if await self._kai_writes(now):
            self._written.clear()
            return
        statuses = await self._statuses()
        self._written = {name: row for name, row in self._written.items() if name in statuses}
        for name, status in statuses.items():
            if self._written.get(name) != status:
                await self._patch(name, status)

    def forget(self) -> None:
        """Others have led meanwhile, and may have written: write all anew."""
        self._written.clear()

    async def _patch(self, name: str, status: Json) -> None:
        try:
            await self._api.patch(f"{PATH}/{name}/status", {"status": status})
        except ApiError as error:
            log.warning("queue status not written", queue=name, error=str(error))
        else:
            self._written[name] = status

    async def _kai_writes(self, now: float) -> bool:
        """Whether KAI's queue-controller is installed; where that can't be found out it is left to it."""
        if now - self._asked >= KAI_SECONDS:
            self._asked = now
            try:
                self._kai = await self._api.get(_KAI) is not None
            except ApiError as error:
                self._kai = True
                log.warning("queue status is not written: can't see whether KAI does", error=str(error))
        return self._kai

    async def _statuses(self) -> dict[str, Json]:
        tree = self._queues.tree
        allocated, requested = Ledger(tree, {}), Ledger(tree, {})
        for number, pod in enumerate(list(self._registry.pods.values())):
            if number % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            if pod.terminal:
                continue
            amounts = amounts_of(pod.shape.requests)
            requested.take(pod.queue, amounts)
            if pod.node:
                allocated.take(pod.queue, amounts)
        return {
            name: {
                "allocated": _resources(allocated.held(name)),
                "requested": _resources(requested.held(name)),
                "childQueues": list(tree.children.get(name, ())),
            }
            for name in tree.queues
        }


def _resources(amounts: Amounts) -> dict[str, str]:
    """A ResourceList; always all three, as a merge patch would leave what was there before."""
    return {
        GPU: str(int(amounts.gpu)),
        "cpu": f"{int(amounts.cpu)}m",
        "memory": str(int(amounts.memory)),
    }
