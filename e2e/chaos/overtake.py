"""A Pod without a gang that overtakes: urgent, and aimed at a node that is promised to a gang.

kube-scheduler looks only at nominations of the same or a higher priority, so for this Pod the node is free;
nothing but the guard knows whose it is. The scheduler sleeps meanwhile: a member that it has already placed
would be counted, and there would be nothing to overtake.
"""

import asyncio
import signal
from typing import Any, Final

from e2e.chaos.ground import Ground
from e2e.checker import is_live, promised
from e2e.stage import GPUS

Json = dict[str, Any]

_SCHEDULER: Final = "kube-scheduler"
_URGENT: Final = "chaos-urgent"
_LOOKS, _LOOK_SECONDS = 80, 0.05
_STAYS_SECONDS: Final = 6.0


async def overtake(ground: Ground) -> str | None:
    """kube-scheduler sleeps until a node is promised and an urgent Pod aims at it."""
    name = f"urgent-{ground.rng.randrange(10**9)}"
    await ground.kube.apply("", _priority_class())
    if not ground.send(_SCHEDULER, signal.SIGSTOP):
        return None
    try:
        node = await _promise(ground)
        if not node:
            return None
        await ground.create(_urgent(name, node))
    finally:
        ground.send(_SCHEDULER, signal.SIGCONT)
    ground.heal_later(f"pod {name}", _STAYS_SECONDS, lambda: ground.delete("pod", name))
    return f"urgent Pod {name} would overtake a gang on {node}"


async def _promise(ground: Ground) -> str:
    """A node that is promised to a member which isn't bound; waits a little for one."""
    for _ in range(_LOOKS):
        live = {p["metadata"]["uid"]: p for p in ground.pods if is_live(p)}
        if nodes := sorted(promised(live)):
            return ground.rng.choice(nodes)
        await asyncio.sleep(_LOOK_SECONDS)
    return ""


def _urgent(name: str, node: str) -> Json:
    resources = {"limits": {"nvidia.com/gpu": str(GPUS)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "allaboard",
            "priorityClassName": _URGENT,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "registry.invalid/x:1", "resources": resources}],
        },
    }


def _priority_class() -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _URGENT},
        "value": 1000,
        "preemptionPolicy": "Never",  # it takes what is free, and evicts nobody
    }
