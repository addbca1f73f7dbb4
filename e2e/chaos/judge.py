"""The checker for a cluster in which Pods die: what of that is a broken promise, and what isn't.

Beyond the checker of the demo: a gang that was whole once and loses a member is not partial (replacements
board singly); one that can't be finished where it began has a minute to find room before it must start anew
(rule 10); a node on which a Pod of others sits at that moment is not our overcommit; and a gang is stuck that
could board, by a search over the API's state, for 30 s and doesn't.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from e2e.checker import (
    Checker,
    Snapshot,
    Violation,
    capacity,
    gpus_of,
    is_finished,
    is_live,
    node_of,
    promised,
    taken,
)
from e2e.expected import CLIQUE, Gang, gangs

Json = Mapping[str, Any]

STUCK_SECONDS: Final = 30.0
BLIND_SECONDS: Final = 2.0
UNFINISHABLE_SECONDS: Final = 80.0  # the minute of rule 10, and time to notice and to evict
FOREIGN: Final = "chaos/foreign"  # label of Pods that another scheduler has bound


class Judge(Checker):
    """Looks at snapshot after snapshot.

    aboard: gangs that were whole at least once, by name. disturbed: whether something is kept from working
    just now, so that what is half done can't be at rest.
    """

    def __init__(self) -> None:
        super().__init__()
        self.aboard: set[str] = set()
        self.waiting: list[str] = []
        self.disturbed: Callable[[], bool] = lambda: False
        self._last = 0.0
        self._now = Snapshot(0.0, {}, {}, {})
        self._could: dict[str, float] = {}
        self._no_room_since: dict[str, float] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Judge this moment."""
        if snapshot.at - self._last > BLIND_SECONDS:  # nobody knows for how long it was so meanwhile
            self._partial_since.clear()
            self._could.clear()
            self._no_room_since.clear()
        if self.disturbed():  # at rest is what counts: this time doesn't
            passed = snapshot.at - self._last
            self._partial_since = {name: at + passed for name, at in self._partial_since.items()}
        self._last = snapshot.at
        live = {uid: pod for uid, pod in snapshot.pods.items() if is_live(pod)}
        asked = gangs(live.values(), snapshot.statefulsets.values())
        whole = {g.name for g in asked if sum(bool(node_of(live[uid])) for uid in g.members) >= g.floor}
        self.aboard |= whole
        self.waiting = sorted(g.name for g in asked if g.name not in whole)
        known = set(self.violations)
        self._now = snapshot
        super().look(snapshot)
        for violation in self.violations.keys() - known:
            if violation.promise == "overcommit" and violation.subject in _shared(snapshot):
                del self.violations[violation]
        for violation in self._stuck(asked, live, snapshot):
            self.violations.setdefault(violation, snapshot.at)

    def _partial(self, gang: Gang, live: Mapping[str, Json], at: float) -> Iterable[Violation]:
        if gang.name in self.aboard:
            return ()
        if any(node_of(live[uid]) for uid in gang.members) and not _fits(gang, live, self._now):
            self._partial_since.pop(gang.name, None)
            if at - self._no_room_since.setdefault(gang.name, at) < UNFINISHABLE_SECONDS:
                return ()
            return (Violation("partial", gang.name, "it can't be finished there, and isn't undone"),)
        self._no_room_since.pop(gang.name, None)
        return super()._partial(gang, live, at)

    def _thefts(self, snapshot: Snapshot, live: Mapping[str, Json]) -> Iterable[Violation]:
        """A boarding of which a member was refused is over, though its nominations still stand."""
        over = {_gang_label(pod) for pod in live.values() if _refused(pod)}
        rows = {uid: p for uid, p in live.items() if node_of(p) or _gang_label(p) not in over}
        return super()._thefts(snapshot, rows)

    def _stuck(self, asked: list[Gang], live: Mapping[str, Json], snapshot: Snapshot) -> Iterable[Violation]:
        """Only the oldest that waits: a domain may be kept for it, which holds up the others rightly."""
        waiting = [g for g in asked if g.name in self.waiting and len(g.members) >= g.floor]
        oldest = min(waiting, key=lambda g: _age(g, live), default=None)
        for name in self._could.keys() - ({oldest.name} if oldest else set()):
            del self._could[name]
        if oldest is None or _lacks_volume(oldest, live, snapshot) or not _fits(oldest, live, snapshot):
            self._could.clear()
            return
        since = self._could.setdefault(oldest.name, snapshot.at)
        if snapshot.at - since >= STUCK_SECONDS:
            yield Violation("stuck", oldest.name, f"there was room for it for {STUCK_SECONDS:.0f} s")


def _shared(snapshot: Snapshot) -> set[str]:
    """Nodes that somebody else's scheduler has put a Pod on."""
    rows = snapshot.pods.values()
    return {node_of(p) for p in rows if FOREIGN in (p["metadata"].get("labels") or {}) and not is_finished(p)}


def _gang_label(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get("allaboard.dev/gang", ""))


def _refused(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    said = any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)
    return said and not node_of(pod) and bool(_gang_label(pod))


def _age(gang: Gang, live: Mapping[str, Json]) -> tuple[str, str]:
    return min(str(live[uid]["metadata"]["creationTimestamp"]) for uid in gang.members), gang.name


def _fits(gang: Gang, live: Mapping[str, Json], snapshot: Snapshot) -> bool:
    """Whether its unbound members have room in one clique; members are alike, so counting is a search."""
    unbound = [live[uid] for uid in gang.members if not node_of(live[uid])]
    bound = {node_of(live[uid]) for uid in gang.members} - {""}
    need = gpus_of(unbound[0]) if unbound else 0
    if not need:
        return False
    others = {uid: pod for uid, pod in live.items() if uid not in gang.members}
    used, held = taken(snapshot.pods.values()), promised(others)
    slots: dict[str, int] = {}
    for name, node in snapshot.nodes.items():
        clique = node["metadata"]["labels"].get(CLIQUE)
        if clique and _open(node):
            free = capacity(snapshot.nodes, name) - used[name] - held[name]
            slots[clique] = slots.get(clique, 0) + max(0, free // need)
    here = {snapshot.nodes[n]["metadata"]["labels"].get(CLIQUE) for n in bound if n in snapshot.nodes}
    return any(count >= len(unbound) for clique, count in slots.items() if not here or clique in here)


def _lacks_volume(gang: Gang, live: Mapping[str, Json], snapshot: Snapshot) -> bool:
    """Whether a member waits for a volume: no scheduler can place it before that is bound.

    It excuses a gang that waits whole; not one of which a part is bound already.
    """
    waiting = [live[uid] for uid in gang.members if not node_of(live[uid])]
    return any(not _has_volumes(pod, snapshot) for pod in waiting)


def _has_volumes(pod: Json, snapshot: Snapshot) -> bool:
    volumes = pod["spec"].get("volumes") or ()
    names = {v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v}
    return all(
        (claim.get("status") or {}).get("phase") == "Bound"
        for claim in snapshot.claims.values()
        if claim["metadata"]["name"] in names
        and claim["metadata"]["namespace"] == pod["metadata"]["namespace"]
    )


def _open(node: Json) -> bool:
    spec = node.get("spec") or {}
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions") or ()
    )
    tainted = any(t["effect"] != "PreferNoSchedule" for t in spec.get("taints") or ())
    return ready and not spec.get("unschedulable") and not tainted
