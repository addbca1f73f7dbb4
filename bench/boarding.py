"""How fast gangs board, as a ratio against kube-scheduler with loose Pods in the same run.

    make bench      (about 3 minutes; NODES and ROUNDS are settable)

One control plane, the same nodes, the same number of Pods, one client. The two take turns, so that a
machine whose speed drifts does both the same favour. Times go from the first Pod's creation to the last
Binding; CPU is what the named processes used, in ms per Pod.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from e2e.kube import until
from e2e.pods import GPUS
from e2e.stage import CLIQUE_NODES, Stage, set_up
from extender.api import Api, connect

Json = dict[str, Any]

_PODS: Final = "/api/v1/namespaces/default/pods"
_CREATORS: Final = 16
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_TIMEOUT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is created: gangs x members Pods of so many GPUs each. gangs 0: loose Pods."""

    name: str
    gangs: int
    members: int
    gpus: int
    scheduler: str
    level: str = ""

    def pods(self) -> Iterator[Json]:
        """The Pods, gang after gang."""
        for gang in range(max(1, self.gangs)):
            for member in range(self.members):
                yield self._pod(gang, member)

    def _pod(self, gang: int, member: int) -> Json:
        limits = {"nvidia.com/gpu": str(self.gpus)}
        container = {"name": "worker", "image": "registry.invalid/worker:1", "resources": {"limits": limits}}
        spec = {
            "schedulerName": self.scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        meta: Json = {"name": f"{self.name}-{gang}-{member}"}
        if self.gangs:
            meta["labels"] = {"allaboard.dev/gang": f"{self.name}-{gang}"}
            meta["annotations"] = {"allaboard.dev/min-member": str(self.members)}
            if self.level:
                meta["annotations"]["allaboard.dev/topology-required"] = self.level
        return {"metadata": meta, "spec": spec}


@dataclass(frozen=True, slots=True)
class Result:
    """One run: seconds to the last Binding, and CPU ms per Pod by process."""

    seconds: float
    cpu: dict[str, float]


async def measure(api: Api, stage: Stage, load: Load) -> Result:
    """Create the load, wait until all of it is bound, clear it away."""
    pods = list(load.pods())
    processes = _processes(stage)
    before = {name: _cpu_seconds(pid) for name, pid in processes.items()}
    started = time.monotonic()
    watching = asyncio.create_task(_all_bound(api, await _version(api), len(pods)))
    await each(pods, lambda pod: api.create(_PODS, pod))
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        await watching
    seconds = time.monotonic() - started
    used = {name: _cpu_seconds(pid) - before[name] for name, pid in processes.items()}
    await _clear(api)
    return Result(seconds, {name: 1000 * value / len(pods) for name, value in used.items()})


async def _version(api: Api) -> str:
    page = await api.get(_PODS, {"limit": "1"})
    assert page is not None
    return str(page["metadata"]["resourceVersion"])


async def _all_bound(api: Api, version: str, expected: int) -> None:
    bound: set[str] = set()
    while len(bound) < expected:
        async for kind, pod in api.watch(_PODS, version):
            version = pod["metadata"]["resourceVersion"]
            if kind == "MODIFIED" and pod["spec"].get("nodeName"):
                bound.add(pod["metadata"]["uid"])
                if len(bound) >= expected:
                    return


async def each(items: list[Json], work: Callable[[Json], Any]) -> None:
    """Do it for all of them, several at a time."""
    slots = asyncio.Semaphore(_CREATORS)

    async def one(item: Json) -> None:
        async with slots:
            await work(item)

    await asyncio.gather(*(one(item) for item in items))


async def _clear(api: Api) -> None:
    await api.delete(_PODS, {"gracePeriodSeconds": 0})

    async def gone() -> bool:
        return not (await api.get(_PODS, {"limit": "1"}) or {}).get("items")

    await until(gone, "all Pods are gone")
    await asyncio.sleep(1.0)  # let everybody hear of it


def _processes(stage: Stage) -> dict[str, int]:
    ours = {part: stage.pid(part) for part in ("extender", "webhook", "kube-scheduler")}
    state = stage.kube.kubeconfig.parent
    return ours | {"kube-apiserver": component(state, "kube-apiserver")}


def component(state: Path, name: str) -> int:
    """The pid of a component of this very cluster: its command line names the state folder."""
    for proc in Path("/proc").iterdir():
        if proc.name.isdigit():
            try:
                words = (proc / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if Path(words[0]).name == name and any(str(state) in word for word in words):
                return int(proc.name)
    raise RuntimeError(f"{name} does not run")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def loads(nodes: int) -> list[Load]:
    """The rival first. One Pod a node, then one gang of as many Pods as nodes with a GPU each."""
    racks = nodes // CLIQUE_NODES
    whole = racks * CLIQUE_NODES
    return [
        Load("loose", 0, whole, GPUS, "default-scheduler"),
        Load("racks", racks, CLIQUE_NODES, GPUS, "allaboard", "nvidia.com/gpu.clique"),
        Load("single", 1, whole, 1, "allaboard"),
    ]


async def run(nodes: int, rounds: int) -> dict[str, list[Result]]:
    """All loads in turn, so many times."""
    results: dict[str, list[Result]] = {}
    async with set_up(f"bench-{os.getpid()}", nodes // CLIQUE_NODES) as stage:
        api = await connect(stage.kube.kubeconfig)
        try:
            for _ in range(rounds):
                for load in loads(nodes):
                    result = await measure(api, stage, load)
                    results.setdefault(load.name, []).append(result)
                    print(f"{load.name}: {result.seconds:.2f} s", file=sys.stderr, flush=True)
        finally:
            await api.close()
    return results


def report(nodes: int, results: dict[str, list[Result]]) -> Table:
    """Medians, and the ratio to the rival of the same round."""
    columns = ("kube-apiserver", "kube-scheduler", "extender", "webhook")
    table = Table(title=f"{nodes} nodes, medians of {len(results['loose'])} rounds", title_justify="left")
    for column in ("load", "seconds", "Pods/s", "x loose", *(f"{c} ms/Pod" for c in columns)):
        table.add_column(column, justify="right")
    counts = {load.name: len(list(load.pods())) for load in loads(nodes)}
    for name, rows in results.items():
        seconds = median(r.seconds for r in rows)
        ratio = median(r.seconds / rival.seconds for r, rival in zip(rows, results["loose"], strict=True))
        cpu = (f"{median(r.cpu[c] for r in rows):.1f}" for c in columns)
        table.add_row(name, f"{seconds:.2f}", f"{counts[name] / seconds:.0f}", f"{ratio:.2f}", *cpu)
    return table


def main() -> None:
    """NODES (default 504) and ROUNDS (default 3) come from the environment."""
    nodes, rounds = int(os.environ.get("NODES", "504")), int(os.environ.get("ROUNDS", "3"))
    results = asyncio.run(run(nodes, rounds))
    Console(width=140).print(report(nodes, results))


if __name__ == "__main__":
    main()
