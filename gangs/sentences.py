"""What people read when a gang waits: one sentence a state, the same in events, logs and command line.

Each names the gang, what it has and needs, and the nearest domain with its shortage. Never a line per
domain: the length does not grow with the cluster.
"""

from collections.abc import Mapping
from typing import Final

from gangs.contract import GPU
from gangs.devices import class_of
from gangs.muster import Muster
from gangs.nodes import Blocker
from gangs.planner import Rejection
from gangs.pods import Pod
from gangs.room import Domain
from gangs.shortage import TAKEN_BY, Shortage, Tie

MAX_BLOCKERS: Final = 4
MAX_SUBGROUPS: Final = 3

NO_AUTOSCALING: Final = (
    "Its Pods are gated while they wait, and a cluster autoscaler adds no nodes for gated Pods: "
    "nodes that are missing have to be added by hand, or --scale-up-after set."
)

# kube-scheduler re-queues a Pod whose failure text changes, so the guard's answers are constant.
REFUSED_WAITING: Final = "gang is waiting for its permit to board (see the Pod's events)"
REFUSED_OTHER_NODE: Final = "gang boards another node"
REFUSED_PROMISED: Final = "room is promised to a gang"
REFUSED_LIMIT: Final = "the Pod's queue, or one above it, has reached its limit (kubectl describe queue)"
REFUSED_QUEUE: Final = "the Pod's queue (label kai.scheduler/queue) does not exist or takes no Pods"


def gathering(gang: Muster, refused: str = "") -> str:
    """Members are missing. refused: what their controller says of it, "" if nothing."""
    here = len(gang.ready) + len(gang.bound)
    text = f"Gang {gang.name}: {here} of {gang.floor} members are here{_short(gang)}"
    if gang.gated:
        gates = sorted({gate for pod in gang.gated for gate in pod.foreign_gates})
        text += f"; {_count(len(gang.gated), 'Pod')} held by scheduling gate {', '.join(gates)}"
    absent = gang.floor - here - len(gang.gated)
    if absent > 0:
        text += f"; waiting for {absent} more {'Pod' if absent == 1 else 'Pods'} to be created"
        text += f". {refused}" if refused else ""
    return text + "."


def _short(gang: Muster) -> str:
    """Which subgroups have too few, where their number in all doesn't tell."""
    here = {pod.uid for pod in gang.ready + gang.bound}
    leaves = gang.subgroups.leaves if gang.subgroups else ()
    lacking = [leaf for leaf in leaves if not leaf.met(here)]
    if lacking:
        named = ", ".join(
            f"{p.name} has {len(p.members & here)} of {p.floor}" for p in lacking[:MAX_SUBGROUPS]
        )
        more = f" and {len(lacking) - MAX_SUBGROUPS} more" if len(lacking) > MAX_SUBGROUPS else ""
        return f"; subgroup {named}{more}"
    if gang.subgroups and not gang.enough(here) and len(here) >= gang.floor:
        return "; a subgroup has no member yet"
    return ""


def following(gang: Muster, leader: str) -> str:
    """Another gang has to be aboard first."""
    return f"Gang {gang.name} boards once gang {leader} is aboard."


def held(gang: Muster) -> str:
    """What was asked for can't be understood."""
    reasons = " ".join(note.message.rstrip(".") + "." for note in gang.notes if note.blocking)
    return f"Gang {gang.name} can't board: {reasons}"


def waiting(gang: Muster, rejection: Rejection) -> str:
    """All are here, but there is no room."""
    here = len(gang.ready) + len(gang.bound)
    head = f"Gang {gang.name}: {here} of {max(gang.floor, here)} members are here"
    nearest = rejection.nearest
    if nearest is None:
        levels = " and ".join(gang.required)
        if rejection.home:
            home = "/".join(rejection.home)
            return f"{head}; the others run in {home}, and no node has that {levels} label now."
        return f"{head}; they need nodes with label {levels}, and no node has it."
    whose = f"its subgroup {rejection.part} needs" if rejection.part else "needs"
    text = f"{head}; {whose} {_need(nearest)}. {_closest(nearest)}"
    if rejection.crowded:
        text += " Each of its subgroups would find room there, but not all of them at once."
    if rejection.kept_for:
        text += f" Room elsewhere is kept for gang {rejection.kept_for}, which is ahead in the queue."
    if rejection.tie:
        text += f" {_tied(gang, rejection.tie)}"
    elif help := _help(nearest, rejection):
        text += f" {help}"
    return text


def _help(nearest: Shortage, rejection: Rejection) -> str:
    """One thing to do, "" where another sentence says what there is to wait for."""
    lacks = nearest.need - nearest.have
    if rejection.largest is not None and rejection.largest < nearest.need:
        where = nearest.level[-1] if nearest.level else "cluster"
        most = f"No {where} holds more than {rejection.largest} even when empty."
        return (
            f"{most} What would help: fewer members at once{', or a wider level' if nearest.level else ''}."
        )
    if rejection.kept_for or lacks <= 0:
        return ""
    return f"What would help: {_remedy(nearest, lacks)}."


def _remedy(nearest: Shortage, lacks: int) -> str:
    if not nearest.whole_nodes:
        return f"room for {_count(lacks, 'more Pod')}"
    held = dict(nearest.blockers)
    taken = sum(nodes for words, nodes in nearest.blockers if words.startswith(TAKEN_BY))
    if taken >= lacks:
        return f"{_count(lacks, 'taken node')} coming free"
    if held.get(Blocker.CORDONED, 0) >= lacks:
        return f"uncordoning {_count(lacks, 'node')}"
    if held.get(Blocker.TAINTED, 0) >= lacks:
        return f"tolerating the taint of {_count(lacks, 'node')}, or removing it"
    return f"room on {_count(lacks, 'more node')}"


