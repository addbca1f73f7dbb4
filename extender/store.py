"""The permit store: the one place where permits change.

Everything here runs in the event loop's thread and never awaits, so each call is one atomic change:
HTTP handlers, watch handlers and the planning round all come through apply(). Seats that a permit
grants are taken in the Room at once, which is what keeps promised room from everybody else.

    event ──► gangs.permits.step ──► permit, seats in the Room, effects to the barrier
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Final, Protocol

import structlog

from extender.journal import Journal
from extender.registry import Registry
from gangs.nodes import Shape
from gangs.permits import Cancel, Event, Lost, Permit, Release, Tick, step
from gangs.pods import GangKey, Pod
from gangs.room import Room, Seat

REFUSAL_SECONDS: Final = 30.0  # how long a (member, node) pair that kube-scheduler refused is avoided

log = structlog.get_logger(__name__)


class Outlet(Protocol):
    """Where effects go: the barrier, at which bind calls wait."""

    def release(self, uids: frozenset[str]) -> None:
        """Bind these members."""

    def cancel(self, uids: frozenset[str], why: str) -> None:
        """Answer these members' bind calls with an error."""


class PermitStore:
    """Permits by gang. changed is called after each change, to wake the planning round."""

    def __init__(
        self,
        registry: Registry,
        room: Room,
        outlet: Outlet,
        clock: Callable[[], float],
        jitter: Callable[[], float],
        changed: Callable[[], None],
        shape: Callable[[Pod], Shape] = attrgetter("shape"),
        journal: Journal | None = None,
    ) -> None:
        self.journal = journal or Journal()
        self.permits: dict[GangKey, Permit] = {}
        self.last_failure: dict[GangKey, str] = {}
        self._registry = registry
        self._room = room
        self._outlet = outlet
        self._clock = clock
        self._jitter = jitter
        self._changed = changed
        self._shape = shape
        self._refusals: dict[GangKey, dict[tuple[str, str], float]] = {}

    def permit(self, key: GangKey) -> Permit:
        """The gang's permit; an empty one where it has none yet."""
        return self.permits.get(key) or Permit()

    def seat(self, pod: Pod) -> str | None:
        """The node that the Pod was granted and is not bound to yet."""
        permit = self.permits.get(pod.key) if pod.gang else None
        return permit.seats.get(pod.uid) if permit else None

    def apply(self, key: GangKey, event: Event) -> None:
        """One event for one gang."""
        before = self.permit(key)
        now = self._clock()
        after, effects = step(before, event, now, self._jitter())
        if after is before and not effects:
            return
        self.permits[key] = after
        self.journal.saw(key, before, event, after, now)
        self._reseat(before, after)
        self._registry.changed.add(key)
        for effect in effects:
            match effect:
                case Release(uids):
                    self._outlet.release(uids)
                case Cancel(uids, why):
                    self._outlet.cancel(uids, why)
        self._changed()

    def lose(self, pod: Pod, why: str, *, certain: bool = False) -> None:
        """The Pod can't take its seat; the pair is avoided for a while. certain: see gangs.permits.Lost."""
        node = self.seat(pod)
        if node is None:
            return
        self.apply(pod.key, Lost(pod.uid, why, certain))
        if self.seat(pod) == node:
            return  # its Binding is under way and decides
        log.info("seat lost", pod=f"{pod.namespace}/{pod.name}", node=node, why=why)
        self._refusals.setdefault(pod.key, {})[pod.uid, node] = self._clock() + REFUSAL_SECONDS
        self.last_failure[pod.key] = f"{pod.name} on {node}: {why}"

    def avoided(self, key: GangKey) -> frozenset[tuple[str, str]]:
        """(member, node) pairs that must not be planned now."""
        now = self._clock()
        pairs = {p: until for p, until in self._refusals.get(key, {}).items() if until > now}
        if pairs:
            self._refusals[key] = pairs
        else:
            self._refusals.pop(key, None)
        return frozenset(pairs)

    def tick(self) -> None:
        """Let the clocks of all boardings run."""
        for key in [k for k, p in self.permits.items() if p.boarding]:
            failures = self.permits[key].failures
            self.apply(key, Tick())
            if self.permits[key].failures > failures:
                self.last_failure[key] = "not every member reached the barrier in time"

    def reset(self) -> None:
        """Drop every permit: somebody else leads now."""
        for key in list(self.permits):
            self.forget(key)

    def forget(self, key: GangKey) -> None:
        """The gang has no live member any more: the next one under this name starts afresh."""
        permit = self.permits.pop(key, None)
        self.last_failure.pop(key, None)
        self._refusals.pop(key, None)
        self.journal.forget(key)
        if permit:
            self._reseat(permit, Permit())
            if permit.arrived:
                self._outlet.cancel(permit.arrived, "the gang is gone")

    def _reseat(self, before: Permit, after: Permit) -> None:
        for uid in before.seats.keys() - after.seats.keys():
            pod = self._registry.pods.get(uid)
            if pod is None or not pod.seated:
                self._room.give(uid)
        for uid, node in after.seats.items():
            if before.seats.get(uid) != node and (pod := self._registry.pods.get(uid)):
                self._room.take(uid, seat_of(pod, node, self._shape(pod)))


def seat_of(pod: Pod, node: str, shape: Shape) -> Seat:
    """The Pod's seat on a node. Sentences name its controller as the holder, else the Pod."""
    return Seat(node, shape.requests, pod.owner.name if pod.owner else pod.name, pod.queue)
