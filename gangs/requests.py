"""What a Pod asks of a node, computed as kube-scheduler computes it.

The formula is that of component-helpers' PodRequests (v1.36): containers add up; an init container
needs its own request beside the restartable ones started before it; restartable init containers stay
and count with the containers; Pod-level cpu, memory and hugepages replace the sum; overhead comes on
top. Each Pod also takes one of the node's Pod places.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gangs.ports import host_ports
from gangs.quantities import amount

Requests = dict[str, int]

PODS: Final = "pods"
_POD_LEVEL: Final = ("cpu", "memory")
_HUGEPAGES: Final = "hugepages-"


def pod_requests(spec: Mapping[str, Any]) -> Requests:
    """Requests of a Pod spec by resource name; cpu in millicores, memory in bytes, the rest in units.

    Zero requests are left out; `pods` is always 1; host ports are counted by gangs/ports.py. Raises
    QuantityError.
    """
    total = _containers(spec)
    for name, value in _requests(spec).items():
        if name in _POD_LEVEL or name.startswith(_HUGEPAGES):
            total[name] = value
    _add(total, _amounts(spec.get("overhead") or {}))
    asked = {name: value for name, value in total.items() if value > 0}
    asked[PODS] = 1
    return asked | host_ports(spec)


def _containers(spec: Mapping[str, Any]) -> Requests:
    running = _sum(_requests(c) for c in spec.get("containers") or ())
    restartable: Requests = {}
    peak: Requests = {}
    for container in spec.get("initContainers") or ():
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(restartable, asked)
            _add(running, asked)
            _raise(peak, restartable)
        else:
            _raise(peak, _sum((restartable, asked)))
    _raise(running, peak)
    return running


def _requests(holder: Mapping[str, Any]) -> Requests:
    resources = holder.get("resources") or {}
    # The API server copies limits into missing requests; objects seen before defaulting need it here.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(quantities: Mapping[str, Any]) -> Requests:
    return {name: amount(name, value) for name, value in quantities.items()}


def _sum(parts: Iterable[Requests]) -> Requests:
    total: Requests = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: Requests, part: Mapping[str, int]) -> None:
    for name, value in part.items():
        total[name] = total.get(name, 0) + value


def _raise(total: Requests, floor: Mapping[str, int]) -> None:
    for name, value in floor.items():
        if value > total.get(name, 0):
            total[name] = value
