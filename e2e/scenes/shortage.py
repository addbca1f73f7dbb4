"""Scene 3: a gang too big for what is free waits, says what is missing, and boards once it is there.

It needs a whole clique, of which a sixth is taken.
"""

from typing import Final

from e2e.scene import Play, spoken, statefulset

_NAMESPACE: Final = "scene-shortage"


async def too_big_says_what_is_missing(play: Play) -> None:
    """All nodes of one clique, some are taken: nothing is bound, the event says why; then room is made"""
    kube, (near, *full) = play.stage.kube, play.stage.nodes
    members, taken = len(near), near[: max(1, len(near) // 6)]
    await kube.namespace(_NAMESPACE)
    await play.stage.occupy("others", [*taken, *(node for rack in full for node in rack[: len(rack) // 2])])
    await kube.apply(_NAMESPACE, statefulset("llm", members))
    message = await play.waiting(_NAMESPACE, "GangWaiting", "llm-0")
    play.tell(f"bound: {spoken(play.where(_NAMESPACE))}; the Pod's event says: {message}")
    assert play.where(_NAMESPACE) == {}
    for fact in (play.stage.cliques[0], f"has {members - len(taken)}", f"{members} free nodes"):
        assert fact in message, f'"{fact}" is not in: {message}'
    freed = [f"busy-{node}" for node in taken]
    await kube.run("-n", "others", "delete", "pods", *freed, "--grace-period=0", "--force")
    await play.bound(_NAMESPACE, members)
    play.tell(f"what was taken is freed; bound: {spoken(play.where(_NAMESPACE))}")
    assert play.where(_NAMESPACE) == {"c0000": members}
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE, "others")
