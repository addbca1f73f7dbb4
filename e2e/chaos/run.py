"""One run: set the stage, do harm while gangs come and go, heal, wait until all are aboard, count."""

import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from e2e.chaos.errors import Errors
from e2e.chaos.faults import Kind, kinds
from e2e.chaos.ground import NAMESPACE, Ground
from e2e.chaos.judge import Judge
from e2e.chaos.workload import Workload
from e2e.checker import Violation, node_of
from e2e.kube import KubectlError
from e2e.observer import observed
from e2e.proxy import proxied
from e2e.stage import cluster_of, developing, staged

_CLIQUES: Final = 4
_SETTLE_SECONDS: Final = 180.0
_PROGRESS_SECONDS: Final = 10.0
_PAUSE: Final = (0.2, 3.0)  # seconds between two faults
_PATIENCE: Final = 60.0  # for one fault, the API server's restart among them

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does. only: names of kinds, () for all.

    unprotected: protections switched off. logs: a folder that keeps our parts' logs.
    """

    faults: int
    seed: int
    gangs_at_once: int = 10
    only: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    logs: Path | None = None


@dataclass(slots=True)
class Outcome:
    """How a run went. left: gangs that never boarded."""

    faults: Counter[str] = field(default_factory=Counter)
    gangs: int = 0
    looks: int = 0
    violations: list[Violation] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether every promise was."""
        return not self.violations and not self.left

    def line(self) -> str:
        """The closing line: faults by kind, gangs, violations."""
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        return (
            f"{sum(self.faults.values())} faults ({counts}) over {self.gangs} gangs in {self.seconds:.0f} s: "
            f"{len(self.violations)} violations, {len(self.left)} gangs left behind"
        )


def timetable(seed: int, kinds: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Pauses and kinds without end: the same for the same seed, and every kind before any comes again."""
    rng = random.Random(seed)
    while True:
        bag = sorted(kinds)
        rng.shuffle(bag)
        for kind in bag:
            yield rng.uniform(*_PAUSE), kind


async def run(plan: Plan, say: Say) -> Outcome:
    """Play the plan. Raises StageError."""
    began, outcome = time.monotonic(), Outcome()
    async with _ground(plan) as (ground, judge, table):
        workload = Workload(ground, judge, random.Random(plan.seed + 1), plan.gangs_at_once)
        working = asyncio.create_task(workload.run())
        telling = asyncio.create_task(_tell(plan, outcome, workload, judge, say))
        await _harm(plan, ground, table, outcome, say)
        working.cancel()
        say(f"all faults are done; healing, and waiting until {len(workload.gangs)} gangs were aboard")
        # At once: a node goes back into its clique when the gang on it has ended.
        healing = asyncio.create_task(ground.heal_all())
        outcome.left = await workload.settle(_SETTLE_SECONDS)
        if outcome.left:
            healing.cancel()
        else:
            await healing
        for name in outcome.left:
            await _show(ground, name, say)
        telling.cancel()
        outcome.gangs, outcome.looks = workload.started, judge.looks
        outcome.violations = list(judge.violations)
    outcome.seconds = time.monotonic() - began
    return outcome


@asynccontextmanager
async def _ground(plan: Plan) -> AsyncIterator[tuple[Ground, Judge, dict[str, Kind]]]:
    rng, judge, name = random.Random(plan.seed), Judge(), f"chaos-{os.getpid()}"
    errors = Errors(random.Random(plan.seed + 2))
    off = [f"--unprotected={','.join(plan.unprotected)}"] if plan.unprotected else []
    async with contextlib.AsyncExitStack() as stack:
        folder = plan.logs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kube = await stack.enter_async_context(cluster_of(name, _CLIQUES))
        proxy, through = await stack.enter_async_context(proxied(kube.kubeconfig, folder, errors))
        dev = await stack.enter_async_context(developing(through, off))
        observer = await stack.enter_async_context(observed(kube.kubeconfig, judge, patient=True))
        await kube.namespace(NAMESPACE)
        table = {k: f for k, f in kinds(proxy).items() if not plan.only or k in plan.only}
        ground = Ground(await staged(kube, dev), observer, errors, rng, name)
        judge.disturbed = lambda: ground.disturbed
        await ground.admit_nobody_unseen()
        yield ground, judge, table


async def _harm(plan: Plan, ground: Ground, table: dict[str, Kind], outcome: Outcome, say: Say) -> None:
    """One fault after another."""
    for pause, kind in timetable(plan.seed, table):
        if outcome.faults.total() >= plan.faults:
            return
        await asyncio.sleep(pause)
        await _one(kind, table, ground, outcome, say)


async def _one(kind: str, table: dict[str, Kind], ground: Ground, outcome: Outcome, say: Say) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            done = await table[kind](ground)
    except (KubectlError, TimeoutError, KeyError) as error:
        say(f"  fault {kind} could not be done: {str(error)[:200]}")
        return
    if done:
        outcome.faults[kind] += 1
        say(f"  {time.strftime('%H:%M:%S')} {done}")


async def _show(ground: Ground, gang: str, say: Say) -> None:
    """What there is to see of a gang that was left behind."""
    for pod in sorted(ground.pods, key=lambda p: str(p["metadata"]["name"])):
        meta, status = pod["metadata"], pod.get("status") or {}
        if meta["name"].startswith(f"{gang}-"):
            plan = (meta.get("annotations") or {}).get("allaboard.dev/plan", "none")
            say(
                f"LEFT {meta['name']}: node {node_of(pod) or 'none'}, {status.get('phase')}, "
                f"gates {pod['spec'].get('schedulingGates') or 'none'}, created {meta['creationTimestamp']}, "
                f"nominated {status.get('nominatedNodeName')}, plan {plan}"
            )
    told = await ground.kube.run("-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp")
    say("\n".join([line for line in told.splitlines() if f"{gang}-" in line or f"/{gang} " in line][-12:]))


async def _tell(plan: Plan, outcome: Outcome, workload: Workload, judge: Judge, say: Say) -> None:
    told: set[Violation] = set()
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        say(
            f"{sum(outcome.faults.values())}/{plan.faults} faults; gangs: {workload.done} done, "
            f"{len(workload.gangs)} here, {len(judge.waiting)} waiting; {len(judge.violations)} violations"
        )
        for violation in judge.violations.keys() - told:
            say(f"VIOLATION {violation.promise}: {violation.subject}: {violation.detail}")
            told.add(violation)
