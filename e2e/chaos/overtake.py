"""A Pod without a gang that overtakes: urgent, and aimed at a node that is promised to a gang.

kube-scheduler looks only at nominations of the same or a higher priority, so for this Pod the node is free;
nothing but the guard knows whose it is. The scheduler sleeps meanwhile: a member that it has already placed
would be counted, and there would be nothing to overtake.
"""

import signal
from typing import Any, Final

from e2e.chaos.ground import Ground
from e2e.pods import HOSTNAME, pod, priority_class

Json = dict[str, Any]

_SCHEDULER: Final = "kube-scheduler"
_URGENT: Final = "chaos-urgent"
_STAYS_SECONDS: Final = 6.0


async def overtake(ground: Ground) -> str | None:
    """kube-scheduler sleeps until a node is promised and an urgent Pod aims at it."""
    name = f"urgent-{ground.rng.randrange(10**9)}"
    await ground.kube.apply("", priority_class(_URGENT))
    if not ground.send(_SCHEDULER, signal.SIGSTOP):
        return None
    try:
        node = await ground.promise()
        if not node:
            return None
        await ground.create(_urgent(name, node))
    finally:
        ground.send(_SCHEDULER, signal.SIGCONT)
    ground.heal_later(f"pod {name}", _STAYS_SECONDS, lambda: ground.delete("pod", name))
    return f"urgent Pod {name} would overtake a gang on {node}"


def _urgent(name: str, node: str) -> Json:
    aim = {HOSTNAME: node}
    return pod(name, schedulerName="allaboard", priorityClassName=_URGENT, nodeSelector=aim)
