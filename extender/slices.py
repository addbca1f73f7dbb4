"""Which devices each node has: ResourceSlices and DeviceClasses (resource.k8s.io/v1).

    ResourceSlices ──► pools, complete ones of the newest generation ──► devices of each node
    DeviceClasses, kinds of devices that claims ask for ──► what equip() adds to a node

Devices that no single node has (network-attached ones) can't be counted by node: kinds that match one are
left to kube-scheduler, as are expressions that we can't evaluate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from extender.wire import taints
from gangs.device_selectors import UnsupportedExpressionError, quantity, version
from gangs.devices import Ask, Device, DeviceClass, capacity, equipped, matches
from gangs.nodes import Node

SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"

Json = Mapping[str, Any]
Pool = tuple[str, str]
"""Driver and pool name."""
DeviceKey = tuple[str, str, str]
"""Driver, pool and device name, as an allocation has them."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Slice:
    """node: "" for devices that no single node has."""

    pool: Pool
    generation: int
    of: int
    node: str
    devices: tuple[Device, ...]


class Devices:
    """Devices by node. changed: called with the names of nodes that offer something else now."""

    def __init__(self, changed: Callable[[Iterable[str]], None]) -> None:
        self.slices = _Slices(self)
        self.classes = _Classes(self)
        self._changed = changed
        self._pools: dict[Pool, dict[str, _Slice]] = {}
        self._nodes: dict[str, set[Pool]] = {}
        self._by_name: dict[str, DeviceClass] = {}
        self._asks: set[Ask] = set()
        self._unsupported: set[Ask] = set()

    def equip(self, node: Node) -> Node:
        """The node with its devices among what it offers."""
        devices = list(self._on(node.name))
        if not devices:
            return node
        counts: dict[str, int] = {}
        for ask in self._known_asks():
            counts |= self._count(ask, devices)
        return replace(node, allocatable=equipped(node.allocatable, counts, self._by_name.values()))

    def learn(self, asks: Iterable[Ask]) -> None:
        """These kinds of devices are asked for: count them from now on."""
        new = {ask for ask in asks if ask.selectors or ask.tolerations} - self._asks
        self._asks |= new
        if new:
            self._changed(list(self._nodes))

    def counts(self, ask: Ask) -> bool:
        """Whether that kind is counted by node; else kube-scheduler alone can tell."""
        row = self._by_name.get(ask.device_class)
        if row is None:
            return True  # a class that doesn't exist: no node has such a device
        if ask in self._unsupported:
            return False
        return not any(matches(ask, row, device) for device in self._on(""))

    def taken(self, keys: Iterable[DeviceKey]) -> tuple[str, dict[str, int]]:
        """The node of these allocated devices ("": not known), and what they take there of each kind."""
        wanted = set(keys)
        slices = [s for driver, pool, _ in wanted for s in self._pools.get((driver, pool), {}).values()]
        node = next((s.node for s in slices if s.node and any(d.key in wanted for d in s.devices)), "")
        devices = [d for d in self._on(node) if d.key in wanted and not d.shared] if node else []
        used: dict[str, int] = {}
        for ask in self._known_asks():
            used |= self._count(ask, devices)
        return node, equipped({}, used, self._by_name.values())

    def put_slice(self, uid: str, row: _Slice | None) -> None:
        """A slice is as it is now; None: gone."""
        pools = [p for p, slices in self._pools.items() if uid in slices]
        nodes = {self._pools[p].pop(uid).node for p in pools}
        if row:
            self._pools.setdefault(row.pool, {})[uid] = row
            self._nodes.setdefault(row.node, set()).add(row.pool)
            nodes.add(row.node)
        for node in nodes:
            self._prune(node)
        self._changed(list(self._nodes) if "" in nodes else nodes)

    def put_class(self, name: str, row: DeviceClass | None) -> None:
        """A class is as it is now; None: gone."""
        if self._by_name.get(name) == row:
            return
        if row:
            self._by_name[name] = row
        else:
            del self._by_name[name]
        self._unsupported = {ask for ask in self._unsupported if ask.device_class != name}
        self._changed(list(self._nodes))

    def _prune(self, node: str) -> None:
        pools = self._nodes.get(node, set())
        left = {p for p in pools if any(s.node == node for s in self._pools.get(p, {}).values())}
        if left:
            self._nodes[node] = left
        else:
            self._nodes.pop(node, None)

    def _on(self, node: str) -> Iterator[Device]:
        """The usable devices of a node; kube-scheduler takes none of a pool that isn't complete."""
        for pool in sorted(self._nodes.get(node, ())):
            slices = self._pools[pool].values()
            newest = max(s.generation for s in slices)
            current = [s for s in slices if s.generation == newest]
            if len(current) == current[0].of:
                yield from (d for s in current if s.node == node for d in s.devices)

    def _known_asks(self) -> Iterator[Ask]:
        yield from (Ask(name) for name in self._by_name)
        yield from (ask for ask in self._asks if ask.device_class in self._by_name)

    def _count(self, ask: Ask, devices: Iterable[Device]) -> dict[str, int]:
        if ask in self._unsupported:
            return {}
        try:
            return capacity(devices, (ask,), self._by_name)
        except UnsupportedExpressionError as error:
            log.warning("devices are left to kube-scheduler", device_class=ask.device_class, why=str(error))
            self._unsupported.add(ask)
            return {}


class _Slices:
    """Handler of ResourceSlices."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def put(self, obj: Json) -> None:
        """A slice is new or has changed."""
        spec = obj["spec"]
        pool = spec["pool"]
        self._devices.put_slice(
            obj["metadata"]["uid"],
            _Slice(
                pool=(spec["driver"], pool["name"]),
                generation=pool.get("generation", 0),
                of=pool.get("resourceSliceCount", 1),
                node=spec.get("nodeName", ""),
                devices=tuple(
                    _device(row, spec["driver"], pool["name"]) for row in spec.get("devices") or ()
                ),
            ),
        )

    def drop(self, uid: str) -> None:
        """A slice is gone."""
        self._devices.put_slice(uid, None)


class _Classes:
    """Handler of DeviceClasses."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._names: dict[str, str] = {}

    def put(self, obj: Json) -> None:
        """A class is new or has changed."""
        name, spec = obj["metadata"]["name"], obj.get("spec") or {}
        self._names[obj["metadata"]["uid"]] = name
        row = DeviceClass(name, expressions(spec), spec.get("extendedResourceName", ""))
        self._devices.put_class(name, row)

    def drop(self, uid: str) -> None:
        """A class is gone."""
        name = self._names.pop(uid, "")
        if name and name not in self._names.values():
            self._devices.put_class(name, None)


def expressions(spec: Json) -> tuple[str, ...]:
    """The CEL expressions of a class or of a request."""
    return tuple(row["cel"]["expression"] for row in spec.get("selectors") or () if row.get("cel"))


def _device(row: Json, driver: str, pool: str) -> Device:
    attributes: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in (row.get("attributes") or {}).items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = _attribute(value)
    sizes: dict[str, dict[str, int]] = {driver: {}}
    for name, value in (row.get("capacity") or {}).items():
        domain, _, short = name.rpartition("/")
        sizes.setdefault(domain or driver, {})[short] = quantity(value["value"])
    facts = {"driver": driver, "attributes": attributes, "capacity": sizes}
    shared = bool(row.get("allowMultipleAllocations"))
    return Device(driver, pool, row["name"], facts, taints(row.get("taints")), shared)


def _attribute(value: Json) -> Any:
    if "version" in value:
        return version(value["version"])
    return next(iter(value.values()), None)
