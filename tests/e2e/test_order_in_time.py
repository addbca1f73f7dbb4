"""A stream of small gangs does not starve one that needs a whole clique (rule 14), on the real control plane.

Three of the four cliques are taken. In the last, gangs of two run for six seconds each, and more of them than
fit are always waiting, so that a node which comes free is taken at once. Then a gang of all 18 nodes comes.
The negative control: where no domain is kept for the head of the queue it never boards.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from allaboard.local.cluster import Cluster
from e2e.kube import Kube, until
from e2e.pods import Json, member
from e2e.stage import CLIQUE_NODES, Stage
from tests.e2e.conftest import playing

pytestmark = pytest.mark.cluster

_SMALL, _BIG = "stream", "big"
_RUNS_FOR: Final = 6.0  # seconds that a small gang is bound
_QUEUED: Final = 6  # small gangs that wait at any time
# Counted in gangs, not in seconds, since machines differ: those that run and those that wait when the big one
# comes may board and end before it, and as many again that come within the same second, as ages go.
_AHEAD: Final = CLIQUE_NODES // 2 + 2 * _QUEUED
_STARVED: Final = 2 * _AHEAD


class Stream:
    """Small gangs that come, run and go."""

    def __init__(self, kube: Kube) -> None:
        self.gone = 0
        self.over = False
        self._kube = kube
        self._made = 0
        self._bound_at: dict[str, float] = {}

    async def run(self) -> None:
        """Until it is over: fill the queue up, and end those that have run for long enough."""
        while not self.over:
            pods = await self._kube.items("pods", _SMALL)
            waiting = {_gang(p) for p in pods if not p["spec"].get("nodeName")}
            for name in {_gang(p) for p in pods} - waiting:
                self._bound_at.setdefault(name, time.monotonic())
            await self._add(_QUEUED - len(waiting))
            await self._end([n for n, at in self._bound_at.items() if time.monotonic() - at >= _RUNS_FOR])
            await asyncio.sleep(0.3)

    async def flows(self) -> bool:
        """Whether the whole clique has turned over once."""
        return self.gone >= CLIQUE_NODES // 2

    async def _add(self, number: int) -> None:
        names = [f"small-{self._made + i:03}" for i in range(number)]
        self._made += len(names)
        if names:
            await self._kube.apply(_SMALL, [member(f"{n}-{i}", n, 2) for n in names for i in range(2)])

    async def _end(self, names: Sequence[str]) -> None:
        for name in names:
            del self._bound_at[name]
        self.gone += len(names)
        if names:
            pods = [f"pod/{name}-{i}" for name in names for i in range(2)]
            await self._kube.run("-n", _SMALL, "delete", *pods, "--wait=false")


def _gang(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["allaboard.dev/gang"])


@asynccontextmanager
async def _streaming(stage: Stage) -> AsyncIterator[Stream]:
    """The stream, once it takes the whole clique and turns over."""
    for name in (_SMALL, _BIG):
        await stage.kube.namespace(name)
    await stage.occupy("others", [node for rack in stage.nodes[1:] for node in rack])
    stream = Stream(stage.kube)
    task = asyncio.create_task(stream.run())
    try:
        await until(stream.flows, "the stream turns over", seconds=40)
        yield stream
    finally:
        stream.over = True
        await task
        await stage.kube.clear(_SMALL, _BIG, "others")


async def _passed_by(kube: Kube, stream: Stream, most: int) -> int:
    """How many small gangs ended before the big one was bound; it is waited for no longer than for most."""
    before = stream.gone
    await kube.apply(_BIG, [member(f"rank-{i}", "all", CLIQUE_NODES) for i in range(CLIQUE_NODES)])
    while stream.gone - before <= most:
        await asyncio.sleep(0.5)
        if all(pod["spec"].get("nodeName") for pod in await kube.items("pods", _BIG)):
            break
    return stream.gone - before


@pytest.mark.timeout(300)
async def test_a_gang_of_a_whole_clique_boards_under_a_steady_stream_of_small_ones(cluster: Cluster) -> None:
    async with playing(cluster) as (stage, observer), _streaming(stage) as stream:
        assert await _passed_by(stage.kube, stream, _STARVED) <= _AHEAD
        assert not observer.checker.violations


@pytest.mark.timeout(300)
async def test_where_nothing_is_kept_for_the_head_of_the_queue_it_starves(cluster: Cluster) -> None:
    async with playing(cluster, ["--unprotected=order"]) as (stage, _), _streaming(stage) as stream:
        assert await _passed_by(stage.kube, stream, _STARVED) > _STARVED
