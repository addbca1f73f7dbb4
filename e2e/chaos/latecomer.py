"""A gang that stands at the barrier for seconds: the volume of one member comes late.

Whatever else goes wrong meanwhile, nobody of it may be bound before that member passes; and when the volume
is there, all must board. One at a time, as its claim has one name.
"""

import asyncio
from collections.abc import Callable
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
_SELECTED: Final = "volume.kubernetes.io/selected-node"


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
        # Late by the time that the others wait for it: how long it takes to come so far is the machine's.
        await _come_true(lambda: _waited_for(ground))
        await asyncio.sleep(seconds)
        await insist(lambda: slow.provide(ground.kube, NAMESPACE))
        # A gang that never boards is the judge's business: it holds it for stuck.
        await _come_true(lambda: f"{NAMESPACE}/{_GANG}" in judge.aboard)
        await insist(lambda: _take_away(ground))
    finally:
        del ground.healing[_KEY]


async def _come_true(holds: Callable[[], bool]) -> None:
    """Look again and again, for a bounded time."""
    for _ in range(_LOOKS):
        if holds():
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _waited_for(ground: Ground) -> bool:
    """Whether kube-scheduler has chosen a node for the claim: its Pod is past the filters, at PreBind."""
    claims = ground.observer.snapshot().claims.values()
    return any(_SELECTED in (claim["metadata"].get("annotations") or {}) for claim in claims)


async def _take_away(ground: Ground) -> None:
    await ground.delete("pod", *(f"rank-{i}" for i in range(_MEMBERS)))
    await slow.clear(ground.kube, NAMESPACE)
