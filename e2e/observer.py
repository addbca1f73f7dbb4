"""Watches the cluster and shows each change to the checker.

A watch, not a poll: a promise that is broken for a moment must be seen, too.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kubernetes_asyncio import client, config, watch

from e2e.checker import Checker, Snapshot

_LOOK_SECONDS: Final = 0.5  # a look even when nothing changes: partial gangs are a matter of time


class LostSightError(RuntimeError):
    """A watch ended with an error: what the checker did not see, it can't vouch for."""


class Observer:
    """Pods, nodes and StatefulSets as the API tells them."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._pods: dict[str, Any] = {}
        self._nodes: dict[str, Any] = {}
        self._sets: dict[str, Any] = {}

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now."""
        return Snapshot(time.monotonic(), self._pods, self._nodes, self._sets)

    async def run(self, kubeconfig: Path) -> None:
        """Watch until cancelled."""
        api = await config.new_client_from_config(str(kubeconfig))
        try:
            core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(core.list_node, self._nodes, by_name=True))
                tasks.create_task(self._follow(apps.list_stateful_set_for_all_namespaces, self._sets))
                tasks.create_task(self._follow(core.list_pod_for_all_namespaces, self._pods, judge=True))
                tasks.create_task(self._look())
        finally:
            await api.close()

    async def _look(self) -> None:
        while True:
            self.checker.look(self.snapshot())
            await asyncio.sleep(_LOOK_SECONDS)

    async def _follow(
        self, listing: Any, known: dict[str, Any], *, by_name: bool = False, judge: bool = False
    ) -> None:
        while True:
            async for event in watch.Watch().stream(listing):
                obj = event["raw_object"]
                key = obj["metadata"]["name" if by_name else "uid"]
                if event["type"] == "DELETED":
                    known.pop(key, None)
                else:
                    known[key] = obj
                if judge:
                    self.checker.look(self.snapshot())


@asynccontextmanager
async def observed(kubeconfig: Path) -> AsyncIterator[Observer]:
    """An observer at work. Raises LostSightError at the end where it did not watch all the time."""
    observer = Observer(Checker())
    task = asyncio.create_task(observer.run(kubeconfig))
    try:
        yield observer
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        raise LostSightError(f"the checker lost sight of the cluster: {task.exception()!r}")
