"""Are the promises kept? Snapshots of the cluster in, violations out.

    partial    some members of a gang are bound, fewer than its floor, on two looks 5 s apart
    spread     a gang that asked for one domain has live members in two
    overcommit more GPUs are taken on a node than it has
    theft      a Pod of the same scheduler was bound to room that was promised to a gang (nominated)

Pure: no clock, no client. A gang that only loses members on their way out is not partial: terminating
Pods count neither as bound nor as missing once their workload is gone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from e2e.expected import CLIQUE, Gang, gangs

Json = Mapping[str, Any]

PARTIAL_SECONDS: Final = 5.0
_GPU: Final = "nvidia.com/gpu"
_GANG: Final = "allaboard.dev/gang"
_OUR_SCHEDULERS: Final = ("allaboard", "kai-scheduler")


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise."""

    promise: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment (seconds, any clock), by UID or name."""

    at: float
    pods: Mapping[str, Json]
    nodes: Mapping[str, Json]
    statefulsets: Mapping[str, Json]
    claims: Mapping[str, Json] = field(default_factory=dict)


class Checker:
    """Looks at snapshot after snapshot; violations holds what was found, each once."""

    def __init__(self) -> None:
        self.violations: dict[Violation, float] = {}
        self.looks = 0
        self._partial_since: dict[str, float] = {}
        self._bound: set[str] = set()

    def look(self, snapshot: Snapshot) -> None:
        """Judge this moment."""
        self.looks += 1
        live = {uid: pod for uid, pod in snapshot.pods.items() if is_live(pod)}
        found = [*self._thefts(snapshot, live), *_overcommits(snapshot)]
        asked = gangs(live.values(), snapshot.statefulsets.values())
        for gang in asked:
            found += [*self._partial(gang, live, snapshot.at), *_spread(gang, live, snapshot.nodes)]
        for gone in self._partial_since.keys() - {gang.name for gang in asked}:
            del self._partial_since[gone]
        for violation in found:
            self.violations.setdefault(violation, snapshot.at)
        self._bound = {uid for uid, pod in live.items() if node_of(pod)}

    def of(self, namespace: str) -> list[Violation]:
        """What was found in one namespace, and on nodes, which belong to none."""
        return [v for v in self.violations if v.subject.startswith(f"{namespace}/") or "/" not in v.subject]

    def _partial(self, gang: Gang, live: Mapping[str, Json], at: float) -> Iterable[Violation]:
        bound = sum(bool(node_of(live[uid])) for uid in gang.members)
        if not 0 < bound < gang.floor:
            self._partial_since.pop(gang.name, None)
            return ()
        since = self._partial_since.setdefault(gang.name, at)
        if at - since < PARTIAL_SECONDS:
            return ()
        return (Violation("partial", gang.name, f"{bound} of {gang.floor} members are bound"),)

    def _thefts(self, snapshot: Snapshot, live: Mapping[str, Json]) -> Iterable[Violation]:
        held = promised(live)
        used = taken(snapshot.pods.values())
        for uid in live.keys() - self._bound:
            pod, node = live[uid], node_of(live[uid])
            if not node or _is_member(pod) or pod["spec"]["schedulerName"] not in _OUR_SCHEDULERS:
                continue
            if held[node] and used[node] + held[node] > capacity(snapshot.nodes, node):
                detail = f"bound to {node}, where {held[node]} GPUs were promised to a gang"
                yield Violation("theft", _name(pod), detail)


def _spread(gang: Gang, live: Mapping[str, Json], nodes: Mapping[str, Json]) -> Iterable[Violation]:
    if not gang.level:
        return
    # A node that is gone has no domain any more; its Pods are on their way out.
    used = {node_of(live[uid]) for uid in gang.members} & nodes.keys()
    domains = {_label(nodes, node, gang.level) for node in used}
    if len(domains) > 1:
        yield Violation("spread", gang.name, f"members are in {len(domains)} domains of {gang.level}")


def _overcommits(snapshot: Snapshot) -> Iterable[Violation]:
    for node, gpus in taken(snapshot.pods.values()).items():
        has = capacity(snapshot.nodes, node)
        if gpus > has and node in snapshot.nodes:
            yield Violation("overcommit", node, f"{gpus} GPUs taken of {has}")


def promised(live: Mapping[str, Json]) -> Counter[str]:
    """GPUs by node that are promised to gang members not bound yet."""
    held: Counter[str] = Counter()
    for pod in live.values():
        node = (pod.get("status") or {}).get("nominatedNodeName")
        if node and not node_of(pod) and _is_member(pod):
            held[node] += gpus_of(pod)
    return held


def taken(pods: Iterable[Json]) -> Counter[str]:
    """GPUs by node that bound Pods take."""
    used: Counter[str] = Counter()
    for pod in pods:
        if node_of(pod) and not is_finished(pod):
            used[node_of(pod)] += gpus_of(pod)
    return used


def gpus_of(pod: Json) -> int:
    """GPUs that the Pod asks for."""
    limits = ((c.get("resources") or {}).get("limits") or {} for c in pod["spec"]["containers"])
    return sum(int(limit.get(_GPU, 0)) for limit in limits)


def capacity(nodes: Mapping[str, Json], name: str) -> int:
    """GPUs that the node has, 0 where there is no such node."""
    node = nodes.get(name)
    return int(node["status"]["allocatable"].get(_GPU, 0)) if node else 0


def _label(nodes: Mapping[str, Json], name: str, key: str) -> str:
    node = nodes.get(name)
    return str(node["metadata"]["labels"].get(key, "")) if node else ""


def node_of(pod: Json) -> str:
    """Where the Pod is bound, "" if it isn't."""
    return str(pod["spec"].get("nodeName") or "")


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _is_member(pod: Json) -> bool:
    return _GANG in (pod["metadata"].get("labels") or {})


def is_finished(pod: Json) -> bool:
    """Whether it has run to its end, good or bad."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_live(pod: Json) -> bool:
    """Whether it is neither finished nor on its way out."""
    return not is_finished(pod) and "deletionTimestamp" not in pod["metadata"]


def cliques(snapshot: Snapshot, namespace: str) -> dict[str, int]:
    """Live bound Pods of a namespace by clique."""
    counts: Counter[str] = Counter()
    for pod in snapshot.pods.values():
        if pod["metadata"]["namespace"] == namespace and is_live(pod) and node_of(pod):
            counts[_label(snapshot.nodes, node_of(pod), CLIQUE)] += 1
    return dict(counts)
