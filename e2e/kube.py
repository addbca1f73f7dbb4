"""A user's access to a cluster: kubectl, and nothing else."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

_POLL_SECONDS: Final = 0.2


class KubectlError(Exception):
    """kubectl failed; the text is what it printed."""


class Kube:
    """kubectl with a kubeconfig."""

    def __init__(self, kubeconfig: Path, binary: str) -> None:
        self.kubeconfig = kubeconfig
        self._binary = binary

    async def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; its standard output. Raises KubectlError."""
        process = await asyncio.create_subprocess_exec(
            self._binary,
            *arguments,
            f"--kubeconfig={self.kubeconfig}",
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode() if stdin is not None else None)
        if process.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {err.decode().strip()}")
        return out.decode()

    async def apply(self, namespace: str, source: Path | Json | list[Json]) -> None:
        """kubectl apply of a manifest file or of objects."""
        if isinstance(source, Path):
            await self.run("-n", namespace, "apply", "-f", str(source))
            return
        items = source if isinstance(source, list) else [source]
        body = {"apiVersion": "v1", "kind": "List", "items": items}
        await self.run("-n", namespace, "apply", "-f", "-", stdin=json.dumps(body))

    async def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace, and wait until it takes Pods."""
        meta = {"name": name, "labels": dict(labels or {})}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        await self.run("apply", "-f", "-", stdin=json.dumps(body))

        async def takes_pods() -> bool:
            return bool(await self.items("serviceaccounts", name))

        await until(takes_pods, f"namespace {name} has its default ServiceAccount")

    async def items(self, kind: str, namespace: str = "", selector: str = "") -> list[Json]:
        """The objects of a kind, of one namespace or of all."""
        where = ["-n", namespace] if namespace else ["-A"]
        chosen = ["-l", selector] if selector else []
        found: list[Json] = json.loads(await self.run("get", kind, *where, *chosen, "-o", "json"))["items"]
        return found

    async def clear(self, *namespaces: str) -> None:
        """Delete Pods, whatever makes them and what was said of them; wait until the Pods are gone."""
        kinds = "statefulsets,deployments,jobs,pods,events"
        for name in namespaces:
            await self.run(
                "-n", name, "delete", kinds, "--all", "--wait=false", "--grace-period=0", "--force"
            )
        for name in namespaces:
            await until(partial(self._is_empty, name), f"namespace {name} is empty")

    async def _is_empty(self, namespace: str) -> bool:
        return not await self.items("pods", namespace)


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 30.0) -> None:
    """Wait until it holds. Raises AssertionError naming what did not come true."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await holds():
        if loop.time() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        await asyncio.sleep(_POLL_SECONDS)
