"""The kinds of faults. Each does its harm once and says what it did; None where it found nothing to harm.

What would last is healed after some seconds (Ground.heal_later), so the cluster never runs dry.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Final

from e2e.chaos.errors import STATUSES
from e2e.chaos.ground import API_SERVER, ASLEEP, Ground
from e2e.chaos.judge import FOREIGN
from e2e.chaos.latecomer import late_volume
from e2e.chaos.overtake import overtake
from e2e.chaos.siege import besiege
from e2e.checker import capacity, gpus_of, is_live, node_of, taken
from e2e.expected import CLIQUE
from e2e.pods import GPUS, HOSTNAME, pod
from e2e.proxy import Proxy

Kind = Callable[[Ground], Awaitable[str | None]]

_PARTS: Final = ("extender", "webhook", "kube-scheduler")
_ERRORS: Final = "errors"
_TAINT: Final = {"key": "chaos/taint", "effect": "NoSchedule"}


def killing(part: str) -> Kind:
    """kill -9; whoever supervises the part starts it again."""

    async def kill(ground: Ground) -> str | None:
        return f"{part} is killed" if ground.send(part, signal.SIGKILL) else None

    return kill


def pausing(part: str, longest: float) -> Kind:
    """SIGSTOP for a while: it neither answers nor hangs up."""

    async def pause(ground: Ground) -> str | None:
        what, seconds = f"{ASLEEP}{part}", ground.rng.uniform(0.5, longest)
        if what in ground.healing or not ground.send(part, signal.SIGSTOP):
            return None

        async def wake() -> None:
            ground.send(part, signal.SIGCONT)

        ground.heal_later(what, seconds, wake)
        return f"{part} sleeps for {seconds:.1f} s"

    return pause


async def kill_api_server(ground: Ground) -> str | None:
    """kill -9 of kube-apiserver; the local cluster starts what is missing of it."""
    if not ground.send(API_SERVER, signal.SIGKILL):
        return None
    await asyncio.sleep(ground.rng.uniform(0.0, 2.0))
    await ground.restart_cluster()
    return "kube-apiserver is killed and started anew"


def erring(status: int) -> Kind:
    """Half of our parts' writes get this status for some seconds."""

    async def err(ground: Ground) -> str | None:
        seconds = ground.rng.uniform(1.0, 4.0)
        if _ERRORS in ground.healing:
            return None
        ground.errors.status = status

        async def end() -> None:
            ground.errors.status = 0

        ground.heal_later(_ERRORS, seconds, end)
        return f"half of all writes get {status} for {seconds:.1f} s"

    return err


def dropping(proxy: Proxy) -> Kind:
    """Every watch of our parts breaks."""

    async def drop(_: Ground) -> str | None:
        return f"{proxy.cut_watches()} watches are cut"

    return drop


async def cordon(ground: Ground) -> str | None:
    """A node takes no more Pods."""
    name = _some_node(ground)
    await ground.patch_node(name, {"spec": {"unschedulable": True}})
    ground.heal_later(
        f"cordon {name}", 10, lambda: ground.patch_node(name, {"spec": {"unschedulable": None}})
    )
    return f"{name} is cordoned"


async def taint(ground: Ground) -> str | None:
    """A node gets a taint that nobody tolerates."""
    name = _some_node(ground)
    await ground.patch_node(name, {"spec": {"taints": [_TAINT]}})
    ground.heal_later(f"taint {name}", 10, lambda: ground.patch_node(name, {"spec": {"taints": None}}))
    return f"{name} is tainted"


async def not_ready(ground: Ground) -> str | None:
    """A node's kubelet is lost."""
    name = _some_node(ground)
    await ground.set_ready(name, "False")
    ground.heal_later(f"ready {name}", 8, lambda: ground.set_ready(name, "True"))
    return f"{name} is not ready"


async def delete_node(ground: Ground) -> str | None:
    """A node vanishes, its Pods with it, and comes back empty."""
    name = _some_node(ground)
    node = ground.nodes[name]
    await ground.delete("node", name)
    here = [p["metadata"]["name"] for p in ground.pods if node_of(p) == name]
    if here:
        await ground.delete("pod", *here)
    meta = {"name": name, "labels": node["metadata"]["labels"]}
    fresh = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": node["status"]}
    ground.heal_later(f"node {name}", 6, lambda: ground.create(fresh))
    return f"{name} is deleted"


