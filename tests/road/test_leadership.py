"""Two extenders, each with a kube-scheduler of its own, and one Lease: never two opinions on one gang."""

import asyncio
import json
import re
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from allaboard.local.cluster import Cluster
from e2e import slow
from e2e.kube import until
from e2e.pods import member
from e2e.proxy import Call, Fault, proxied
from e2e.scene import statefulset
from tests.road.leaders import NAMESPACE, nominated, pair, playing, watched

pytestmark = pytest.mark.cluster

_BINDING: Final = re.compile(r"/pods/([^/]+)/binding$")
_UNAVAILABLE: Final = 503


async def test_a_leader_that_stops_hands_its_gangs_over(cluster: Cluster, tmp_path: Path) -> None:
    async with playing(cluster, tmp_path) as (play, first, second):
        kube = play.stage.kube
        await kube.apply(NAMESPACE, slow.gang(4))
        await slow.at_the_barrier(kube, NAMESPACE)
        assert not await second.leads()
        first.extender.process.send_signal(signal.SIGTERM)
        await until(second.leads, "the second leads", seconds=5)
        await slow.provide(kube, NAMESPACE)
        await play.bound(NAMESPACE, 4, seconds=60)
        play.clean(NAMESPACE)
        await slow.clear(kube, NAMESPACE)


async def test_a_leader_that_was_only_asleep_does_no_harm(cluster: Cluster, tmp_path: Path) -> None:
    async with playing(cluster, tmp_path) as (play, first, second):
        kube = play.stage.kube
        await kube.apply(NAMESPACE, slow.gang(4))
        await slow.at_the_barrier(kube, NAMESPACE)
        first.extender.process.send_signal(signal.SIGSTOP)
        await until(second.leads, "the second leads", seconds=25)
        taken = await nominated(kube)
        try:
            await kube.run("cordon", *taken)  # the second has to plan anew, elsewhere
            await slow.provide(kube, NAMESPACE)  # the last member's call waits for the first to wake up
            first.extender.process.send_signal(signal.SIGCONT)
            await kube.apply(NAMESPACE, statefulset("more", 3))
            await play.bound(NAMESPACE, 7, seconds=60)
            play.clean(NAMESPACE)
            assert not await first.leads()
        finally:
            first.extender.process.send_signal(signal.SIGCONT)
            await kube.run("uncordon", *taken)
            await slow.clear(kube, NAMESPACE)


class _SlowNetwork(Fault):
    """Bindings reach the API server when they are let go; Leases don't while it is cut.

    held: the node of each Pod whose Binding is on its way. answered: the API server's status for each.
    """

    def __init__(self) -> None:
        self.cut = False
        self.held: dict[str, str] = {}
        self.answered: dict[str, int] = {}
        self._mended = False
        self._gates: dict[str, asyncio.Event] = {}

    async def before(self, call: Call) -> int:
        if self.cut and "/leases" in call.path:
            return _UNAVAILABLE
        if found := _BINDING.search(call.path):
            self.held[found[1]] = json.loads(call.body)["target"]["name"]
            await self._gate(found[1]).wait()
        return 0

    async def after(self, call: Call, status: int) -> None:
        if found := _BINDING.search(call.path):
            self.answered.setdefault(found[1], status)

    def let_go(self, *pods: str) -> None:
        for pod in pods:
            self._gate(pod).set()

    def mend(self) -> None:
        """All that was held arrives, and whatever comes."""
        self.cut, self._mended = False, True
        self.let_go(*self._gates)

    def _gate(self, pod: str) -> asyncio.Event:
        gate = self._gates.setdefault(pod, asyncio.Event())
        if self._mended:
            gate.set()
        return gate


@pytest.mark.parametrize(
    ("options", "broken"), [((), set()), (("--unprotected=preconditions",), {"spread"})], ids=["on", "off"]
)
async def test_bindings_of_a_former_leader_that_come_late_are_refused_by_their_preconditions(
    cluster: Cluster, tmp_path: Path, options: tuple[str, ...], broken: set[str]
) -> None:
    """Two of the first leader's Bindings arrive when the second has planned the gang anew, elsewhere."""
    everyone = [f"rank-{i}" for i in range(4)]
    old, new = _SlowNetwork(), _SlowNetwork()
    async with AsyncExitStack() as stack:
        play = await stack.enter_async_context(watched(cluster, tmp_path))
        kube, paths = play.stage.kube, []
        for name, network in (("old", old), ("new", new)):
            (tmp_path / name).mkdir()
            proxy = proxied(cluster.kubeconfig, tmp_path / name, network)
            paths.append((await stack.enter_async_context(proxy))[1])
        first = await stack.enter_async_context(pair(tmp_path, paths[0], "first", *options))
        await until(first.leads, "the first leads")
        second = await stack.enter_async_context(pair(tmp_path, paths[1], "second"))
        await kube.apply(NAMESPACE, [member(name, "ranks", 4) for name in everyone])
        await _until_held(old, 4)
        home = next(rack for rack in play.stage.nodes if old.held["rank-0"] in rack)
        try:
            await kube.run("cordon", *home)  # the second has to plan anew, in another clique
            old.cut = True
            await until(second.leads, "the second leads", seconds=30)
            await _until_held(new, 4)
            old.let_go(*everyone[:2])
            await _until_answered(old, 2)
            new.let_go(*everyone)
            await play.bound(NAMESPACE, 4, seconds=40)
            old.let_go(*everyone)
            found = {v.promise for v in play.observer.checker.of(NAMESPACE)}
            assert (found, set(old.answered.values()) & {201}) == (broken, {201} if broken else set())
        finally:
            old.mend()
            new.mend()
            await kube.run("uncordon", *home)
            await kube.clear(NAMESPACE)


async def _until_held(network: _SlowNetwork, number: int) -> None:
    async def held() -> bool:
        return len(network.held) == number

    await until(held, f"{number} Bindings are on their way", seconds=40)


async def _until_answered(network: _SlowNetwork, number: int) -> None:
    async def answered() -> bool:
        return len(network.answered) >= number

    await until(answered, f"{number} Bindings are answered")
