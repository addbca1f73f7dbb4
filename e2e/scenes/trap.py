"""Scene 2: the scene of the design. Clique A has 3 free nodes, B is free (18 in a rack); the gang needs 4.

The same manifest runs twice: on kube-scheduler alone, in a namespace that our webhook ignores, then with
Allaboard. It carries the Pod affinity that authors write by hand today, and KAI's annotations.

That the stock scheduler starts in A is not staged by the manifest: agents take CPU on B's nodes, so its
default scoring (least allocated) prefers A's. Any other reason to prefer A would do.
"""

from typing import Any, Final

from e2e.kube import until
from e2e.scene import Play, spoken, statefulset

_STOCK: Final = "scene-stock"
_OURS: Final = "scene-trap"
_MEMBERS: Final = 4
_BY_HAND: Final = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "llm"}}, "topologyKey": "nvidia.com/gpu.clique"}
        ]
    }
}


async def whole_gang_in_the_free_clique(play: Play) -> None:
    """4 nodes in one clique: A has 3 free, B all; kube-scheduler alone gets stuck"""
    kube, (a, b, *full) = play.stage.kube, play.stage.nodes
    await kube.namespace(_STOCK, {"allaboard.dev/webhook": "ignore"})
    await kube.namespace(_OURS)
    half = await _half_of_the_cpu(play, b[0])
    await play.stage.occupy("others", [*a[3:], *(node for rack in full for node in rack)])
    await kube.apply("others", [_agent(node, half) for node in b])
    gang = statefulset("llm", _MEMBERS, affinity=_BY_HAND)
    await kube.apply(_STOCK, gang)
    await _stuck(play)
    await kube.clear(_STOCK)
    await kube.apply(_OURS, gang)
    await play.bound(_OURS, _MEMBERS)
    play.tell(f"the same manifest with Allaboard: {spoken(play.where(_OURS))}")
    assert play.where(_OURS) == {"c0001": _MEMBERS}
    play.clean(_OURS)
    await kube.clear(_OURS, "others")


async def _stuck(play: Play) -> None:
    """The stock scheduler leaves the gang in parts, and the checker calls it what it is."""

    async def complained() -> bool:
        return any(v.promise == "partial" for v in play.observer.checker.of(_STOCK))

    await until(complained, "the checker reports the stock scheduler's partial gang")
    where = play.where(_STOCK)
    play.tell(f"kube-scheduler alone: {spoken(where)}, the rest Pending for good; they hold 12 GPUs and wait")
    assert where == {"c0000": 3}


async def _half_of_the_cpu(play: Play, node: str) -> str:
    [found] = [n for n in await play.stage.kube.items("nodes") if n["metadata"]["name"] == node]
    return f"{int(found['status']['allocatable']['cpu']) * 500}m"


def _agent(node: str, cpu: str) -> dict[str, Any]:
    container = {
        "name": "agent",
        "image": "registry.invalid/agent:1",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"agent-{node}"},
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0},
    }