async def relabel(ground: Ground) -> str | None:
    """A node without members moves into another clique, and back when it is empty again."""
    name = _some_node(ground, lambda n: not ground.used(n))
    if not name:
        return None
    labels = ground.nodes[name]["metadata"]["labels"]
    others = sorted({n["metadata"]["labels"].get(CLIQUE, "") for n in ground.nodes.values()} - {""})
    other = ground.rng.choice([c for c in others if c != labels[CLIQUE]])
    await ground.patch_node(name, {"metadata": {"labels": {CLIQUE: other}}})
    ground.heal_later(f"label {name}", 5, lambda: ground.restore_label(name, labels[CLIQUE]))
    return f"{name} moves into another clique"


async def delete_pod(ground: Ground) -> str | None:
    """A member is deleted, whatever state it is in."""
    pods = [p["metadata"]["name"] for p in ground.pods if is_live(p)]
    if not pods:
        return None
    name = ground.rng.choice(sorted(pods))
    await ground.delete("pod", name)
    return f"Pod {name} is deleted"


async def foreign_bind(ground: Ground) -> str | None:
    """Another scheduler binds a Pod to a node with room, preferably promised room."""
    known = ground.observer.snapshot()
    used, held = taken(known.pods.values()), ground.promised
    room = [n for n in known.nodes if capacity(known.nodes, n) - used[n] >= GPUS]
    if not room:
        return None
    node = ground.rng.choice(sorted(n for n in room if n in held) or sorted(room))
    name = f"foreign-{ground.rng.randrange(10**9)}"
    await ground.create(pod(name, {FOREIGN: "yes"}, schedulerName="somebody-else", nodeName=node))
    ground.heal_later(f"pod {name}", 8, lambda: ground.delete("pod", name))
    return f"another scheduler binds {name} to {node}"


async def aimed_pod(ground: Ground) -> str | None:
    """A Pod of our scheduler that belongs to no gang will have this very node, which is promised to one."""
    node, name = await ground.promise(), f"aimed-{ground.rng.randrange(10**9)}"
    if not node:
        return None
    await ground.create(pod(name, schedulerName="allaboard", nodeSelector={HOSTNAME: node}))
    ground.heal_later(f"pod {name}", 6, lambda: ground.delete("pod", name))
    return f"Pod {name} aims at {node}"


async def kubelet_refuses(ground: Ground) -> str | None:
    """The kubelet turns a member away that was bound to it."""
    pods = [p for p in ground.pods if is_live(p) and node_of(p) and gpus_of(p)]
    if not pods:
        return None
    name = ground.rng.choice(sorted(p["metadata"]["name"] for p in pods))
    await ground.fail_pod(name, "OutOfnvidia.com/gpu")
    return f"the kubelet refuses {name}"


_ALWAYS: Final[dict[str, Kind]] = {
    **{f"kill {part}": killing(part) for part in _PARTS},
    **{f"pause {part}": pausing(part, 4.0) for part in _PARTS},
    f"kill {API_SERVER}": kill_api_server,
    f"pause {API_SERVER}": pausing(API_SERVER, 3.0),
    **{f"answer {status}": erring(status) for status in STATUSES},
    "cordon node": cordon,
    "taint node": taint,
    "node not ready": not_ready,
    "delete node": delete_node,
    "relabel node": relabel,
    "delete pod": delete_pod,
    "aimed pod": aimed_pod,
    "foreign bind": foreign_bind,
    "kubelet refuses": kubelet_refuses,
    "late volume": late_volume,
    "overtake promise": overtake,
    "unfinishable gang": besiege,
}
_DROP: Final = "drop watches"
NAMES: Final = tuple(sorted([*_ALWAYS, _DROP]))


def kinds(proxy: Proxy) -> dict[str, Kind]:
    """All of them by name."""
    return {**_ALWAYS, _DROP: dropping(proxy)}


def _some_node(ground: Ground, allowed: Callable[[str], bool] = lambda _: True) -> str:
    """A node with GPUs; half of the time one that is promised to a member, where the harm is greatest."""
    nodes = sorted(n for n in ground.nodes if allowed(n) and capacity(ground.nodes, n))
    hot = [n for n in ground.promised if n in nodes]
    pool = hot if hot and ground.rng.random() < 0.5 else nodes
    return ground.rng.choice(pool) if pool else ""
