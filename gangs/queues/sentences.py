"""What people read when it is its queue that a gang waits for."""

from typing import Final

from gangs.muster import Muster
from gangs.pods import Pod
from gangs.queues.ledger import Excess
from gangs.queues.tree import Flaw, Problem

_MOST_NAMES: Final = 8
_UNITS: Final = {"gpu": (1, "GPUs"), "cpu": (1000, "CPUs"), "memory": (10**9, "GB of memory")}


def no_queue(gang: Muster, problem: Problem) -> str:
    """The queue that the gang names is none by which it could board."""
    return f"Gang {gang.name} can't board: {flawed(problem)}; it boards once that is mended."


def flawed(problem: Problem) -> str:
    """What is wrong with a queue."""
    name, others = problem.queue, _names(problem.others)
    match problem.flaw:
        case Flaw.MISSING:
            return f'queue "{name}" does not exist (queues there are: {others})'
        case Flaw.INNER:
            return f'queue "{name}" has child queues and takes no workloads itself (allowed: {others})'
        case Flaw.ORPHAN:
            return f'queue "{name}" is out of use, as a parent queue "{others}" does not exist'
        case Flaw.CYCLE:
            return f'queue "{name}" is out of use, as its parent queues form a circle: {others}'


def over_limit(gang: Muster, excess: Excess) -> str:
    """There may be room, but a queue has as much as it may have."""
    size, unit = _UNITS[excess.resource]
    need, held, limit = (f"{value / size:g}" for value in (excess.need, excess.held, excess.limit))
    head = f"Gang {gang.name}: needs {need} {unit}"
    if excess.hopeless:
        return (
            f'{head}, more than the limit of queue "{excess.queue}", {limit}: it waits until that is raised.'
        )
    text = f'{head}; queue "{excess.queue}" holds {held} of its limit of {limit}'
    if excess.reserved:
        text += f", and {excess.reserved / size:g} are kept for gangs ahead of it"
    return f"{text}."


def evicted(victim: Pod, gang: Muster) -> str:
    """Why a Pod has to go."""
    return (
        f"Pod {victim.namespace}/{victim.name} is evicted for gang {gang.name} (queue {_queue(gang)}, "
        f"priority {gang.priority}), which boards once it is gone."
    )


def deleted(victim: Pod) -> str:
    """A victim whose eviction was refused for too long."""
    return (
        f"Pod {victim.namespace}/{victim.name} is deleted for gang {victim.evicted_for}: evicting it was "
        "refused for a minute, and the others of its gang are gone."
    )


def evicting(gang: Muster, pods: int, gangs: int) -> str:
    """What the gang that waits is told."""
    return (
        f"Gang {gang.name}: {pods} {'Pod' if pods == 1 else 'Pods'} are evicted for it, {gangs} "
        f"{'gang' if gangs == 1 else 'gangs'} of them whole; it boards once they are gone."
    )


def _queue(gang: Muster) -> str:
    return f'"{gang.queue}"' if gang.queue else "none"


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more if names else "none"
