"""What faults and workloads act on: the cluster, the product's processes, and what is to be healed later."""

import asyncio
import json
import os
import random
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from e2e.chaos.errors import Errors
from e2e.checker import is_finished, is_live, node_of, promised
from e2e.expected import CLIQUE
from e2e.kube import Kube, KubectlError
from e2e.observer import Observer
from e2e.stage import Stage, StageError, restarted

Json = Mapping[str, Any]

NAMESPACE: Final = "chaos"
API_SERVER: Final = "kube-apiserver"
ASLEEP: Final = "pause of "
_LOOKS, _LOOK_SECONDS = 80, 0.05
_AGAIN_SECONDS: Final = 0.5
_PAST: Final = ("NotFound", "AlreadyExists")


class NotYetError(Exception):
    """This can't be healed now; it is tried again."""


@dataclass(slots=True)
class Ground:
    """One run's cluster. name: the cluster's. over: set when everything is to be healed at once."""

    stage: Stage
    observer: Observer
    errors: Errors
    rng: random.Random
    name: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    healing: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def kube(self) -> Kube:
        """The cluster, past the proxy."""
        return self.stage.kube

    @property
    def nodes(self) -> Mapping[str, Json]:
        """Nodes as the observer knows them."""
        return self.observer.snapshot().nodes

    @property
    def pods(self) -> list[Json]:
        """Pods of our namespace, as the observer knows them."""
        known = self.observer.snapshot().pods.values()
        return [p for p in known if p["metadata"]["namespace"] == NAMESPACE]

    @property
    def disturbed(self) -> bool:
        """Whether errors are answered or a part sleeps just now."""
        return bool(self.errors.status) or any(what.startswith(ASLEEP) for what in self.healing)

    def pid(self, part: str) -> int | None:
        """The process of a part of the product, or of the API server; None while it doesn't run."""
        if part == API_SERVER:
            return _api_server(self.name)
        try:
            return self.stage.pid(part)
        except (StageError, OSError):
            return None

    def send(self, part: str, number: signal.Signals) -> bool:
        """Send a signal to a part; whether it was there."""
        pid = self.pid(part)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    async def restart_cluster(self) -> None:
        """Start what was killed of the control plane."""
        await restarted(self.name)

    async def admit_nobody_unseen(self) -> None:
        """Let the API server refuse Pods while the webhook is away, as in a cluster that is in earnest.

        `allaboard dev` registers with Ignore; a Pod that slips through is scheduled by whom it names, and
        no scheduler can make it a member any more.
        """
        kind = "mutatingwebhookconfigurations"
        found = json.loads(await self.kube.run("get", kind, "zz-allaboard", "-o", "json"))
        for entry in found["webhooks"]:
            entry["failurePolicy"] = "Fail"
        await self.kube.run("replace", "-f", "-", stdin=json.dumps(found))

    async def patch_node(self, name: str, body: Json, subresource: str = "") -> None:
        """Merge patch of a Node. Raises KubectlError."""
        part = [f"--subresource={subresource}"] if subresource else []
        await self.kube.run("patch", "node", name, "--type=merge", *part, "-p", json.dumps(body))

    async def set_ready(self, name: str, status: str) -> None:
        """Write a node's Ready condition, as its kubelet does it."""
        conditions = [c for c in self.nodes[name]["status"]["conditions"] if c["type"] != "Ready"]
        ready = {"type": "Ready", "status": status, "reason": "Chaos"}
        await self.patch_node(name, {"status": {"conditions": [*conditions, ready]}}, "status")

    async def restore_label(self, name: str, clique: str) -> None:
        """Move a node back into its clique. Raises NotYetError while that would tear somebody apart."""
        if self.used(name):
            raise NotYetError(name)
        await self.patch_node(name, {"metadata": {"labels": {CLIQUE: clique}}})

    async def create(self, obj: Json) -> None:
        """Create an object in our namespace, or a Node. Raises KubectlError."""
        await self.kube.run("-n", NAMESPACE, "create", "-f", "-", stdin=json.dumps(obj))

    async def fail_pod(self, name: str, reason: str) -> None:
        """Write a Pod's failure, as a kubelet does it. Raises KubectlError."""
        body = json.dumps({"status": {"phase": "Failed", "reason": reason}})
        where = ("-n", NAMESPACE, "patch", "pod", name, "--type=merge", "--subresource=status")
        await self.kube.run(*where, "-p", body)

    async def delete(self, kind: str, *which: str) -> None:
        """Delete objects at once, by name or by -l selector, if they are there. Raises KubectlError."""
        now = ("--wait=false", "--ignore-not-found", "--grace-period=0", "--force")
        await self.kube.run("-n", NAMESPACE, "delete", kind, *which, *now)

    @property
    def promised(self) -> list[str]:
        """Nodes that are promised to members which aren't bound yet, by name."""
        return sorted(promised({p["metadata"]["uid"]: p for p in self.pods if is_live(p)}))

    async def promise(self) -> str:
        """Any such node; waits a little for one, "" where none comes."""
        for _ in range(_LOOKS):
            if nodes := self.promised:
                return self.rng.choice(nodes)
            await asyncio.sleep(_LOOK_SECONDS)
        return ""

    def used(self, node: str) -> bool:
        """Whether somebody sits on the node or is promised a seat on it."""
        rows = [p for p in self.pods if not is_finished(p)]
        return any(node in (node_of(p), (p.get("status") or {}).get("nominatedNodeName")) for p in rows)

    def heal_later(self, what: str, seconds: float, heal: Callable[[], Awaitable[None]]) -> None:
        """Undo a fault after a while, or as soon as the run is over."""
        if what not in self.healing:
            self.healing[what] = asyncio.create_task(self._heal(what, seconds, heal))

    async def _heal(self, what: str, seconds: float, heal: Callable[[], Awaitable[None]]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.over.wait()
        await insist(heal)
        del self.healing[what]

    async def heal_all(self) -> None:
        """Undo every fault now."""
        self.over.set()
        await asyncio.gather(*self.healing.values())


async def insist(work: Callable[[], Awaitable[None]]) -> None:
    """Do it, again and again while it can't be done."""
    while True:
        if await _done(work):
            return
        await asyncio.sleep(_AGAIN_SECONDS)


async def _done(work: Callable[[], Awaitable[None]]) -> bool:
    """Whether it is done; the API server may be away just now, because of another fault."""
    try:
        await work()
    except NotYetError:
        return False
    except KubectlError as error:
        return any(word in str(error) for word in _PAST)
    return True


def _api_server(cluster: str) -> int | None:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name == API_SERVER and any(f"/{cluster}/" in word for word in words):
                return int(path.parent.name)
    return None
