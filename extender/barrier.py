"""The bind barrier: where kube-scheduler's bind calls wait for the rest of the gang.

kube-scheduler calls bind for each Pod once its own filters, Reserve and PreBind have passed, and counts
the Pod as assumed while it waits. A member of a gang is answered when its permit releases it (then we
create the Binding and say how that went) or cancels it (then it is answered with the reason, which
becomes the Pod's FailedScheduling event). A loose Pod is bound at once if what it takes is promised to
nobody.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from extender.binder import GIVEN_UP, Binder
from extender.cluster import Pods
from extender.queues import Queues
from extender.registry import Registry
from extender.store import PermitStore, seat_of
from gangs.permits import Arrived, Unbound, Withdrew
from gangs.pods import Pod
from gangs.room import Room, fitting
from gangs.sentences import REFUSED_PROMISED

# kube-scheduler gives a bind up after httpTimeout (9 min); ours must end before that.
BIND_SECONDS: Final = 525.0
_LAG_LOOKS: Final = 40
_LAG_SECONDS: Final = 0.05


class Barrier:
    """Waiting bind calls by UID; the permit store's outlet.

    closed, guarded: False switches the protection off (extender/unprotected.py).
    """

    def __init__(
        self,
        binder: Binder,
        registry: Registry,
        room: Room,
        queues: Queues,
        *,
        closed: bool = True,
        guarded: bool = True,
    ) -> None:
        self._binder = binder
        self._registry = registry
        self._room = room
        self._queues = queues
        self._closed = closed
        self._guarded = guarded
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._refused: set[str] = set()  # told no while their Bindings were being created
        self._tasks: set[asyncio.Task[None]] = set()
        self._pods: Pods
        self._store: PermitStore

    def connect(self, pods: Pods, store: PermitStore) -> None:
        """Name who is told of arrivals and bindings; they need the barrier first."""
        self._pods = pods
        self._store = store

    async def bind(self, uid: str, namespace: str, name: str, node: str) -> str:
        """Answer one bind call: "" when the Pod is bound, else why not, written for people."""
        pod = await self._known(uid)
        if pod is None:
            return f"Pod {namespace}/{name} with UID {uid} is not known (yet, or any more)"
        if pod.node:
            return "" if pod.node == node else f"Pod {namespace}/{name} is already bound to {pod.node}"
        if not pod.gang:
            return await self._bind_loose(pod, node)
        if not self._closed:
            return await self._create(pod, node)
        return await self._wait(pod, node)

    def release(self, uids: frozenset[str]) -> None:
        """Create the Bindings of these members, all at once."""
        for uid in uids:
            pod = self._registry.pods.get(uid)
            node = self._store.seat(pod) if pod else None
            if pod and node:
                self._spawn(self._finish(pod, node))

    def cancel(self, uids: frozenset[str], why: str) -> None:
        """Answer the calls of these members with an error."""
        for uid in uids:
            self._answer(uid, f"the gang does not board now: {why}")

    async def _known(self, uid: str) -> Pod | None:
        """The Pod, given a moment for our watch where kube-scheduler's was quicker."""
        for _ in range(_LAG_LOOKS):
            if uid in self._registry.pods:
                break
            await asyncio.sleep(_LAG_SECONDS)
        return self._registry.pods.get(uid)

    async def _wait(self, pod: Pod, node: str) -> str:
        seat = self._store.seat(pod)
        if seat != node:
            return f"the gang's permit does not give {pod.name} a seat on {node}"
        previous = self._waiting.pop(pod.uid, None)
        if previous and not previous.done():
            previous.set_result("kube-scheduler has asked again")
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[pod.uid] = future
        self._refused.discard(pod.uid)
        self._store.apply(pod.key, Arrived(pod.uid))
        try:
            async with asyncio.timeout(BIND_SECONDS):
                return await future
        except TimeoutError:
            if pod.uid in self._store.permit(pod.key).binding:
                self._refused.add(pod.uid)
            return "the gang did not board in time"
        finally:
            if self._waiting.get(pod.uid) is future:
                del self._waiting[pod.uid]
                self._store.apply(pod.key, Withdrew(pod.uid))

    async def _finish(self, pod: Pod, node: str) -> None:
        """Bind a released member, and tell its permit and kube-scheduler how that went."""
        why = await self._create(pod, node)
        if why == GIVEN_UP:
            self._store.apply(pod.key, Unbound(pod.uid))
        elif why:
            self._store.lose(pod, why, certain=True)
        self._answer(pod.uid, why)

    async def _bind_loose(self, pod: Pod, node: str) -> str:
        # Checked and taken in one go: two loose Pods can't both get the last room, or the rest of a limit.
        if why := self._queues.refusal(pod):
            return why
        if self._guarded and not self._has_room(pod, node):
            return REFUSED_PROMISED
        self._room.take(pod.uid, seat_of(pod, node, pod.shape))
        try:
            return await self._create(pod, node)
        finally:  # kube-scheduler may also have hung up
            now = self._registry.pods.get(pod.uid)
            if now is None or not now.seated:
                self._room.give(pod.uid)

    def _has_room(self, pod: Pod, node: str) -> bool:
        known = self._room.nodes.get(node)
        return known is not None and fitting(pod.shape.requests, self._room.free(known)) > 0

    async def _create(self, pod: Pod, node: str) -> str:
        why = await self._binder.bind(pod, node, lambda: pod.uid not in self._refused)
        self._refused.discard(pod.uid)
        if not why:
            self._pods.bound(pod, node)
        return why

    def _answer(self, uid: str, text: str) -> None:
        future = self._waiting.pop(uid, None)
        if future and not future.done():
            future.set_result(text)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
