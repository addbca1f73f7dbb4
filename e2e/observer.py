"""Watches the cluster and shows each change to the checker.

A watch, not a poll: a promise that is broken for a moment must be seen, too.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes_asyncio import client, config, watch

from e2e.checker import Checker, Snapshot

_KEYS: Final = {
    "pods": "uid",
    "nodes": "name",
    "statefulsets": "uid",
    "claims": "uid",
}  # how objects are told apart
_RETRY_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 0.5  # a look even when nothing changes: partial gangs are a matter of time


class LostSightError(RuntimeError):
    """A watch ended with an error: what the checker did not see, it can't vouch for."""


class Observer:
    """Pods, nodes, StatefulSets and volume claims as the API tells them.

    patient: the API server may go away; then nothing is judged until everything was listed anew.
    """

    def __init__(self, checker: Checker, *, patient: bool = False) -> None:
        self.checker = checker
        self._patient = patient
        self._known: dict[str, dict[str, Any]] = {kind: {} for kind in _KEYS}
        self._in_sight: set[str] = set()

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now."""
        known = self._known
        return Snapshot(
            time.monotonic(), known["pods"], known["nodes"], known["statefulsets"], known["claims"]
        )

    @property
    def sees(self) -> bool:
        """Whether every watch is up to date."""
        return len(self._in_sight) == len(_KEYS)

    async def run(self, kubeconfig: Path) -> None:
        """Watch until cancelled."""
        api = await config.new_client_from_config(str(kubeconfig))
        try:
            core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow("nodes", core.list_node))
                tasks.create_task(self._follow("statefulsets", apps.list_stateful_set_for_all_namespaces))
                claims = core.list_persistent_volume_claim_for_all_namespaces
                tasks.create_task(self._follow("claims", claims))
                tasks.create_task(self._follow("pods", core.list_pod_for_all_namespaces))
                tasks.create_task(self._look())
        finally:
            await api.close()

    async def _look(self) -> None:
        while True:
            self._judge()
            await asyncio.sleep(_LOOK_SECONDS)

    def _judge(self) -> None:
        if self.sees:
            self.checker.look(self.snapshot())

    async def _follow(self, kind: str, listing: Any) -> None:
        while True:
            try:
                version = await self._list(kind, listing)
                await self._watch(kind, listing, version)
            except (aiohttp.ClientError, client.ApiException, OSError, TimeoutError):
                self._in_sight.discard(kind)
                if not self._patient:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self, kind: str, listing: Any) -> str:
        answer = await listing(_preload_content=False)
        found = json.loads(await answer.read())
        if answer.status != 200:
            raise client.ApiException(status=answer.status, reason=str(found))
        self._known[kind] = {_key(kind, obj): obj for obj in found["items"]}
        self._in_sight.add(kind)
        return str(found["metadata"]["resourceVersion"])

    async def _watch(self, kind: str, listing: Any, version: str) -> None:
        async for event in watch.Watch().stream(listing, resource_version=version):
            obj = event["raw_object"]
            if event["type"] == "DELETED":
                self._known[kind].pop(_key(kind, obj), None)
            else:
                self._known[kind][_key(kind, obj)] = obj
            if kind == "pods":
                self._judge()


def _key(kind: str, obj: Any) -> str:
    return str(obj["metadata"][_KEYS[kind]])


@asynccontextmanager
async def observed(
    kubeconfig: Path, checker: Checker | None = None, *, patient: bool = False
) -> AsyncIterator[Observer]:
    """An observer at work. Raises LostSightError at the end where it did not watch all the time."""
    observer = Observer(checker or Checker(), patient=patient)
    task = asyncio.create_task(observer.run(kubeconfig))
    try:
        yield observer
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        raise LostSightError(f"the checker lost sight of the cluster: {task.exception()!r}")
