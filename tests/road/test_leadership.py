"""Two extenders, each with a kube-scheduler of its own, and one Lease: never two opinions on one gang."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from e2e import slow
from e2e.kube import Kube, until
from e2e.observer import Observer, observed
from e2e.scene import Play, statefulset
from e2e.stage import staged
from tests.dev.running import Running, once, running

pytestmark = pytest.mark.cluster

_NAMESPACE: Final = "leaders"
_LEASE: Final = "leaders/allaboard-scheduler"
_SOON: Final = aiohttp.ClientTimeout(total=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """An extender and its kube-scheduler."""

    extender: Running
    url: str

    async def leads(self) -> bool:
        """What it says of itself."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.url}/leaderz", timeout=_SOON) as answer,
            ):
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


@asynccontextmanager
async def pair(where: Path, kubeconfig: Path, name: str) -> AsyncIterator[Pair]:
    """Run both from ready to their end."""
    folder = where / name
    common = (f"--kubeconfig={kubeconfig}", f"--state-dir={folder}", "--profiles=allaboard,kai-scheduler")
    config = once("scheduler-config", *common).stdout
    file = folder / "kube-scheduler.yaml"
    file.write_text(config)
    election = ("--leader-election=own", f"--lease={_LEASE}", f"--identity={name}")
    with running("extender", *common, *election) as extender:
        await asyncio.to_thread(extender.until_ready)
        scheduler = await asyncio.create_subprocess_exec(
            str(find("kube-scheduler")),
            f"--config={file}",
            "--secure-port=0",
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield Pair(extender, yaml.safe_load(config)["extenders"][0]["urlPrefix"])
        finally:
            scheduler.terminate()
            await scheduler.wait()


@asynccontextmanager
async def playing(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[Play, Pair, Pair]]:
    """A webhook, a leader, a stand-by, and the checker."""
    kube = Kube(cluster.kubeconfig, str(find("kubectl")))
    await kube.namespace(_NAMESPACE)
    async with AsyncExitStack() as stack:
        web: Running = stack.enter_context(
            running("webhook", f"--kubeconfig={cluster.kubeconfig}", f"--state-dir={folder / 'webhook'}")
        )
        await asyncio.to_thread(web.until_ready)
        first = await stack.enter_async_context(pair(folder, cluster.kubeconfig, "first"))
        await until(first.leads, "the first leads")
        second = await stack.enter_async_context(pair(folder, cluster.kubeconfig, "second"))
        observer: Observer = await stack.enter_async_context(observed(cluster.kubeconfig))
        stage = await staged(kube, web.process.pid)
        yield Play(stage, observer, lambda _: None), first, second
        await kube.clear(_NAMESPACE)


async def test_a_leader_that_stops_hands_its_gangs_over(cluster: Cluster, tmp_path: Path) -> None:
    async with playing(cluster, tmp_path) as (play, first, second):
        kube = play.stage.kube
        await kube.apply(_NAMESPACE, slow.gang(4))
        await slow.at_the_barrier(kube, _NAMESPACE)
        assert not await second.leads()
        first.extender.process.send_signal(signal.SIGTERM)
        await until(second.leads, "the second leads", seconds=5)
        await slow.provide(kube, _NAMESPACE)
        await play.bound(_NAMESPACE, 4, seconds=60)
        play.clean(_NAMESPACE)
        await slow.clear(kube, _NAMESPACE)


async def test_a_leader_that_was_only_asleep_does_no_harm(cluster: Cluster, tmp_path: Path) -> None:
    async with playing(cluster, tmp_path) as (play, first, second):
        kube = play.stage.kube
        await kube.apply(_NAMESPACE, slow.gang(4))
        await slow.at_the_barrier(kube, _NAMESPACE)
        first.extender.process.send_signal(signal.SIGSTOP)
        await until(second.leads, "the second leads", seconds=25)
        taken = await _nominated(kube)
        try:
            await kube.run("cordon", *taken)  # the second has to plan anew, elsewhere
            await slow.provide(kube, _NAMESPACE)  # the last member's call waits for the first to wake up
            first.extender.process.send_signal(signal.SIGCONT)
            await kube.apply(_NAMESPACE, statefulset("more", 3))
            await play.bound(_NAMESPACE, 7, seconds=60)
            play.clean(_NAMESPACE)
            assert not await first.leads()
        finally:
            first.extender.process.send_signal(signal.SIGCONT)
            await kube.run("uncordon", *taken)
            await slow.clear(kube, _NAMESPACE)


async def _nominated(kube: Kube) -> list[str]:
    pods: list[dict[str, Any]] = await kube.items("pods", _NAMESPACE)
    return sorted({p["status"].get("nominatedNodeName", "") for p in pods} - {""})
