"""A gang that can't be finished where it began (rule 10).

    a gang boards ──► the proxy refuses one Binding ──► others take every free node of that clique, for more
    than a minute ──► the bound members must be evicted, and the gang boards elsewhere

One siege at a time: each costs the cluster a clique.
"""

import asyncio
from typing import Any, Final

from e2e.chaos.ground import NAMESPACE, Ground, insist
from e2e.chaos.judge import FOREIGN, Judge
from e2e.checker import capacity, is_live, node_of, taken
from e2e.expected import CLIQUE
from e2e.kube import KubectlError
from e2e.pods import GPUS, pod

Json = dict[str, Any]

_SIEGE: Final = "siege"
_WAIT_SECONDS: Final = 40.0  # for a gang that boards
_HOLD_SECONDS: Final = 75.0  # longer than the minute after which a torn gang is undone
_FILL_SECONDS: Final = 0.5


async def besiege(ground: Ground) -> str | None:
    """Tear the next gang that boards, and lay siege to its clique."""
    if _SIEGE in ground.healing:
        return None
    victim: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    def refuses(name: str, node: str) -> bool:
        if not victim.done() and _may_tear(ground, name):
            victim.set_result((name, node))
        return victim.done() and victim.result()[0] == name

    ground.errors.refuses = refuses
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            name, node = await victim
    except TimeoutError:
        ground.errors.refuses = None
        return None
    ground.healing[_SIEGE] = asyncio.create_task(_hold(ground, node))
    return f"{name} is not bound, and its clique is besieged"


async def _hold(ground: Ground, node: str) -> None:
    """Fill the clique of the node again and again; give it back after a while, or when the run is over."""
    clique = ground.nodes[node]["metadata"]["labels"].get(CLIQUE)
    clock = asyncio.get_running_loop().time
    end = clock() + _HOLD_SECONDS
    try:
        while clock() < end and not ground.over.is_set():
            if await _filled(ground, clique):
                ground.errors.refuses = None  # nothing but the lack of room keeps the member out now
            await asyncio.sleep(_FILL_SECONDS)
        await insist(lambda: ground.delete("pod", "-l", f"{FOREIGN}={_SIEGE}"))
    finally:
        ground.errors.refuses = None
        del ground.healing[_SIEGE]


async def _filled(ground: Ground, clique: str) -> bool:
    """Take every free node of the clique; whether that worked (the API server may be away)."""
    nodes, used = ground.nodes, taken(ground.observer.snapshot().pods.values())
    here = [n for n, node in nodes.items() if node["metadata"]["labels"].get(CLIQUE) == clique]
    free = [n for n in here if capacity(nodes, n) - used[n] >= GPUS]
    try:
        if free:
            number = ground.rng.randrange(10**6)
            await ground.kube.apply(NAMESPACE, [_besieger(f"siege-{number}-{n}", n) for n in sorted(free)])
    except KubectlError:
        return False
    return True


def _may_tear(ground: Ground, name: str) -> bool:
    """Whether it is the last member of a StatefulSet whose gang was never aboard."""
    pods = {p["metadata"]["name"]: p for p in ground.pods if is_live(p) and not node_of(p)}
    owners = (pods[name]["metadata"].get("ownerReferences") or ()) if name in pods else ()
    sets = {s["metadata"]["uid"]: s for s in ground.observer.snapshot().statefulsets.values()}
    owner = next((sets[o["uid"]] for o in owners if o["uid"] in sets), None)
    judge = ground.observer.checker
    if owner is None or not isinstance(judge, Judge):
        return False
    gang, size = owner["metadata"]["name"], int(owner["spec"]["replicas"])
    # Half a clique at most: the gang must fit elsewhere while this clique is besieged.
    last = 2 <= size <= 9 and name == f"{gang}-{size - 1}"
    return last and f"{NAMESPACE}/{gang}" not in judge.aboard


def _besieger(name: str, node: str) -> Json:
    return pod(name, {FOREIGN: _SIEGE}, nodeName=node, schedulerName="somebody-else")
