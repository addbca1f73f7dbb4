"""A gang that stands at the barrier for seconds: the volume of one member comes late.

Whatever else goes wrong meanwhile, nobody of it may be bound before that member passes; and when the volume
is there, all must board. One at a time, as its claim has one name.
"""

import asyncio
from typing import Final

from e2e import slow
from e2e.chaos.ground import NAMESPACE, Ground, insist
from e2e.chaos.judge import Judge

_GANG: Final = "ranks"
_KEY: Final = "gang with a late volume"
_MEMBERS: Final = 4
_LATE: Final = (7.0, 12.0)  # longer than a gang may be partial unpunished
_LOOK_SECONDS: Final = 0.5
_LOOKS: Final = 180


async def late_volume(ground: Ground) -> str | None:
    """A gang comes of which one member has no volume yet."""
    judge = ground.observer.checker
    if _KEY in ground.healing or not isinstance(judge, Judge):
        return None
    judge.aboard.discard(f"{NAMESPACE}/{_GANG}")
    seconds = ground.rng.uniform(*_LATE)
    await ground.kube.apply(NAMESPACE, slow.gang(_MEMBERS))
    ground.healing[_KEY] = asyncio.create_task(_serve(ground, judge, seconds))
    return f"a volume of gang {_GANG} is {seconds:.1f} s late"


async def _serve(ground: Ground, judge: Judge, seconds: float) -> None:
    """Bring the volume, wait until the gang was whole, take it away."""
    try:
        await asyncio.sleep(seconds)
        await insist(lambda: slow.provide(ground.kube, NAMESPACE))
        # A gang that never boards is the judge's business: it holds it for stuck.
        await _aboard(judge)
        await insist(lambda: _take_away(ground))
    finally:
        del ground.healing[_KEY]


async def _aboard(judge: Judge) -> None:
    for _ in range(_LOOKS):
        if f"{NAMESPACE}/{_GANG}" in judge.aboard:
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _take_away(ground: Ground) -> None:
    await ground.delete("pod", *(f"rank-{i}" for i in range(_MEMBERS)))
    await slow.clear(ground.kube, NAMESPACE)
