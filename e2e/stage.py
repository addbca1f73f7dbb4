"""The stage: a local cluster of its own and `allaboard dev`, both through the command line.

    up ──► dev prints "ready" ──► scenes ──► dev stopped ──► down

Whatever happens, Ctrl-C included, nothing is left running.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.kube import Kube, until
from e2e.pods import GPUS, pod

Json = dict[str, Any]

CLIQUE_NODES: Final = 18
_ALLABOARD: Final = (sys.executable, "-m", "allaboard")
_READY_SECONDS: Final = 60.0


class StageError(RuntimeError):
    """The stage could not be set up; the text says what failed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A running cluster with Allaboard on it.

    nodes: names by clique, in order (c0000, c0001, …). dev: the process of `allaboard dev`.
    """

    kube: Kube
    nodes: tuple[tuple[str, ...], ...]
    cliques: tuple[str, ...]
    dev: int

    def pid(self, part: str) -> int:
        """The process of a part ("extender", "kube-scheduler"), a child of dev. Raises StageError."""
        for pid in Path(f"/proc/{self.dev}/task/{self.dev}/children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if any(Path(word).name == part for word in words):
                return int(pid)
        raise StageError(f"{part} does not run")

    async def crash(self, part: str) -> str:
        """Kill a part (-9) and wait until another one runs; what was killed. Raises StageError."""
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)

        async def runs_again() -> bool:
            try:
                return self.pid(part) != pid
            except (OSError, StageError):
                return False

        await until(runs_again, f"the {part} runs again")
        return f"{part} (pid {pid})"

    async def occupy(self, namespace: str, nodes: Sequence[str]) -> None:
        """Fill these nodes with somebody else's Pods, which no scheduler had a say in."""
        await self.kube.apply(namespace, [pod(f"busy-{node}", nodeName=node) for node in nodes])


@asynccontextmanager
async def set_up(name: str, cliques: int, options: Sequence[str] = ()) -> AsyncIterator[Stage]:
    """A fresh cluster of whole racks, with `allaboard dev` ready. Raises StageError."""
    async with cluster_of(name, cliques) as kube, developing(kube.kubeconfig, options) as dev:
        yield await staged(kube, dev)


@asynccontextmanager
async def cluster_of(name: str, cliques: int) -> AsyncIterator[Kube]:
    """A fresh cluster of whole racks. Raises StageError."""
    await _local("down", "--name", name)
    try:
        await _local(
            *("up", "--name", name, "--cliques", str(cliques)),
            *("--nodes-per-clique", str(CLIQUE_NODES), "--gpus", str(GPUS)),
        )
        kubeconfig = Path((await _local("kubeconfig", "--name", name)).strip())
        yield Kube(kubeconfig, (await _local("which", "kubectl")).strip())
    finally:
        await _local("down", "--name", name)


async def restarted(name: str) -> None:
    """Start what is missing of a running cluster. Raises StageError."""
    await _local("up", "--name", name)


async def staged(kube: Kube, dev: int) -> Stage:
    """The stage of a cluster on which `allaboard dev` (this process) runs already."""
    racks = await _racks(kube)
    return Stage(kube, tuple(racks.values()), tuple(racks), dev)


@asynccontextmanager
async def developing(kubeconfig: Path, options: Sequence[str] = ()) -> AsyncIterator[int]:
    """`allaboard dev` from ready to its end; gives its process id."""
    state = kubeconfig.parent / "dev"
    process = await asyncio.create_subprocess_exec(
        *_ALLABOARD,
        "dev",
        f"--kubeconfig={kubeconfig}",
        f"--state-dir={state}",
        *options,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C comes to us, and we stop it in order
        stderr=asyncio.subprocess.PIPE,
    )
    errors = asyncio.create_task(_tail(process.stderr))
    try:
        async with asyncio.timeout(_READY_SECONDS):
            assert process.stdout is not None
            while (line := await process.stdout.readline()) != b"ready\n":
                if not line:
                    raise StageError("allaboard dev ended before it was ready:\n" + "\n".join(await errors))
        yield process.pid
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
        await errors


async def _tail(stream: asyncio.StreamReader | None) -> list[str]:
    """The last lines of what a process says; read all along, so that it is never held up."""
    lines: list[str] = []
    while stream is not None and (line := await stream.readline()):
        lines = [*lines[-20:], line.decode().rstrip()]
    return lines


async def _local(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *_ALLABOARD, "local", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise StageError(f"allaboard local {' '.join(arguments)}: {err.decode().strip()}")
    return out.decode()


async def _racks(kube: Kube) -> dict[str, tuple[str, ...]]:
    racks: dict[str, list[str]] = {}
    for node in await kube.items("nodes"):
        clique = node["metadata"]["labels"].get("nvidia.com/gpu.clique")
        if clique:
            racks.setdefault(clique, []).append(node["metadata"]["name"])
    return {clique: tuple(sorted(names)) for clique, names in sorted(racks.items(), key=lambda r: min(r[1]))}
