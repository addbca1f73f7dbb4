"""How long a stand-by takes from holding the Lease to its first grant, against a cold start.

    make failover      (3 minutes at 504 nodes; NODES=5004 PODS=50000: 12 minutes)

A gang comes while nobody leads. The time runs from the moment at which the Lease names the stand-by (by a
watch on it) to the first member that is nominated (by a watch on the Pods). The rival is what one would have
without a stand-by: an extender started anew, from its start to the same moment.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.boarding import component, each
from e2e.kube import until
from e2e.stage import CLIQUE_NODES, cluster_of
from extender.api import Api, connect

Json = dict[str, Any]

_PODS: Final = "/api/v1/namespaces/default/pods"
_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_NAME: Final = "failover"
_MEMBERS: Final = 4
_PATIENCE_SECONDS: Final = 120.0


@asynccontextmanager
async def extender(kubeconfig: Path, folder: Path, name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """An extender that takes part in the election, from "ready" to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "allaboard", "extender", f"--kubeconfig={kubeconfig}"),
        *(f"--state-dir={folder / name}", "--leader-election=own"),
        *(f"--lease=default/{_NAME}", f"--identity={name}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


def gang(name: str) -> list[Json]:
    """Members as the webhook leaves them."""
    return [_member(name, index) for index in range(_MEMBERS)]


def _member(name: str, index: int) -> Json:
    resources = {"limits": {"nvidia.com/gpu": "4"}}
    container = {"name": "worker", "image": "registry.invalid/worker:1", "resources": resources}
    return {
        "metadata": {
            "name": f"{name}-{index}",
            "labels": {"allaboard.dev/gang": name},
            "annotations": {
                "allaboard.dev/min-member": str(_MEMBERS),
                "allaboard.dev/topology-required": "nvidia.com/gpu.clique",
            },
        },
        "spec": {
            "schedulerName": "allaboard",
            "schedulingGates": [{"name": "allaboard.dev/boarding"}],
            "containers": [container],
        },
    }


async def seen(api: Api, path: str, holds: Callable[[Json], bool]) -> float:
    """When a watch first showed an object of which this holds (monotonic seconds)."""
    version = str((await api.get(path, {"limit": "1"}) or {})["metadata"]["resourceVersion"])
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            async for kind, obj in api.watch(path, version):
                version = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK" and holds(obj):
                    return time.monotonic()


def nominated(name: str) -> Callable[[Json], bool]:
    """Whether it is a member of that gang with a place."""
    return lambda pod: (
        pod["metadata"]["name"].startswith(f"{name}-")
        and bool(pod.get("status", {}).get("nominatedNodeName"))
    )


def held_by(name: str) -> Callable[[Json], bool]:
    """Whether it is our Lease in that one's hands."""
    return lambda lease: (
        lease["metadata"]["name"] == _NAME and (lease["spec"].get("holderIdentity") or "").startswith(name)
    )


async def takeover(api: Api, kubeconfig: Path, folder: Path, number: int) -> float:
    """Seconds from the Lease's move to a stand-by's first grant."""
    name, leader, stand_by = f"moved-{number}", f"leader-{number}", f"stand-by-{number}"
    async with extender(kubeconfig, folder, leader) as first:
        await _holds(api, leader)
        async with extender(kubeconfig, folder, stand_by):
            granted = asyncio.create_task(seen(api, _PODS, nominated(name)))
            moved = asyncio.create_task(seen(api, _LEASE, held_by(stand_by)))
            await asyncio.sleep(1.0)
            first.kill()
            await each(gang(name), lambda pod: api.create(_PODS, pod))
            seconds = await granted - await moved
    return seconds


async def cold_start(api: Api, kubeconfig: Path, folder: Path, number: int) -> float:
    """Seconds from an extender's start to its first grant, the Lease being free."""
    name = f"cold-{number}"
    await api.delete(f"{_LEASE}/{_NAME}")
    await each(gang(name), lambda pod: api.create(_PODS, pod))
    granted = asyncio.create_task(seen(api, _PODS, nominated(name)))
    await asyncio.sleep(0.5)
    started = time.monotonic()
    async with extender(kubeconfig, folder, name):
        return await granted - started


async def _holds(api: Api, name: str) -> None:
    async def does() -> bool:
        lease = await api.get(f"{_LEASE}/{_NAME}")
        return lease is not None and held_by(name)(lease)

    await until(does, f"{name} holds the Lease", seconds=_PATIENCE_SECONDS)


async def populate(api: Api, nodes: list[str], pods: int) -> None:
    """So many bound Pods, without GPUs. Nobody runs them: they only are there to be known."""

    def body(index: int) -> Json:
        container = {"name": "main", "image": "registry.invalid/x:1"}
        spec = {"nodeName": nodes[index % len(nodes)], "containers": [container]}
        return {"metadata": {"name": f"there-{index}"}, "spec": spec}

    for first in range(0, pods, 5000):
        some = [body(i) for i in range(first, min(first + 5000, pods))]
        await each(some, lambda pod: api.create(_PODS, pod))
        print(f"{first + len(some)} of {pods} Pods", file=sys.stderr, flush=True)


async def run(nodes: int, pods: int, rounds: int) -> dict[str, list[float]]:
    """Both in turn, so many times."""
    results: dict[str, list[float]] = {"cold start": [], "stand-by": []}
    async with cluster_of(f"failover-{os.getpid()}", nodes // CLIQUE_NODES) as kube:
        api = await connect(kube.kubeconfig)
        kwok = component(kube.kubeconfig.parent, "kwok")
        os.kill(kwok, signal.SIGSTOP)  # so many Pods need not become Running, and it would take the machine
        try:
            names = [n["metadata"]["name"] for n in (await api.get("/api/v1/nodes") or {})["items"]]
            await populate(api, names, pods)
            with TemporaryDirectory() as folder:
                for number in range(rounds):
                    for name, work in (("cold start", cold_start), ("stand-by", takeover)):
                        results[name].append(await work(api, kube.kubeconfig, Path(folder), number))
                        print(f"{name}: {results[name][-1]:.2f} s", file=sys.stderr, flush=True)
        finally:
            os.kill(kwok, signal.SIGCONT)
            await api.close()
    return results


def main() -> None:
    """NODES (504), PODS (5000) and ROUNDS (5) come from the environment."""
    nodes, pods, rounds = (
        int(os.environ.get(name, default))
        for name, default in (("NODES", "504"), ("PODS", "5000"), ("ROUNDS", "5"))
    )
    results = asyncio.run(run(nodes, pods, rounds))
    ours, rival = results["stand-by"], results["cold start"]
    print(
        f"{nodes} nodes, {pods} Pods, {rounds} rounds: a stand-by grants {median(ours):.2f} s after the "
        f"Lease moved (worst {max(ours):.2f}); a cold start {median(rival):.2f} s "
        f"(worst {max(rival):.2f}); ratio {median(ours) / median(rival):.2f}"
    )


if __name__ == "__main__":
    main()
