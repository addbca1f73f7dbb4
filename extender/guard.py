"""The guard: which nodes a Pod may use, answered from memory.

A member of a gang may use the node that its permit gave it and no other; without a seat, none. A loose
Pod may use what is promised to nobody. kube-scheduler reads FailedAndUnresolvableNodes as "evicting
somebody won't help", so our refusals never start its preemption; the texts are constant because a
changed text re-queues the Pod.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import Rounds
from extender.store import PermitStore
from gangs.contract import GPU, NODE_CLIQUE
from gangs.nodes import Node, Shape
from gangs.pods import Pod
from gangs.room import Room, fitting
from gangs.sentences import REFUSED_OTHER_NODE, REFUSED_PROMISED, REFUSED_WAITING

MAX_SCORE = 10  # extender/v1 MaxExtenderPriority


@dataclass(frozen=True, slots=True)
class Verdict:
    """Nodes that pass, and the reason for each that does not."""

    passed: Sequence[str]
    refused: Mapping[str, str] = field(default_factory=dict)


class Guard:
    """Answers kube-scheduler's filter, prioritize and preempt calls."""

    def __init__(
        self,
        registry: Registry,
        room: Room,
        store: PermitStore,
        rounds: Rounds,
        queues: Queues,
        shape: Callable[[Pod], Shape] = attrgetter("shape"),
    ) -> None:
        self._shape = shape
        self._registry = registry
        self._room = room
        self._store = store
        self._rounds = rounds
        self._queues = queues

    def filter(self, pod: Pod, nodes: Sequence[str]) -> Verdict:
        """Which of the nodes the Pod may use. pod: as kube-scheduler sees it, which may lag."""
        if not pod.gang:
            return self._filter_loose(pod, nodes)
        known = self._registry.pods.get(pod.uid)
        seat = self._store.seat(known) if known else None
        if known is None or seat is None:
            return Verdict((), dict.fromkeys(nodes, REFUSED_WAITING))
        if seat in nodes:
            return Verdict((seat,), {n: REFUSED_OTHER_NODE for n in nodes if n != seat})
        if pod.nominated == seat:
            # Nominated nodes are tried first and alone, so its own filters have refused this one.
            self._store.lose(known, "kube-scheduler's own filters refused the node")
        return Verdict((), dict.fromkeys(nodes, REFUSED_OTHER_NODE))

    def prioritize(self, pod: Pod, nodes: Sequence[str]) -> dict[str, int]:
        """Scores 0..10 for a loose Pod: nodes of no clique first, then the fullest cliques."""
        rooms = self._room.domains((NODE_CLIQUE,), self._shape(pod))
        most = max((room.slots for room in rooms.values()), default=0)
        scores = {}
        for name in nodes:
            node = self._room.nodes.get(name)
            room = rooms.get((node.labels.get(NODE_CLIQUE, ""),)) if node else None
            scores[name] = MAX_SCORE - (MAX_SCORE * room.slots // most if room and most else 0)
        return scores

    def preempt(self, pod: Pod, victims: Mapping[str, Sequence[str]]) -> list[str]:
        """The nodes (with victims' UIDs) on which kube-scheduler may preempt for the Pod.

        It thinks of one node at a time: a gang gains nothing by one seat, and a gang that lost a member
        of its floor is broken. Whole gangs are preempted by the planner, not here.
        """
        if pod.gang:
            return []
        return [node for node, uids in victims.items() if not self._breaks_a_gang(uids)]

    def _filter_loose(self, pod: Pod, nodes: Sequence[str]) -> Verdict:
        if why := self._queues.refusal(pod):
            return Verdict((), dict.fromkeys(nodes, why))
        passed, refused = [], {}
        requests = self._shape(pod).requests
        for name in nodes:
            node = self._room.nodes.get(name)
            if node and self._is_open(requests, node):
                passed.append(name)
            else:
                refused[name] = REFUSED_PROMISED
        return Verdict(passed, refused)

    def _is_open(self, requests: Mapping[str, int], node: Node) -> bool:
        kept = self._rounds.keeper.kept
        if kept and GPU in requests and kept.holds(node):
            return False
        return fitting(requests, self._room.free(node)) > 0

    def _breaks_a_gang(self, victims: Sequence[str]) -> bool:
        pods = [p for uid in victims if (p := self._registry.pods.get(uid)) and p.gang]
        for key in {p.key for p in pods}:
            gang = self._registry.muster(key)
            if gang and not gang.enough({p.uid for p in gang.bound} - set(victims)):
                return True
        return False
