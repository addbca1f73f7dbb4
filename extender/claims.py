"""What Pods ask for by ResourceClaim (resource.k8s.io/v1), and what allocated claims hold.

    claim not allocated yet ──► the devices that its template asks for, as part of the Pod's requests
    claim allocated         ──► the Pod is tied to where it is (rule 9 of the design) and asks no more;
                                the devices are held by the claim itself, in the Room, as kube-scheduler
                                counts them: until it is deallocated, whatever becomes of the Pod

A ResourceClaim that Pods share by name is counted once it is allocated: all of them may use one device, so
how many are wanted can't be told before. So it is with requests that we can't count by node (alternatives,
all devices, consumable capacity): kube-scheduler refuses what doesn't fit, and the plan learns.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from extender.slices import DeviceKey, Devices, expressions
from extender.wire import selector_terms, tolerations
from gangs.devices import Ask
from gangs.nodes import Term
from gangs.pods import DeviceClaim, Pod
from gangs.room import Room, Seat

RESOURCE_CLAIMS: Final = "/apis/resource.k8s.io/v1/resourceclaims"
TEMPLATES: Final = "/apis/resource.k8s.io/v1/resourceclaimtemplates"

Json = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class _Allocation:
    """terms: nodes that can use it, () for all. user: a Pod for which it is reserved."""

    terms: tuple[Term, ...]
    devices: tuple[DeviceKey, ...]
    user: str


@dataclass(slots=True)
class _Held:
    """Allocated claims by UID, and the node of each that has one."""

    claims: dict[str, tuple[Key, _Allocation]] = field(default_factory=dict)
    node: dict[str, str] = field(default_factory=dict)


class Claims:
    """Claims and templates.

    changed: called with namespace and name of one by which Pods may ask for something else now.
    """

    def __init__(self, devices: Devices, room: Room, changed: Callable[[str, str], None]) -> None:
        self.claims = _Claims(self)
        self.templates = _Templates(self)
        self._devices = devices
        self._room = room
        self._changed = changed
        self._asks: dict[Key, dict[Ask, int]] = {}
        self._allocated: dict[Key, _Allocation] = {}
        self._held = _Held()

    def requests(self, pod: Pod) -> Mapping[str, int]:
        """Devices that the Pod still needs, by resource name."""
        wanted: Counter[str] = Counter()
        for claim in pod.device_claims:
            if self._allocation(pod, claim) is None:
                for ask, number in self._asks.get((pod.namespace, claim.template), {}).items():
                    if self._devices.counts(ask):
                        wanted[ask.resource] += number
        return wanted

    def ties(self, pod: Pod) -> Iterator[tuple[Term, ...]]:
        """Where the Pod's allocated claims let it go, one by one."""
        for claim in pod.device_claims:
            found = self._allocation(pod, claim)
            if found and found.terms:
                yield found.terms

    def allocated(self, pod: Pod) -> bool:
        """Whether all claims of the Pod are allocated."""
        return all(self._allocation(pod, claim) for claim in pod.device_claims)

    def devices_changed(self, nodes: Iterable[str]) -> None:
        """The devices of these nodes are others now: count anew what is held there."""
        affected = set(nodes)
        for uid in list(self._held.claims):
            if self._held.node.get(uid, "") in affected | {""}:
                self._hold(uid)

    def put_template(self, key: Key, asks: dict[Ask, int] | None) -> None:
        """A template is as it is now; None: gone."""
        if self._asks.get(key) == asks:
            return
        if asks is None:
            del self._asks[key]
        else:
            self._asks[key] = asks
            self._devices.learn(asks)
        self._changed(*key)

    def put_claim(self, uid: str, key: Key, found: _Allocation | None) -> None:
        """A claim is as it is now; None: not allocated, or gone."""
        known = self._held.claims.get(uid)
        if known == ((key, found) if found else None):
            return
        if found:
            self._held.claims[uid] = key, found
            self._allocated[key] = found
            self._hold(uid)
        else:
            del self._held.claims[uid]
            self._held.node.pop(uid, None)
            self._room.give(uid)
            if not any(k == key for k, _ in self._held.claims.values()):
                del self._allocated[key]
        self._changed(*key)

    def _allocation(self, pod: Pod, claim: DeviceClaim) -> _Allocation | None:
        return self._allocated.get((pod.namespace, claim.name)) if claim.name else None

    def _hold(self, uid: str) -> None:
        _, found = self._held.claims[uid]
        node, taken = self._devices.taken(found.devices)
        self._held.node[uid] = node
        if taken:
            self._room.take(uid, Seat(node, taken, found.user))
        else:
            self._room.give(uid)


class _Claims:
    """Handler of ResourceClaims."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._keys: dict[str, Key] = {}

    def put(self, obj: Json) -> None:
        """A claim is new or has changed."""
        meta, status = obj["metadata"], obj.get("status") or {}
        key = self._keys[meta["uid"]] = meta["namespace"], meta["name"]
        allocation = status.get("allocation")
        users = [r["name"] for r in status.get("reservedFor") or ()]
        user = users[0] if users else meta["name"]
        found = None if allocation is None else _allocation(allocation, user)
        self._claims.put_claim(meta["uid"], key, found)

    def drop(self, uid: str) -> None:
        """A claim is gone."""
        self._claims.put_claim(uid, self._keys.pop(uid, ("", "")), None)


class _Templates:
    """Handler of ResourceClaimTemplates."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._keys: dict[str, Key] = {}

    def put(self, obj: Json) -> None:
        """A template is new or has changed."""
        meta = obj["metadata"]
        key = self._keys[meta["uid"]] = meta["namespace"], meta["name"]
        self._claims.put_template(key, _asks(obj["spec"].get("spec") or {}))

    def drop(self, uid: str) -> None:
        """A template is gone."""
        key = self._keys.pop(uid, None)
        if key and key not in self._keys.values():
            self._claims.put_template(key, None)


def _asks(spec: Json) -> dict[Ask, int]:
    """How many devices of which kinds a claim asks for, of those requests that can be counted."""
    wanted: Counter[Ask] = Counter()
    for row in (spec.get("devices") or {}).get("requests") or ():
        exact = row.get("exactly") or {}
        exactly_so_many = exact.get("allocationMode", "ExactCount") == "ExactCount"
        if exact and exactly_so_many and not exact.get("adminAccess") and not exact.get("capacity"):
            ask = Ask(exact["deviceClassName"], expressions(exact), tolerations(exact.get("tolerations")))
            wanted[ask] += exact.get("count", 1)
    return dict(wanted)


def _allocation(obj: Json, user: str) -> _Allocation:
    rows = (obj.get("devices") or {}).get("results") or ()
    return _Allocation(
        terms=selector_terms((obj.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()),
        devices=tuple((r["driver"], r["pool"], r["device"]) for r in rows if not r.get("adminAccess")),
        user=user,
    )
