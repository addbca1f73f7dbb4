"""60 gangs of three queues on the real control plane; and the judge of queues by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from e2e import queues, rush
from e2e.checker import Snapshot
from e2e.fairness import QueueChecker, Share, fair, shares_of
from e2e.kube import Kube
from e2e.observer import Observer, observed
from e2e.queues import queue
from e2e.rush import GANGS, PARENT, QUEUES, Outcome
from e2e.stage import Stage, developing, staged

Json = dict[str, Any]

INF = float("inf")


@asynccontextmanager
async def rushing(cluster: Cluster, *options: str) -> AsyncIterator[tuple[Stage, Observer, QueueChecker]]:
    """`allaboard dev` on the cluster, watched by a checker that knows the queues."""
    kube = Kube(cluster.kubeconfig, str(find("kubectl")))
    await kube.clear(*{pod["metadata"]["namespace"] for pod in await kube.items("pods")} - {"kube-system"})
    async with developing(cluster.kubeconfig, options) as dev:
        watching = await rush.checker(kube)
        async with observed(cluster.kubeconfig, watching) as observer:
            await kube.namespace("others")
            try:
                yield await staged(kube, dev), observer, watching
            finally:
                await kube.clear(rush.NAMESPACE, "others")
                await queues.delete(kube, *(row["metadata"]["name"] for row in QUEUES))


@pytest.mark.cluster
@pytest.mark.timeout(300)
async def test_sixty_gangs_of_three_queues_get_fair_shares_and_no_limit_is_ever_exceeded(
    cluster: Cluster,
) -> None:
    async with rushing(cluster) as (stage, observer, watching):
        outcome = await rush.rush(stage, observer, watching)
    assert list(watching.violations) == []
    assert outcome.unfair() == []
    assert outcome.held[PARENT] >= 0.95 * watching.shares[PARENT].limit
    assert watching.most["rush-capped"] == watching.shares["rush-capped"].limit
    assert len(outcome.ran) == sum(GANGS.values()) == 60


@pytest.mark.cluster
@pytest.mark.timeout(300)
async def test_with_the_limits_off_the_checker_reports_which_queues_exceed_theirs(cluster: Cluster) -> None:
    async with rushing(cluster, "--unprotected=limits") as (stage, observer, watching):
        await rush.rush(stage, observer, watching)
    broken = {v.subject for v in watching.violations if v.promise == "limit"}
    assert broken == {PARENT, "rush-capped"}


def _pod(name: str, queue: str, node: str = "n0", gpus: int = 4, phase: str = "Running") -> Json:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "metadata": {"uid": name, "name": name, "namespace": "ns", "labels": {"kai.scheduler/queue": queue}},
        "spec": {"nodeName": node, "schedulerName": "allaboard", "containers": [container]},
        "status": {"phase": phase},
    }


def _judge(*pods: Json) -> list[str]:
    checker = QueueChecker(shares_of([queue("org", limit=8), queue("a", "org", limit=4), queue("b", "org")]))
    checker.look(Snapshot(0.0, {p["metadata"]["uid"]: p for p in pods}, {}, {}))
    return sorted(f"{v.subject}: {v.detail}" for v in checker.violations if v.promise == "limit")


def test_the_judge_counts_bound_pods_for_their_queue_and_those_above_it() -> None:
    assert _judge(_pod("p0", "a"), _pod("p1", "b")) == []
    assert _judge(_pod("p0", "a"), _pod("p1", "a")) == ["a: 8 GPUs held, the limit is 4"]
    assert _judge(_pod("p0", "b", gpus=12)) == ["org: 12 GPUs held, the limit is 8"]


def test_the_judge_does_not_count_pods_that_wait_or_are_finished_or_of_another_queue() -> None:
    others = _pod("p1", "a", node=""), _pod("p2", "a", phase="Succeeded"), _pod("p3", "elsewhere")
    assert _judge(_pod("p0", "a"), *others) == []


@pytest.mark.parametrize(
    ("a", "b", "demand", "expected"),
    [
        ((0, INF, 1), (0, INF, 1), (100, 100), (30, 30)),
        ((0, INF, 3), (0, INF, 1), (100, 100), (45, 15)),
        ((0, INF, 3), (0, INF, 1), (10, 100), (10, 50)),
        ((40, INF, 1), (0, INF, 1), (100, 100), (50, 10)),
        ((90, INF, 1), (30, INF, 1), (100, 100), (45, 15)),
        ((0, 5, 9), (0, INF, 1), (100, 100), (5, 55)),
        ((0, INF, 1), (0, INF, 1), (10, 10), (10, 10)),
    ],
)
def test_what_the_judge_holds_to_be_fair_among_two_queues(
    a: tuple[float, float, float],
    b: tuple[float, float, float],
    demand: tuple[float, float],
    expected: tuple[float, float],
) -> None:
    rows = [Share(name, "", quota, limit, weight) for name, (quota, limit, weight) in (("a", a), ("b", b))]
    found = fair(rows, dict(zip("ab", demand, strict=True)), 60)
    assert tuple(found.values()) == pytest.approx(expected)


def test_a_queue_far_from_its_fair_share_is_reported() -> None:
    outcome = Outcome({"a": 100, "b": 84}, {"a": 120.0, "b": 100.0})
    assert outcome.unfair() == ["a: 100 GPUs, fair are 120"]
