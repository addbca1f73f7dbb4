"""The extender dies right after each single write of a boarding: nothing is torn, all board in the end.

The proxy counts the extender's writes to Pods. After write N it kills the extender (-9) before that
learns of the answer; `allaboard dev` starts it anew. One run for each N.
"""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from e2e.kube import Kube, until
from e2e.observer import observed
from e2e.proxy import Call, Fault, proxied
from e2e.scene import Play, statefulset
from e2e.stage import Stage, StageError, developing, staged

pytestmark = pytest.mark.cluster

_NAMESPACE: Final = "crashes"
_MEMBERS: Final = 2
_WRITES: Final = 3 * _MEMBERS  # nominate, plan and gate, bind


class Killer(Fault):
    """Kills a process after its Nth write to a Pod; writes holds what was written."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.at = 0
        self.stage: Stage | None = None

    async def after(self, call: Call, status: int) -> None:
        """Count, and kill when it is time."""
        if not (call.writes and "aiohttp" in call.agent and "/pods/" in call.path and status < 300):
            return
        self.writes.append(call.path.rpartition("/")[2])
        if len(self.writes) == self.at and self.stage:
            os.kill(self.stage.pid("extender"), signal.SIGKILL)


async def test_a_crash_after_any_write_of_a_boarding_tears_no_gang(cluster: Cluster, tmp_path: Path) -> None:
    kube, killer = Kube(cluster.kubeconfig, str(find("kubectl"))), Killer()
    async with (
        proxied(cluster.kubeconfig, tmp_path, killer) as (_, kubeconfig),
        developing(kubeconfig) as dev,
        observed(cluster.kubeconfig) as observer,
    ):
        killer.stage = await staged(kube, dev)
        await kube.namespace(_NAMESPACE)
        play = Play(killer.stage, observer, lambda _: None)
        for number in range(1, _WRITES + 1):
            killer.writes.clear()
            killer.at = number
            await kube.apply(_NAMESPACE, statefulset("llm", _MEMBERS))
            await play.bound(_NAMESPACE, _MEMBERS, seconds=60)
            assert len(killer.writes) >= number, f"the boarding ended before write {number}"
            play.clean(_NAMESPACE)
            assert len(play.where(_NAMESPACE)) == 1
            await kube.clear(_NAMESPACE)
            await until(partial(_runs, killer.stage), "the extender runs again")


async def _runs(stage: Stage) -> bool:
    try:
        return bool(stage.pid("extender"))
    except StageError:
        return False
