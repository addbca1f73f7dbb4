"""Devices of Dynamic Resource Allocation (resource.k8s.io/v1) as room on nodes.

A claim asks for so many devices of a class that meet some selectors. Every such kind of device is a
resource like any other, named after the class, of which a node has as many as it has matching devices.
A device that is allocated is gone for every kind that it matches. So counted, an NVLink channel (one a
node) or GPUs behind claims are planned exactly as extended resources are:

    Ask("compute-domain-default-channel.nvidia.com") ──► "device:compute-domain-…": 1 on each node

Exact where kinds of devices are the same or share no device. Where they overlap, a device that is promised
but not allocated yet is missing only for the kind that it was asked by; kube-scheduler has the last word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

from gangs.device_selectors import Facts, selector
from gangs.nodes import Taint, Toleration

PREFIX: Final = "device:"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"  # KEP-5004: every class as an extended resource
SHARED: Final = 1_000_000  # how many claims a device takes that allows multiple allocations
_BLOCKING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Ask:
    """One kind of device: a class, and what a claim's request asks beyond it (all of it must hold)."""

    device_class: str
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @cached_property
    def resource(self) -> str:
        """Its name among a Pod's requests and a node's resources."""
        if not self.selectors and not self.tolerations:
            return PREFIX + self.device_class
        digest = sha256(repr((self.selectors, self.tolerations)).encode()).hexdigest()
        return f"{PREFIX}{self.device_class}#{digest[:8]}"


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. extended: the extended resource that it also serves, "" for none (KEP-5004)."""

    name: str
    selectors: tuple[str, ...] = ()
    extended: str = ""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Extended resources by which Pods may ask for its devices."""
        return (IMPLICIT + self.name, *((self.extended,) if self.extended else ()))


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a ResourceSlice. shared: whether it allows multiple allocations."""

    driver: str
    pool: str
    name: str
    facts: Facts
    taints: tuple[Taint, ...] = ()
    shared: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What an allocation calls it."""
        return self.driver, self.pool, self.name


def matches(ask: Ask, device_class: DeviceClass, device: Device) -> bool:
    """Whether the device is of that kind. Raises UnsupportedExpressionError."""
    for taint in device.taints:
        if taint.effect in _BLOCKING and not any(t.tolerates(taint) for t in ask.tolerations):
            return False
    return all(selector(e).matches(device.facts) for e in (*device_class.selectors, *ask.selectors))


def class_of(resource: str) -> str:
    """The device class behind a resource's name, "" where it is no device."""
    return resource.removeprefix(PREFIX).split("#")[0] if resource.startswith(PREFIX) else ""


def capacity(
    devices: Iterable[Device], asks: Iterable[Ask], classes: Mapping[str, DeviceClass]
) -> dict[str, int]:
    """How many devices of each kind these are, kinds without any left out. The class must exist.

    Raises UnsupportedExpressionError.
    """
    known = list(devices)
    counts = {}
    for ask in asks:
        found = [d for d in known if matches(ask, classes[ask.device_class], d)]
        if found:
            counts[ask.resource] = sum(SHARED if d.shared else 1 for d in found)
    return counts


def equipped(
    allocatable: Mapping[str, int], counts: Mapping[str, int], classes: Iterable[DeviceClass]
) -> dict[str, int]:
    """What a node offers with these counts of devices (capacity()) beside what its kubelet lists.

    An extended resource that the kubelet lists is the device plug-in's, and never summed with devices.
    """
    offered = {**allocatable, **counts}
    for row in classes:
        number = counts.get(Ask(row.name).resource, 0)
        for alias in row.aliases:
            if number and not allocatable.get(alias):
                offered[alias] = number
    return offered
