"""Evicts Pods for a gang: asks first whether all may go, marks them, and sees to it that they do.

    forbidden()   budgets cover all victims together, and each eviction passes as a dry run
    mark()        the annotation on every victim names the gang for which it goes; only then does the first go
    pursue()      evicts who is marked, again and again; after a minute of refusals the Pod is deleted

The mark is the memory: whoever leads next goes on from it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.evictions import eviction
from extender.pod_calls import pod_path
from extender.selectors import matches
from gangs.contract import ANNOTATION_EVICTED_FOR
from gangs.pods import Pod

PATIENCE_SECONDS: Final = 60.0
_BUDGETS: Final = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
_DRY_RUN: Final = {"dryRun": "All"}

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""

    async def create(self, path: str, body: Json, params: Mapping[str, str] | None = None) -> Json:
        """POST."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """DELETE."""


class Evictor:
    """Knows since when each victim has been asked to go."""

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._since: dict[str, float] = {}

    async def forbidden(self, victims: Sequence[Pod]) -> str:
        """Why these may not all be evicted, "" where they may."""
        try:
            for namespace in sorted({pod.namespace for pod in victims}):
                mine = [pod for pod in victims if pod.namespace == namespace]
                if why := await self._over_budget(namespace, mine):
                    return why
            for pod in victims:
                await self._api.create(pod_path(pod, "eviction"), eviction(pod), _DRY_RUN)
        except ApiError as error:
            return error.message or str(error)
        return ""

    async def mark(self, victims: Sequence[Pod], gang: str) -> bool:
        """Write on each victim for which gang it goes. Where one can't be written nobody stays marked."""
        done: list[Pod] = []
        for pod in victims:
            try:
                await self._annotate(pod, gang)
                done.append(pod)
            except ApiError as error:
                log.warning("victim not marked: nobody is evicted", pod=pod.name, error=str(error))
                await self._unmark(done)
                return False
        return True

    async def pursue(self, victims: Iterable[Pod]) -> list[Pod]:
        """Ask each once more to go; those that were deleted since asking was in vain for too long."""
        now, deleted = self._clock(), []
        pods = list(victims)
        self._since = {pod.uid: self._since.get(pod.uid, now) for pod in pods}
        for pod in pods:
            if pod.terminating:
                continue
            try:
                if now - self._since[pod.uid] < PATIENCE_SECONDS:
                    await self._api.create(pod_path(pod, "eviction"), eviction(pod))
                else:
                    await self._api.delete(pod_path(pod), {"preconditions": {"uid": pod.uid}})
                    deleted.append(pod)
            except ApiError as error:
                log.warning("victim does not go yet", pod=f"{pod.namespace}/{pod.name}", error=str(error))
        return deleted

    async def _over_budget(self, namespace: str, victims: Sequence[Pod]) -> str:
        found = await self._api.get(_BUDGETS.format(namespace)) or {}
        budgets = found.get("items") or ()
        labels = [await self._labels(pod) for pod in victims] if budgets else []
        for budget in budgets:
            selector = (budget.get("spec") or {}).get("selector")
            number = sum(matches(selector, row) for row in labels)
            allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
            if number > allowed:
                name = f"{namespace}/{budget['metadata']['name']}"
                return f"PodDisruptionBudget {name} allows {allowed} disruptions, {number} are needed"
        return ""

    async def _labels(self, pod: Pod) -> Mapping[str, str]:
        found = await self._api.get(pod_path(pod)) or {}
        return (found.get("metadata") or {}).get("labels") or {}

    async def _annotate(self, pod: Pod, gang: str | None) -> None:
        meta = {"uid": pod.uid, "annotations": {ANNOTATION_EVICTED_FOR: gang}}
        await self._api.patch(pod_path(pod), {"metadata": meta})

    async def _unmark(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            try:
                await self._annotate(pod, None)
            except ApiError as error:
                log.warning("mark not taken back", pod=f"{pod.namespace}/{pod.name}", error=str(error))
