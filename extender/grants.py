"""Writes grants to the API server: nominate, then plan and gate.

Two writes a member, in this order, because kube-scheduler looks at a nominated node first and alone:
the nomination must be there when the gate falls. Members are written side by side; the barrier holds
whoever comes early. A write is skipped where the Pod already says so (after a restart), and dropped
where the permit has taken the seat back meanwhile.

Each write names the version of the Pod that it was decided on. After a conflict the Pod is looked at: if
another instance of us has planned it meanwhile, that one rules; anything else is written over.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.pod_calls import as_it_is, pod_path
from extender.store import PermitStore
from extender.wire import plan_annotation
from gangs.contract import ANNOTATION_PLAN, GATE
from gangs.muster import Muster
from gangs.pods import Plan, Pod
from gangs.room import Domain

_AT_ONCE: Final = 32  # members written side by side
_RETRY_SECONDS: Final = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What the writer needs of the API client."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""


class Grants:
    """The grant writer. term: of the leadership under which it writes.

    preconditions: False leaves the Pods' versions out of the writes (extender/unprotected.py).
    retried: called for each write that is tried again.
    """

    def __init__(
        self,
        api: Api,
        store: PermitStore,
        term: Callable[[], str],
        *,
        preconditions: bool = True,
        retried: Callable[[], None] = lambda: None,
    ) -> None:
        self._retried = retried
        self._api = api
        self._store = store
        self._term = term
        self._preconditions = preconditions
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Start writing; returns at once."""
        rows = list(seats)
        log.info("granted", gang=gang.name, members=len(rows), domain="/".join(domain))
        for pod, node in rows:
            plan = Plan(node, domain, deadline, pod.uid, self._term())
            task = asyncio.get_running_loop().create_task(self._write(pod, plan))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def abandon(self) -> None:
        """Write no more: the leadership is lost."""
        for task in self._tasks:
            task.cancel()

    async def _write(self, pod: Pod, plan: Plan) -> None:
        """Write until the Pod says what it should, or its seat is taken back."""
        attempt = 0
        async with self._slots:
            while (body := self._next(pod, plan)) and self._store.seat(pod) == plan.node:
                try:
                    pod = await self._patch(pod, plan, body)
                    attempt = 0
                except ApiError as error:
                    found = await self._after(error, pod)
                    if found is None:
                        return
                    pod = found
                    self._retried()
                    await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                    attempt += 1

    def _next(self, pod: Pod, plan: Plan) -> Json | None:
        """The next write, None where nothing is left to be written."""
        meta: Json = {"uid": pod.uid}  # makes the API server refuse the patch for a namesake
        if self._preconditions and pod.version:
            meta["resourceVersion"] = pod.version
        if pod.nominated != plan.node:
            return {"metadata": meta, "status": {"nominatedNodeName": plan.node}}
        if pod.gated or pod.plan != plan:
            meta["annotations"] = {ANNOTATION_PLAN: plan_annotation(plan)}
            left = [{"name": gate} for gate in pod.gates if gate != GATE]
            return {"metadata": meta} | ({"spec": {"schedulingGates": left or None}} if pod.gated else {})
        return None

    async def _patch(self, pod: Pod, plan: Plan, body: Json) -> Pod:
        """Send one write; the Pod as it is then."""
        status = "status" in body
        answer = await self._api.patch(pod_path(pod, "status" if status else ""), body)
        now = replace(pod, version=answer["metadata"]["resourceVersion"])
        return (
            replace(now, nominated=plan.node) if status else replace(now, plan=plan, gates=pod.foreign_gates)
        )

    async def _after(self, error: ApiError, pod: Pod) -> Pod | None:
        """What to go on with after a write that failed; None where the seat is lost."""
        if error.conflict:
            return await self._rebase(pod)
        if error.final:
            self._store.lose(pod, f"the API server refused the grant: {error.message}")
            return None
        log.warning("grant is written again", pod=f"{pod.namespace}/{pod.name}", error=str(error))
        return pod

    async def _rebase(self, pod: Pod) -> Pod | None:
        """The Pod as it is now, unless it isn't ours to write any more."""
        try:
            now = await as_it_is(self._api, pod)
        except ApiError:
            return pod  # written again on the old version, which brings us back here
        if now is None:
            self._store.lose(pod, "the Pod was deleted")
        elif now.planned_by_others(pod, self._term()):
            self._store.lose(pod, "another instance has planned it meanwhile")
        else:
            return now
        return None
