"""Scene 4: two gangs that each need a whole clique, one clique is free: never two halves."""

from typing import Final

from e2e.scene import Play, spoken, statefulset

_FIRST: Final = "scene-first"
_SECOND: Final = "scene-second"


async def two_gangs_one_clique(play: Play) -> None:
    """Two gangs, one free clique: one boards, the other waits whole and boards after it"""
    kube, (free, *full) = play.stage.kube, play.stage.nodes
    members = len(free)
    await kube.namespace(_FIRST)
    await kube.namespace(_SECOND)
    await play.stage.occupy("others", [node for rack in full for node in rack])
    await kube.apply(_FIRST, statefulset("llm", members))
    await play.bound(_FIRST, members)
    await kube.apply(_SECOND, statefulset("llm", members))
    message = await play.waiting(_SECOND, "GangWaiting", "llm-0")
    play.tell(f"first: {spoken(play.where(_FIRST))}; second: {spoken(play.where(_SECOND))}: {message}")
    assert (play.where(_FIRST), play.where(_SECOND)) == ({"c0000": members}, {})
    await kube.clear(_FIRST)
    await play.bound(_SECOND, members)
    play.tell(f"the first is deleted; second: {spoken(play.where(_SECOND))}")
    assert play.where(_SECOND) == {"c0000": members}
    play.clean(_FIRST)
    play.clean(_SECOND)
    await kube.clear(_SECOND, "others")
