"""Scene 3: a gang too big for what is free waits, says what is missing, and boards once it is there."""

from typing import Final

from e2e.scene import Play, spoken, statefulset

_NAMESPACE: Final = "scene-shortage"
_MEMBERS: Final = 18


async def too_big_says_what_is_missing(play: Play) -> None:
    """18 nodes in one clique, 15 free: nothing is bound, the event says why; then room is made"""
    kube, (near, *full) = play.stage.kube, play.stage.nodes
    await kube.namespace(_NAMESPACE)
    await play.stage.occupy("others", [*near[:3], *(node for rack in full for node in rack[:9])])
    await kube.apply(_NAMESPACE, statefulset("llm", _MEMBERS))
    message = await play.waiting(_NAMESPACE, "GangWaiting", "llm-0")
    play.tell(f"bound: {spoken(play.where(_NAMESPACE))}; the Pod's event says: {message}")
    assert play.where(_NAMESPACE) == {}
    for fact in (play.stage.cliques[0], "has 15", "18 free nodes"):
        assert fact in message, f'"{fact}" is not in: {message}'
    freed = [f"busy-{node}" for node in near[:3]]
    await kube.run("-n", "others", "delete", "pods", *freed, "--grace-period=0", "--force")
    await play.bound(_NAMESPACE, _MEMBERS)
    play.tell(f"3 nodes were freed; bound: {spoken(play.where(_NAMESPACE))}")
    assert play.where(_NAMESPACE) == {"c0000": _MEMBERS}
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE, "others")
