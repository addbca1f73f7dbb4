"""Host ports as resources that every node has, so that room is counted for them as for anything else.

kube-scheduler's NodePorts filter (framework.HostPortInfo): a port is taken per protocol and address, and
0.0.0.0 collides with every address. As numbers:

    hostPort:TCP:80            a node has ALL of it; 0.0.0.0 asks for ALL, one address for 1
    hostPort:TCP:80:10.0.0.1   a node has 1 of it; only that address asks for it
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

ALL: Final = 1_000_000
_PREFIX: Final = "hostPort:"
_ANY: Final = "0.0.0.0"


def host_ports(spec: Mapping[str, Any]) -> dict[str, int]:
    """What the Pod's host ports ask for; of init containers only those that stay."""
    asked: dict[str, int] = {}
    for row in _rows(spec):
        port = f"{_PREFIX}{row.get('protocol') or 'TCP'}:{row['hostPort']}"
        address = row.get("hostIP") or _ANY
        if address == _ANY:
            asked[port] = ALL
        else:
            asked.setdefault(port, 1)
            asked[f"{port}:{address}"] = 1
    return asked


def on_every_node(port: str) -> int:
    """How much every node has of such a resource."""
    return ALL if port.count(":") == 2 else 1


def port_of(resource: str) -> str:
    """The number of the port that the resource stands for, "" where it is none."""
    return resource.split(":")[2] if resource.startswith(_PREFIX) else ""


def _rows(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    stay = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*stay, *(spec.get("containers") or ())):
        yield from (row for row in container.get("ports") or () if row.get("hostPort"))
