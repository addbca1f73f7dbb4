"""Builders of the domain's values and of API objects, so that a test names only what it is about.

Values (`make_pod`, `make_node`, `make_gang`) are what gangs/ works with; objects (`pod_object`,
`node_object`) are what the API server sends.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gangs import contract
from gangs.muster import Muster, muster
from gangs.nodes import Node, Shape, Taint
from gangs.packing import Candidate
from gangs.pods import Demand, Owner, Pod
from gangs.room import Room

Json = dict[str, Any]

GIB: Final = 2**30
CLIQUE: Final = contract.NODE_CLIQUE
LEVEL: Final = (CLIQUE,)
FOREIGN_GATE: Final = "grove.io/podgang-pending-creation"
FOUR_GPUS: Final = Shape({contract.GPU: 4, "pods": 1})
KEY: Final = ("default", "llm")


def make_shape(gpus: int = 4, **rest: Any) -> Shape:
    """A shape that asks for that many GPUs."""
    return Shape({contract.GPU: gpus, "pods": 1} if gpus else {"pods": 1}, **rest)


def make_node(
    name: str,
    clique: str = "",
    gpus: int = 4,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    cordoned: bool = False,
    ready: bool = True,
) -> Node:
    """A node with so many GPUs and 110 Pod places, in that clique ("" for none)."""
    placed = {CLIQUE: clique} if clique else {}
    return Node(
        name=name,
        labels={contract.NODE_HOSTNAME: name, **placed, **(labels or {})},
        allocatable={contract.GPU: gpus, "cpu": 64_000, "memory": 512 * GIB, "pods": 110},
        taints=tuple(taints),
        cordoned=cordoned,
        ready=ready,
    )


def make_room(cliques: Mapping[str, int], gpus: int = 4) -> Room:
    """Cliques by name with so many nodes each: a0, a1, ... in clique "a"."""
    room = Room()
    for clique, nodes in cliques.items():
        for number in range(nodes):
            room.put_node(make_node(f"{clique}{number}", clique, gpus))
    return room


def candidates(number: int, shape: Shape = FOUR_GPUS) -> tuple[Candidate, ...]:
    """Members m0, m1, ... of one shape."""
    return tuple(Candidate(f"m{i}", shape) for i in range(number))


def make_pod(
    name: str = "llm-0",
    *,
    gang: str = KEY[1],
    floor: int | None = None,
    size: int | None = None,
    required: tuple[str, ...] = (),
    demand: Demand | None = None,
    shape: Shape = FOUR_GPUS,
    gated: bool = True,
    uid: str = "",
    scheduler: str = contract.SCHEDULER_NAME,
    **rest: Any,
) -> Pod:
    """A Pod; by default an unbound member of default/llm which our own gate holds. Its UID is `u-NAME`."""
    return Pod(
        uid=uid or f"u-{name}",
        namespace=rest.pop("namespace", KEY[0]),
        name=name,
        shape=shape,
        gang=gang,
        scheduler=scheduler,
        gates=rest.pop("gates", (contract.GATE,) if gated else ()),
        demand=demand or Demand(min_member=floor, size=size, required=required),
        **rest,
    )


def make_loose(name: str, gpus: int = 4, **rest: Any) -> Pod:
    """A Pod that belongs to no gang."""
    return make_pod(name, gang="", gated=False, shape=make_shape(gpus), **rest)


def make_members(
    number: int, floor: int | None = None, name: str = "llm", start: int = 0, **rest: Any
) -> list[Pod]:
    """Members NAME-0, NAME-1, ... of the gang default/NAME; all must board at once unless floor is given."""
    return [
        make_pod(f"{name}-{i}", **{"gang": name, "floor": number if floor is None else floor, **rest})
        for i in range(start, start + number)
    ]


def make_gang(pods: Iterable[Pod], live_size: int | None = None) -> Muster:
    """The muster of these Pods, at least one of which is live."""
    found = muster(KEY, pods, live_size)
    assert found is not None
    return found


def make_owner(name: str = "llm", kind: str = "StatefulSet") -> Owner:
    """A controller; its UID is `u-KIND-NAME`."""
    return Owner("batch/v1" if kind == "Job" else "apps/v1", kind, name, f"u-{kind}-{name}")


def pod_object(
    name: str = "llm-0",
    *,
    uid: str = "",
    gang: str = KEY[1],
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    gpus: int = 4,
) -> Json:
    """A core/v1 Pod as the API server sends it."""
    resources = {"limits": {contract.GPU: str(gpus)}, "requests": {contract.GPU: str(gpus)}} if gpus else {}
    return {
        "metadata": {
            "name": name,
            "namespace": KEY[0],
            "uid": uid or f"u-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {contract.LABEL_GANG: gang} if gang else {},
            "annotations": dict(annotations or {}),
            **(meta or {}),
        },
        "spec": {
            "schedulerName": contract.SCHEDULER_NAME,
            "containers": [{"name": "main", "resources": resources}],
            **(spec or {}),
        },
        "status": {"phase": "Pending", **(status or {})},
    }


def node_object(name: str, clique: str = "a", *, uid: str = "", spec: Json | None = None) -> Json:
    """A core/v1 Node with four GPUs."""
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"u-{name}",
            "resourceVersion": "1",
            "labels": {CLIQUE: clique},
        },
        "spec": spec or {},
        "status": {
            "allocatable": {contract.GPU: "4", "cpu": "64", "memory": "512Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
