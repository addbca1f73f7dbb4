"""What people read when a gang waits: one sentence a state, the same in events, logs and command line.

Each names the gang, what it has and needs, and the nearest domain with its shortage. Never a line per
domain: the length does not grow with the cluster.
"""

from collections.abc import Mapping
from typing import Final

from gangs.contract import GPU
from gangs.muster import Muster
from gangs.planner import Rejection
from gangs.pods import Pod
from gangs.shortage import TAKEN_BY, Shortage, Tie

MAX_BLOCKERS: Final = 4

# kube-scheduler re-queues a Pod whose failure text changes, so the guard's answers are constant.
REFUSED_WAITING: Final = "gang is waiting for its permit to board (see the Pod's events)"
REFUSED_OTHER_NODE: Final = "gang boards another node"
REFUSED_PROMISED: Final = "room is promised to a gang"
REFUSED_LIMIT: Final = "the Pod's queue, or one above it, has reached its limit (kubectl describe queue)"
REFUSED_QUEUE: Final = "the Pod's queue (label kai.scheduler/queue) does not exist or takes no Pods"


def gathering(gang: Muster, refused: str = "") -> str:
    """Members are missing. refused: what their controller says of it, "" if nothing."""
    here = len(gang.ready) + len(gang.bound)
    text = f"Gang {gang.name}: {here} of {gang.floor} members are here"
    if gang.gated:
        gates = sorted({gate for pod in gang.gated for gate in pod.foreign_gates})
        text += f"; {_count(len(gang.gated), 'Pod')} held by scheduling gate {', '.join(gates)}"
    absent = gang.floor - here - len(gang.gated)
    if absent > 0:
        text += f"; waiting for {absent} more {'Pod' if absent == 1 else 'Pods'} to be created"
        text += f". {refused}" if refused else ""
    return text + "."


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
        return f"{head}; they need nodes with label {levels}, and no node has it."
    text = f"{head}; needs {_need(nearest)}. {_closest(nearest)}"
    if rejection.kept_for:
        text += f" Room elsewhere is kept for gang {rejection.kept_for}, which is ahead in the queue."
    if rejection.tie:
        text += f" {_tied(gang, rejection.tie)}"
    return text


def _tied(gang: Muster, tie: Tie) -> str:
    name = next((pod.name for pod in gang.ready if pod.uid == tie.uid), "a member")
    if not tie.number:
        return f"{name} is tied by a volume or claim to nodes of which none exists."
    more = f" and {tie.number - len(tie.nodes)} more" if tie.number > len(tie.nodes) else ""
    why = f" ({tie.nodes[0]}: {tie.why})" if tie.why else ""
    return f"{name} is tied by a volume or claim to {', '.join(tie.nodes)}{more}{why}."


def torn(gang: Muster, evicted: bool, *, limited: bool = False) -> str:
    """A boarding could not be finished in its domain, or below the limit of its queue."""
    lacks = "is over the limit of its queue" if limited else f"finds no room in their {gang.required[-1]}"
    text = (
        f"Gang {gang.name}: {len(gang.bound)} of {gang.floor} members are bound and the rest {lacks} "
        "for a minute now"
    )
    if evicted:
        return f"{text}; this one is evicted, so that the gang can board elsewhere."
    return f"{text}; nothing would re-create or evict this Pod, so it is kept: delete it to free the gang."


def slipped(pod: Pod) -> str:
    """A Pod was created unseen by the webhook."""
    return (
        f"Pod {pod.namespace}/{pod.name} was created while Allaboard's webhook could not be reached: it is "
        "no member of its gang, and its gang waits for it. Delete it; its controller will create it anew."
    )


def backing_off(gang: Muster, why: str) -> str:
    """A boarding was cancelled and the next has not begun."""
    return f"Gang {gang.name}: boarding was cancelled ({why}); it is tried again shortly."


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
    parts += [f"{value} {name}" for name, value in sorted(requests.items()) if "/" in name and name != GPU]
    if "cpu" in requests:
        parts.append(f"{requests['cpu'] / 1000:g} CPU")
    if "memory" in requests:
        parts.append(f"{requests['memory'] / 2**30:.3g} GiB")
    return ", ".join(parts) or "a free Pod place"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
