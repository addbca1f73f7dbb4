"""A rush: 60 gangs of three queues on a full cluster, which is freed all at once.

Everybody waits before the first may board, so that who comes first is the queues' decision and not that of
whoever was applied first. At saturation the shares are compared with the fair ones; then gangs end in
waves until all have run.

    apply all 60 ──► free the cluster ──► saturated: shares ──► end those aboard, again and again ──► all ran
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from e2e import queues
from e2e.fairness import QueueChecker, Share, fair, held, shares_of
from e2e.kube import Kube, until
from e2e.observer import Observer
from e2e.pods import GPUS, member
from e2e.queues import LABEL, queue
from e2e.stage import Stage

Json = dict[str, Any]

NAMESPACE: Final = "rush"
PARENT: Final = "rush"
# 288 GPUs there are; the parent's limit is what they share: 160, 80 and 24 of 264 are fair.
QUEUES: Final = (
    queue(PARENT, limit=264),
    queue("rush-heavy", PARENT, quota=40, overQuotaWeight=3),
    queue("rush-light", PARENT, quota=40, overQuotaWeight=1),
    queue("rush-capped", PARENT, limit=24),
)
GANGS: Final = {"rush-heavy": 30, "rush-light": 18, "rush-capped": 12}
_SIZES: Final = (1, 2, 3, 4)  # members, in turn
_QUIET_SECONDS: Final = 4.0
_WAVES: Final = 40


@dataclass(slots=True)
class Outcome:
    """GPUs by queue at saturation, the fair ones, and how many gangs have run in the end."""

    held: Mapping[str, int]
    fair: Mapping[str, float]
    ran: set[str] = field(default_factory=set)

    def unfair(self) -> list[str]:
        """Queues further from their fair share than 5 % and than their largest gang."""
        largest = max(_SIZES) * GPUS
        return [
            f"{name}: {self.held[name]} GPUs, fair are {share:g}"
            for name, share in self.fair.items()
            if abs(self.held[name] - share) > max(0.05 * share, largest)
        ]


async def checker(kube: Kube) -> QueueChecker:
    """Create the queues; a checker that has read them back from the API."""
    await queues.apply(kube, *QUEUES)
    names = {row["metadata"]["name"] for row in QUEUES}
    return QueueChecker(
        shares_of(row for row in await kube.items(queues.KIND) if row["metadata"]["name"] in names)
    )


async def rush(stage: Stage, observer: Observer, watching: QueueChecker) -> Outcome:
    """Play it. watching: the observer's checker, which knows the queues."""
    kube = stage.kube
    await kube.namespace(NAMESPACE)
    await stage.occupy("others", [node for rack in stage.nodes for node in rack])
    gangs = [(name, i) for name, number in GANGS.items() for i in range(number)]
    await kube.apply(NAMESPACE, [pod for name, i in gangs for pod in _gang(name, i)])
    await _quiet(observer)
    await kube.clear("others")
    await _quiet(observer)
    outcome = _shares(observer, watching)
    for _ in range(_WAVES):
        outcome.ran |= (aboard := _aboard(observer))
        if not aboard:
            break
        await kube.run(
            *("-n", NAMESPACE, "delete", "pods", "-l", f"allaboard.dev/gang in ({','.join(sorted(aboard))})"),
            *("--wait=false", "--grace-period=0", "--force"),
        )
        await _quiet(observer)
    return outcome


def _gang(name: str, index: int) -> list[Json]:
    size = _SIZES[index % len(_SIZES)]
    gang = f"{name}-{index}"
    return [member(f"{gang}-{i}", gang, size, {LABEL: name}) for i in range(size)]


async def _quiet(observer: Observer) -> None:
    """Wait until nobody has been bound or has gone for a while."""
    loop = asyncio.get_running_loop()
    known, since = _state(observer), loop.time()

    async def nothing_moves() -> bool:
        nonlocal known, since
        if (now := _state(observer)) != known:
            known, since = now, loop.time()
        return loop.time() - since >= _QUIET_SECONDS

    await until(nothing_moves, "the cluster comes to rest", seconds=120)


def _state(observer: Observer) -> dict[str, str]:
    return {uid: str(p["spec"].get("nodeName")) for uid, p in observer.snapshot().pods.items()}


def _shares(observer: Observer, watching: QueueChecker) -> Outcome:
    pods = [p for p in observer.snapshot().pods.values() if p["metadata"]["namespace"] == NAMESPACE]
    now = held(pods, watching.shares)
    leaves: list[Share] = [share for share in watching.shares.values() if share.parent == PARENT]
    demand = {leaf.name: float(sum(GPUS for p in pods if _queue(p) == leaf.name)) for leaf in leaves}
    return Outcome(now, fair(leaves, demand, now[PARENT]))


def _aboard(observer: Observer) -> set[str]:
    """Labels of gangs with a bound member."""
    pods = observer.snapshot().pods.values()
    return {
        p["metadata"]["labels"]["allaboard.dev/gang"]
        for p in pods
        if p["metadata"]["namespace"] == NAMESPACE and p["spec"].get("nodeName")
    }


def _queue(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"][LABEL])
