"""Gangs that come and go: StatefulSets with KAI's annotations, and bare Pods with our own."""

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from e2e.chaos.ground import NAMESPACE, Ground
from e2e.chaos.judge import Judge
from e2e.checker import is_finished
from e2e.kube import KubectlError
from e2e.pods import Json, member
from e2e.scene import statefulset

_SIZES: Final = (1, 2, 2, 3, 4, 4, 6, 9, 18)
_GANG: Final = "chaos/gang"  # by which Pods without a controller are found
_BARE: Final = 0.4  # of the gangs are Pods without a controller
_LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class Running:
    """A gang that is here. bare: Pods without a controller; ends: when it has run to its end, 0: unknown."""

    size: int
    bare: bool
    ends: float = 0.0


class Workload:
    """Keeps so many gangs in the cluster; started and done count them."""

    def __init__(self, ground: Ground, judge: Judge, rng: random.Random, at_once: int) -> None:
        self.started = 0
        self.done = 0
        self.gangs: dict[str, Running] = {}
        self._ground = ground
        self._judge = judge
        self._rng = rng
        self._at_once = at_once

    async def run(self) -> None:
        """Start gangs, tend them and end them until cancelled."""
        while True:
            if len(self.gangs) < self._at_once:
                self.started += 1
                size, bare = self._rng.choice(_SIZES), self._rng.random() < _BARE
                self.gangs[f"gang-{self.started}"] = Running(size, bare)
            await self._look_after()
            await asyncio.sleep(_LOOK_SECONDS)

    async def settle(self, seconds: float) -> list[str]:
        """Start no more, end those that are aboard, until all were; who still waits after so long."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while self.gangs and clock() < end:
            await self._look_after()
            await asyncio.sleep(_LOOK_SECONDS)
        return sorted(self.gangs)

    async def _look_after(self) -> None:
        for name, gang in list(self.gangs.items()):
            try:
                await self._tend(name, gang)
                await self._end_if_over(name, gang)
            except KubectlError:
                return  # the API server is away; the next look goes on

    async def _tend(self, name: str, gang: Running) -> None:
        """Make what is missing of it, as a controller does."""
        if not gang.bare:
            sets = self._ground.observer.snapshot().statefulsets.values()
            if not any(s["metadata"]["name"] == name for s in sets):
                await self._ground.kube.apply(NAMESPACE, statefulset(name, gang.size))
            return
        known = {p["metadata"]["name"]: p for p in self._ground.pods}
        wanted = [f"{name}-{i}" for i in range(gang.size)]
        for pod in wanted:
            if pod in known and is_finished(known[pod]):
                await self._ground.delete("pod", pod)
        missing = [pod for pod in wanted if pod not in known]
        if missing:
            await self._ground.kube.apply(NAMESPACE, [_bare(name, pod, gang.size) for pod in missing])

    async def _end_if_over(self, name: str, gang: Running) -> None:
        """A gang runs for some seconds from when it was first whole, and ends only while it is whole."""
        now, full = asyncio.get_running_loop().time(), f"{NAMESPACE}/{name}"
        if full not in self._judge.aboard or full in self._judge.waiting:
            return
        gang.ends = gang.ends or now + self._rng.uniform(3.0, 15.0)
        if now < gang.ends:
            return
        await self._ground.delete("statefulset", name)
        await self._ground.delete("pod", "-l", f"{_GANG}={name}")
        del self.gangs[name]
        self.done += 1


def _bare(gang: str, name: str, size: int) -> Json:
    return member(name, gang, size, labels={_GANG: gang})
