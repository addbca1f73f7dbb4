"""Scene 6: the extender is killed while members stand at the barrier.

One member waits for its volume (e2e/slow.py), so the others are at the barrier for as long as we like.
"""

from typing import Final

from e2e import slow
from e2e.scene import Play, spoken

_NAMESPACE: Final = "scene-crash"
_MOST: Final = 8


async def extender_killed_at_the_barrier(play: Play) -> None:
    """The extender is killed (-9) while all but one stand at the barrier: never a partial gang, all board"""
    kube, members = play.stage.kube, min(_MOST, len(play.stage.nodes[0]))
    await kube.namespace(_NAMESPACE)
    await kube.apply(_NAMESPACE, slow.gang(members))
    await slow.at_the_barrier(kube, _NAMESPACE)
    play.tell(f"all gates are off, {members - 1} members wait at the barrier")
    killed = await play.stage.crash("extender")
    play.tell(f"killed: {killed}; it runs again")
    assert play.where(_NAMESPACE) == {}
    await slow.provide(kube, _NAMESPACE)
    await play.bound(_NAMESPACE, members, seconds=45)
    play.tell(f"the volume is there; bound: {spoken(play.where(_NAMESPACE))}")
    assert list(play.where(_NAMESPACE).values()) == [members]
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE)
    await slow.clear(kube, _NAMESPACE)
