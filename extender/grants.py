"""Writes grants to the API server: nominate, then plan and gate.

Two writes a member, in this order, because kube-scheduler looks at a nominated node first and alone:
the nomination must be there when the gate falls. Members are written side by side; the barrier holds
whoever comes early. A write is skipped where the Pod already says so (after a restart), and dropped
where the permit has taken the seat back meanwhile.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.registry import Registry
from extender.store import PermitStore
from extender.wire import plan_annotation
from gangs.contract import ANNOTATION_PLAN, GATE
from gangs.muster import Muster
from gangs.pods import Plan, Pod
from gangs.room import Domain

_AT_ONCE: Final = 32  # members written side by side
_RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What the writer needs of the API client."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""


class Grants:
    """The grant writer. term: of the leadership under which it writes."""

    def __init__(self, api: Api, registry: Registry, store: PermitStore, term: str) -> None:
        self._api = api
        self._registry = registry
        self._store = store
        self._term = term
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Start writing; returns at once."""
        rows = list(seats)
        log.info("granted", gang=gang.name, members=len(rows), domain="/".join(domain))
        for pod, node in rows:
            plan = Plan(node, domain, deadline, pod.uid, self._term)
            task = asyncio.get_running_loop().create_task(self._write(pod, plan))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _write(self, pod: Pod, plan: Plan) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        async with self._slots:
            if pod.nominated != plan.node and not await self._patch(
                pod, plan, f"{path}/status", _nominate(pod, plan)
            ):
                return
            if pod.gated or pod.plan != plan:
                await self._patch(pod, plan, path, _release(pod, plan))

    async def _patch(self, pod: Pod, plan: Plan, path: str, body: Json) -> bool:
        """Write until it is written or no longer wanted; whether it is written."""
        attempt = 0
        while self._store.seat(pod) == plan.node:
            try:
                await self._api.patch(path, body)
            except ApiError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    self._store.lose(pod, f"the API server refused the grant: {error.message}")
                    return False
                log.warning("grant is written again", pod=f"{pod.namespace}/{pod.name}", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                attempt += 1
            else:
                return True
        return False


def _nominate(pod: Pod, plan: Plan) -> Json:
    # The UID makes the API server refuse the patch for a namesake.
    return {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": plan.node}}


def _release(pod: Pod, plan: Plan) -> Json:
    body: Json = {
        "metadata": {"uid": pod.uid, "annotations": {ANNOTATION_PLAN: plan_annotation(plan)}},
    }
    if pod.gated:
        left = [{"name": gate} for gate in pod.gates if gate != GATE]
        body["spec"] = {"schedulingGates": left or None}
    return body
