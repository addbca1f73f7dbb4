"""Creates Bindings, and doesn't rest before it knows whether the Pod is bound.

An answer that was lost may have been a yes, so an attempt without one is followed by another, or by a
look. A member's Binding names the version of the Pod: another instance of us that has planned the Pod
anew has changed it, and then rules. Any other change only means to try again.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.pod_calls import as_it_is, pod_path
from gangs.pods import Pod

GIVEN_UP: Final = "the call was answered before it was bound"
_RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_CONFLICTS: Final = 5  # in about 4 s

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What the binder needs of the API client."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""


class Binder:
    """Binds Pods to nodes. term: of the leadership under which we do.

    preconditions: False leaves the Pods' versions out (extender/unprotected.py).
    retried: called for each attempt that is followed by another.
    """

    def __init__(
        self,
        api: Api,
        term: Callable[[], str],
        *,
        preconditions: bool = True,
        retried: Callable[[], None] = lambda: None,
    ) -> None:
        self._retried = retried
        self._api = api
        self._term = term
        self._preconditions = preconditions

    async def bind(self, pod: Pod, node: str, wanted: Callable[[], bool]) -> str:
        """Create the Binding: "" when the Pod is bound, else why not.

        wanted: whether kube-scheduler still may want it. Where it has died meanwhile it does: all that it did
        for the Pod (claims, volumes) is done, and half a gang is worse than a late Pod. Where it was told
        no, it has undone that; then we only look what became of the attempts made before, and answer
        GIVEN_UP where they were in vain.
        """
        attempt = 0
        while True:
            try:
                if wanted():
                    return await self._try(pod, node, last=attempt >= _CONFLICTS)
                if await self._sits_there(pod, node):
                    return ""
                if not wanted():
                    return GIVEN_UP
            except _ChangedError as error:
                pod = error.now
            except ApiError as error:
                self._retried()
                log.warning("binding is tried again", pod=f"{pod.namespace}/{pod.name}", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                attempt += 1

    async def _try(self, pod: Pod, node: str, *, last: bool) -> str:
        """One attempt; raises ApiError or _ChangedError where another may go better."""
        try:
            await self._api.create(pod_path(pod, "binding"), self._body(pod, node))
        except ApiError as error:
            if not error.final:
                raise
            if error.conflict:
                return await self._after_conflict(pod, node, error, last=last)
            return f"binding to {node} was refused: {error.message}"
        return ""

    async def _after_conflict(self, pod: Pod, node: str, error: ApiError, *, last: bool) -> str:
        """A conflict may mean that an earlier attempt has succeeded, or that the Pod has changed since.

        One over an unchanged Pod isn't about the Pod and may pass; it does not count for ever.
        """
        now = await as_it_is(self._api, pod)
        if now and now.node == node:
            return ""
        if now and now.live and not now.node and not now.planned_by_others(pod, self._term()):
            if now.version != pod.version:
                raise _ChangedError(now)
            if not last:
                raise error
        return f"binding to {node} was refused: {error.message}"

    async def _sits_there(self, pod: Pod, node: str) -> bool:
        now = await as_it_is(self._api, pod)
        return now is not None and now.node == node

    def _body(self, pod: Pod, node: str) -> Json:
        # The UID is a precondition: a Pod re-created under the same name is not bound by mistake.
        meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        if pod.gang and self._preconditions and pod.version:
            meta["resourceVersion"] = pod.version
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}


class _ChangedError(Exception):
    """The Pod has changed, but not our plan for it."""

    def __init__(self, now: Pod) -> None:
        super().__init__(now.name)
        self.now = now
