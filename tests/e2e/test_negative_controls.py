"""Would the checker notice? Each protection is switched off in turn, and it must complain.

The same workloads with all protections on are the counter-check: no complaint.
"""

import asyncio
import os
import signal
from typing import Any, Final

import pytest

from allaboard.local.cluster import Cluster
from e2e import slow
from e2e.checker import PARTIAL_SECONDS
from e2e.kube import Kube, until
from e2e.pods import Json, member, pod, priority_class
from e2e.stage import Stage
from tests.e2e.conftest import playing

pytestmark = pytest.mark.cluster

_URGENT: Final = "control-urgent"
_BARRIER, _DOMAIN, _GUARD = "control-barrier", "control-domain", "control-guard"


async def test_with_all_protections_on_the_checker_has_nothing_to_say(cluster: Cluster) -> None:
    found = await _provoke(cluster, _one_member_never_passes, _members_without_affinity, _urgent_pods)
    assert found == set()


async def test_with_the_barrier_off_a_gang_is_partial(cluster: Cluster) -> None:
    assert "partial" in await _provoke(cluster, _one_member_never_passes, off="barrier")


async def test_with_the_domain_at_random_a_gang_is_spread(cluster: Cluster) -> None:
    assert "spread" in await _provoke(cluster, _members_without_affinity, off="domain")


async def test_with_the_guard_off_promised_room_is_stolen(cluster: Cluster) -> None:
    assert "theft" in await _provoke(cluster, _urgent_pods, off="guard")


async def _provoke(cluster: Cluster, *workloads: Any, off: str = "") -> set[str]:
    """Run the workloads; the promises that the checker says were broken."""
    options = [f"--unprotected={off}"] if off else []
    async with playing(cluster, options) as (stage, observer):
        for workload in workloads:
            try:
                await workload(stage)
            finally:
                await _clear(stage.kube)
        return {violation.promise for violation in observer.checker.violations}


async def _one_member_never_passes(stage: Stage) -> None:
    """A gang of 4, of which one wants a claim that does not exist."""
    await stage.kube.namespace(_BARRIER)
    members = [member(f"rank-{i}", "ranks", 4) for i in range(4)]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    members[3]["spec"]["volumes"] = [claim]
    await stage.kube.apply(_BARRIER, members)
    await until(lambda: _ungated(stage.kube, _BARRIER), "the gang is granted")
    await asyncio.sleep(PARTIAL_SECONDS + 2.0)


async def _members_without_affinity(stage: Stage) -> None:
    """A gang of 6 that only our planner keeps in one clique: the webhook is told to ignore it."""
    await stage.kube.namespace(_DOMAIN)
    members = [member(f"rank-{i}", "ranks", 6) for i in range(6)]
    for row in members:
        row["metadata"]["labels"]["allaboard.dev/webhook"] = "ignore"
        row["spec"]["schedulingGates"] = [{"name": "allaboard.dev/boarding"}]
    await stage.kube.apply(_DOMAIN, members)
    await until(lambda: _all_bound(stage.kube, _DOMAIN), "the gang is bound")


async def _urgent_pods(stage: Stage) -> None:
    """A gang at the barrier, loose Pods of a higher priority, and a kube-scheduler that forgets.

    A restarted kube-scheduler takes the loose Pods first and does not count nominated Pods of a lower
    priority: only the guard still knows whose room it is.
    """
    kube, (rack, *full) = stage.kube, stage.nodes
    await kube.namespace(_GUARD)
    await stage.occupy("others", [*rack[8:], *(node for other in full for node in other)])
    await kube.apply(_GUARD, slow.gang(8))
    await slow.at_the_barrier(kube, _GUARD)
    await kube.apply(_GUARD, [priority_class(_URGENT), *(_urgent(f"loose-{i}") for i in range(8))])
    pid = stage.pid("kube-scheduler")
    os.kill(pid, signal.SIGKILL)
    await asyncio.sleep(5.0)


def _urgent(name: str) -> Json:
    return pod(name, schedulerName="allaboard", priorityClassName=_URGENT)


async def _ungated(kube: Kube, namespace: str) -> bool:
    pods = await kube.items("pods", namespace)
    return not any(pod["spec"].get("schedulingGates") for pod in pods)


async def _all_bound(kube: Kube, namespace: str) -> bool:
    return all(pod["spec"].get("nodeName") for pod in await kube.items("pods", namespace))


async def _clear(kube: Kube) -> None:
    names = {namespace["metadata"]["name"] for namespace in await kube.items("namespaces")}
    ours = names & {_BARRIER, _DOMAIN, _GUARD, "others"}
    await kube.clear(*ours)
    if _GUARD in ours:
        await slow.clear(kube, _GUARD)
