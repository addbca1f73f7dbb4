"""A kind cluster with two cliques of GPU nodes and Allaboard in it.

GPUs are numbers in the status of nodes: kubelets keep extended resources that no device plugin manages.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.kube import Kube, KubectlError, until
from e2e.pods import GPUS

NAMESPACE: Final = "allaboard-system"
_HERE: Final = Path(__file__).parent
_OVERLAY: Final = _HERE.parents[1] / "manifests" / "overlays" / "kind"
_CLIQUE: Final = "nvidia.com/gpu.clique"
_ROLLOUT: Final = "--timeout=180s"


class KindError(RuntimeError):
    """kind could not do it; the text says what it printed."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to use. node_image: "" for kind's default, which is pulled. keep: leave the cluster running."""

    kind: str
    kubectl: str
    image: str
    node_image: str
    name: str
    keep: bool

    @staticmethod
    def of_environment() -> "Options":
        """As the variables of `make e2e-kind` say."""
        get = os.environ.get
        return Options(
            kind=get("KIND") or "kind",
            kubectl=get("KUBECTL") or "kubectl",
            image=get("IMAGE") or "allaboard:0.1.0",
            node_image=get("KIND_NODE_IMAGE") or "",
            name=get("KIND_NAME") or "allaboard-e2e",
            keep=bool(get("KEEP")),
        )


@asynccontextmanager
async def ground(options: Options, folder: Path) -> AsyncIterator[Kube]:
    """The cluster from its creation to its end. Raises KindError."""
    kubeconfig = folder / "kubeconfig"
    chosen = ["--image", options.node_image] if options.node_image else []
    where = ["--name", options.name]
    flags = ["--config", str(_HERE / "cluster.yaml"), "--kubeconfig", str(kubeconfig), "--wait", "300s"]
    _warn_of_few_watchers()
    try:
        await _kind(options, "create", "cluster", *where, *chosen, *flags)
        await _kind(options, "load", "docker-image", options.image, *where)
        yield Kube(kubeconfig, options.kubectl)
    finally:
        if not options.keep:
            await _kind(options, "delete", "cluster", *where, "--kubeconfig", str(kubeconfig))


async def install(kube: Kube) -> None:
    """GPUs, then Allaboard; return when all of its Pods are ready. Raises KubectlError, AssertionError."""
    amount = f'{{"nvidia.com/gpu": "{GPUS}"}}'
    patch = f'{{"status": {{"capacity": {amount}, "allocatable": {amount}}}}}'
    for node in await kube.items("nodes", selector=_CLIQUE):
        name = node["metadata"]["name"]
        await kube.run("patch", f"node/{name}", "--subresource=status", "--type=merge", "-p", patch)
    await kube.run("apply", "-k", str(_OVERLAY))
    await rolled_out(kube)
    await until(lambda: _mutates(kube), "a Pod that asks for a gang is gated", 60)


async def rolled_out(kube: Kube) -> None:
    """Return when all Pods of ours are those of the newest revision, and ready. Raises KubectlError."""
    for name in ("allaboard-webhook", "allaboard-scheduler"):
        await kube.run("-n", NAMESPACE, "rollout", "status", f"deployment/{name}", _ROLLOUT)


async def _mutates(kube: Kube) -> bool:
    probe = (
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": '
        '{"allaboard.dev/gang": "probe"}}, "spec": {"schedulerName": "allaboard", '
        '"containers": [{"name": "c", "image": "registry.invalid/c:0"}]}}'
    )
    try:
        told = await kube.run(
            "-n", "default", "create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=probe
        )
    except KubectlError:
        return False
    return "allaboard.dev/boarding" in told


async def _kind(options: Options, *arguments: str) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            options.kind, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except FileNotFoundError as error:
        raise KindError(f"KIND: no program {options.kind} (allowed: a name on PATH, or a path)") from error
    out, _ = await process.communicate()
    if process.returncode:
        raise KindError(f"kind {' '.join(arguments)} failed:\n{out.decode().strip()}")


def _warn_of_few_watchers() -> None:
    """Nine nodes on one kernel share this limit; with the default of 128 kubelets don't come up."""
    file = Path("/proc/sys/fs/inotify/max_user_instances")
    if file.exists() and int(file.read_text()) < 512:
        sys.stderr.write(
            f"warning: fs.inotify.max_user_instances is {file.read_text().strip()}, too few for nine nodes "
            "(sysctl fs.inotify.max_user_instances=1024)\n"
        )