def _tied(gang: Muster, tie: Tie) -> str:
    name = next((pod.name for pod in gang.ready if pod.uid == tie.uid), "a member")
    if not tie.number:
        return f"{name} is tied by a volume or claim to nodes of which none exists."
    more = f" and {tie.number - len(tie.nodes)} more" if tie.number > len(tie.nodes) else ""
    why = f" ({tie.nodes[0]}: {tie.why})" if tie.why else ""
    return f"{name} is tied by a volume or claim to {', '.join(tie.nodes)}{more}{why}."


def released(gang: Muster) -> str:
    """A gang that only more nodes can help has lost its gates."""
    return (
        f"Gang {gang.name} fits nowhere even if nobody else were there: its scheduling gates are dropped, so "
        "that a cluster autoscaler sees its Pods and can add nodes. It still boards whole or not at all."
    )


def torn(gang: Muster, evicted: bool, *, limited: bool = False) -> str:
    """A boarding could not be finished in its domain, or below the limit of its queue."""
    where = gang.required[-1] if gang.required else "domains"
    lacks = "is over the limit of its queue" if limited else f"finds no room in their {where}"
    text = (
        f"Gang {gang.name}: {len(gang.bound)} of {gang.floor} members are bound and the rest {lacks} "
        "for a minute now"
    )
    if evicted:
        return f"{text}; this one is evicted, so that the gang can board elsewhere."
    return f"{text}; nothing would re-create or evict this Pod, so it is kept: delete it to free the gang."


def stale(gang: Muster, evicted: bool) -> str:
    """A gang ran on for too long with members missing."""
    text = (
        f"Gang {gang.name}: {len(gang.bound)} of {gang.floor} members run, the others were lost and have not "
        f"come back within the staleness period of {gang.staleness:g} seconds"
    )
    if evicted:
        return f"{text}; this one is evicted, so that the gang can board anew."
    return f"{text}; this one could not be evicted (a PodDisruptionBudget may protect it) and is asked again."


def slipped(pod: Pod) -> str:
    """A Pod was created unseen by the webhook."""
    return (
        f"Pod {pod.namespace}/{pod.name} was created while Allaboard's webhook could not be reached: it is "
        "no member of its gang, and its gang waits for it. Delete it; its controller will create it anew."
    )


def backing_off(gang: Muster, why: str) -> str:
    """A boarding was cancelled and the next has not begun."""
    return f"Gang {gang.name}: boarding was cancelled ({why}); it is tried again shortly."


def refused(nodes: int, last: str) -> str:
    """Nodes that our planner would have taken, and kube-scheduler would not. last: what happened there."""
    return (
        f"kube-scheduler has refused {_count(nodes, 'node')} just now (see FailedScheduling in the Pods' "
        f"events); the last: {last}."
    )


def granted(gang: Muster, domain: Domain, seats: int, failed: str = "") -> str:
    """It boards. failed: why the boarding before was cancelled, "" if this is the first."""
    before = f"the boarding before was cancelled ({failed}); " if failed else ""
    return (
        f"Gang {gang.name}: {before}{_count(seats, 'member')} {'has' if seats == 1 else 'have'} a place"
        f"{_inside(domain)} and will be bound together once kube-scheduler has checked each of them."
    )


def boarded(gang: Muster, domain: Domain) -> str:
    """The floor is bound."""
    number = len(gang.bound)
    return f"Gang {gang.name} is aboard: {_count(number, 'member')} bound{_inside(domain)}."


def _inside(domain: Domain) -> str:
    return f" in {'/'.join(domain)}" if domain else ""


def _need(shortage: Shortage) -> str:
    one = _each(shortage.each)
    where = f" in one {shortage.level[-1]}" if shortage.level else ""
    if shortage.whole_nodes:
        return f"{_count(shortage.need, 'free node')} with {one}{where}"
    return f"room for {_count(shortage.need, 'Pod')} with {one} each{where}"


def _closest(shortage: Shortage) -> str:
    where = f"Closest: {'/'.join(shortage.domain)}" if shortage.domain else "The cluster"
    named, rest = shortage.blockers[:MAX_BLOCKERS], shortage.blockers[MAX_BLOCKERS:]
    parts = [f"{n} {words}" for words, n in named]
    if rest:
        all_taken = all(words.startswith(TAKEN_BY) for words, _ in rest)
        parts.append(f"{sum(n for _, n in rest)} {TAKEN_BY + 'others' if all_taken else 'for other reasons'}")
    detail = f" ({', '.join(parts)})" if parts else ""
    return f"{where} has {shortage.have}{detail}."


def _each(requests: Mapping[str, int]) -> str:
    parts = [_count(requests[GPU], "GPU")] if GPU in requests else []
    others = sorted((class_of(name) or name, value) for name, value in requests.items() if name != GPU)
    parts += [f"{value} {name}" for name, value in others if "/" in name or name in map(class_of, requests)]
    if "cpu" in requests:
        parts.append(f"{requests['cpu'] / 1000:g} CPU")
    if "memory" in requests:
        parts.append(f"{requests['memory'] / 2**30:.3g} GiB")
    return ", ".join(parts) or "a free Pod place"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
