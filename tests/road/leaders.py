"""Two extenders, each with a kube-scheduler of its own, and one Lease."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from e2e.kube import Kube, until
from e2e.observer import observed
from e2e.scene import Play
from e2e.stage import staged
from tests.dev.running import Running, once, running

NAMESPACE: Final = "leaders"
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
async def pair(where: Path, kubeconfig: Path, name: str, *options: str) -> AsyncIterator[Pair]:
    """Run both from ready to their end; options: of the extender."""
    folder = where / name
    common = (f"--kubeconfig={kubeconfig}", f"--state-dir={folder}", "--profiles=allaboard,kai-scheduler")
    config = once("scheduler-config", *common).stdout
    file = folder / "kube-scheduler.yaml"
    file.write_text(config)
    election = ("--leader-election=own", f"--lease={_LEASE}", f"--identity={name}")
    with running("extender", *common, *election, *options) as extender:
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
            if extender.process.poll() is None:
                # In a thread: a proxy in this loop may have to answer its last calls.
                await asyncio.to_thread(extender.stop, signal.SIGTERM)


@asynccontextmanager
async def playing(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[Play, Pair, Pair]]:
    """A webhook, a leader, a stand-by, and the checker."""
    async with AsyncExitStack() as stack:
        play = await stack.enter_async_context(watched(cluster, folder))
        first = await stack.enter_async_context(pair(folder, cluster.kubeconfig, "first"))
        await until(first.leads, "the first leads")
        second = await stack.enter_async_context(pair(folder, cluster.kubeconfig, "second"))
        yield play, first, second
        await play.stage.kube.clear(NAMESPACE)


@asynccontextmanager
async def watched(cluster: Cluster, folder: Path) -> AsyncIterator[Play]:
    """A webhook and the checker."""
    kube = Kube(cluster.kubeconfig, str(find("kubectl")))
    await kube.namespace(NAMESPACE)
    with running("webhook", f"--kubeconfig={cluster.kubeconfig}", f"--state-dir={folder / 'webhook'}") as web:
        await asyncio.to_thread(web.until_ready)
        async with observed(cluster.kubeconfig) as observer:
            yield Play(await staged(kube, web.process.pid), observer, lambda _: None)


async def nominated(kube: Kube) -> list[str]:
    """The nodes that are nominated for Pods of our namespace."""
    pods: list[dict[str, Any]] = await kube.items("pods", NAMESPACE)
    return sorted({p["status"].get("nominatedNodeName", "") for p in pods} - {""})
