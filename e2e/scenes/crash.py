"""Scene 6: the extender is killed while members stand at the barrier.

One member waits for its volume (e2e/slow.py), so the others are at the barrier for as long as we like.
"""

import os
import signal
from typing import Final

from e2e import slow
from e2e.kube import until
from e2e.scene import Play, spoken

_NAMESPACE: Final = "scene-crash"
_MEMBERS: Final = 8


async def extender_killed_at_the_barrier(play: Play) -> None:
    """The extender is killed (-9) while 7 of 8 stand at the barrier: never a partial gang, all board"""
    kube = play.stage.kube
    await kube.namespace(_NAMESPACE)
    await kube.apply(_NAMESPACE, slow.gang(_MEMBERS))
    await slow.at_the_barrier(kube, _NAMESPACE)
    pid = play.stage.pid("extender")
    os.kill(pid, signal.SIGKILL)
    play.tell(f"all gates are off, 7 members wait at the barrier; extender (pid {pid}) killed")
    assert play.where(_NAMESPACE) == {}
    await until(lambda: _restarted(play, pid), "the extender runs again")
    await slow.provide(kube, _NAMESPACE)
    await play.bound(_NAMESPACE, _MEMBERS, seconds=45)
    play.tell(f"the extender is back, the volume is there; bound: {spoken(play.where(_NAMESPACE))}")
    assert list(play.where(_NAMESPACE).values()) == [_MEMBERS]
    play.clean(_NAMESPACE)
    await kube.clear(_NAMESPACE)
    await slow.clear(kube, _NAMESPACE)


async def _restarted(play: Play, before: int) -> bool:
    try:
        return play.stage.pid("extender") != before
    except (OSError, RuntimeError):
        return False
