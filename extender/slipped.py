"""Pods that slipped past the webhook (rule 12 of the design).

Where the webhook can't be reached, the API server lets a Pod pass that only its owner makes a member of a
gang. It has no gang label then and never gets one: any scheduler may bind it, and its gang misses it for
good. So whoever reads the owner is told, once, and what to do about it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.news import Announcement
from extender.owners import Owners
from gangs import contract, sentences
from gangs.pods import Pod
from gangs.reasons import Reason

SETTLED_SECONDS: Final = 5.0  # a Pod may be seen before its owner is

# Kinds of which every Pod is a member, if the owner asks at all.
_ALWAYS_GANGS: Final = ("StatefulSet", "Job")

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""


class Slipped:
    """Watches Pods without a gang for those that should have one."""

    def __init__(self, api: Api, owners: Owners, profiles: Sequence[str], clock: Callable[[], float]) -> None:
        self._api = api
        self._owners = owners
        self._names = frozenset((*profiles, contract.DEFAULT_SCHEDULER_NAME))
        self._clock = clock
        self._suspects: dict[str, Pod] = {}
        self._told: set[str] = set()  # UIDs of owners

    def consider(self, pod: Pod) -> None:
        """A Pod is new or has changed."""
        if self._may_have_slipped(pod):
            self._suspects[pod.uid] = pod
        else:
            self._suspects.pop(pod.uid, None)

    async def tell(self) -> list[Announcement]:
        """What is to be said now. Call it about once a second."""
        said: list[Announcement] = []
        for pod in list(self._ripe()):
            del self._suspects[pod.uid]
            if pod.owner and pod.owner.uid not in self._told and self._should_have_one(pod):
                if await self._ignored(pod.namespace):
                    continue
                self._told.add(pod.owner.uid)
                message = sentences.slipped(pod)
                said.append(Announcement(pod, Reason.SLIPPED, message, pod.owner))
                said.append(Announcement(pod, Reason.SLIPPED, message))
        return said

    def _may_have_slipped(self, pod: Pod) -> bool:
        if pod.gang or pod.opted_out or not pod.live or pod.owner is None or pod.scheduler not in self._names:
            return False
        if pod.owner.uid in self._told or pod.namespace == contract.SYSTEM_NAMESPACE:
            return False
        ours = pod.scheduler != contract.DEFAULT_SCHEDULER_NAME
        wants = any(name.startswith(contract.NVIDIA_PREFIX) for name in pod.shape.requests)
        return bool(pod.partition_index) or (pod.owner.kind in _ALWAYS_GANGS and (ours or wants))

    def _ripe(self) -> Iterator[Pod]:
        now = self._clock()
        return (pod for pod in self._suspects.values() if now - pod.created >= SETTLED_SECONDS)

    def _should_have_one(self, pod: Pod) -> bool:
        return bool(pod.partition_index) or (pod.owner is not None and self._owners.asks(pod.owner.uid))

    async def _ignored(self, namespace: str) -> bool:
        """Whether the namespace has opted out; where that can't be read, nothing is claimed."""
        try:
            found: Mapping[str, Json] = await self._api.get(f"/api/v1/namespaces/{namespace}") or {}
        except ApiError as error:
            log.warning("namespace not read", namespace=namespace, error=str(error))
            return True
        labels = found.get("metadata", {}).get("labels") or {}
        return bool(labels.get(contract.LABEL_WEBHOOK) == contract.WEBHOOK_IGNORE)
