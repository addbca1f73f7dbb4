"""The tree of queues, and what is wrong with a queue that a gang names.

Gangs board by leaf queues. A queue whose parent doesn't exist, or whose parents form a circle, is out of
use with everything below it, as in KAI.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Final

from gangs.queues.amounts import NOTHING, Amounts

DEFAULT_PRIORITY: Final = 100


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue object. parent: "" for a root.

    quota: what it is entitled to. limit: what it may hold at most. weight: its share of what is left over
    once quotas are served. priority: a higher one is served first.
    preempt_min_seconds, reclaim_min_seconds: for how long its gangs are safe from those of a higher priority,
    and from other queues; None: as its parent says.
    """

    name: str
    parent: str = ""
    priority: int = DEFAULT_PRIORITY
    quota: Amounts = NOTHING
    limit: Amounts = NOTHING
    weight: Amounts = NOTHING
    preempt_min_seconds: float | None = None
    reclaim_min_seconds: float | None = None


class Flaw(Enum):
    """Why no gang can board by a queue."""

    MISSING = auto()
    INNER = auto()
    ORPHAN = auto()
    CYCLE = auto()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a queue. others: the leaves there are, its children, the parent that is missing,
    or the circle, in the order of Flaw.
    """

    flaw: Flaw
    queue: str
    others: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """All queues by name. False where there is none: then gangs stand in one line, without limits."""

    queues: dict[str, Queue] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.queues)

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """Names of the direct children by parent, sorted."""
        found: dict[str, list[str]] = {}
        for queue in self.queues.values():
            found.setdefault(queue.parent, []).append(queue.name)
        return {parent: tuple(sorted(names)) for parent, names in found.items()}

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Every queue in use: itself and its ancestors, the root last."""
        walks = {name: self._ascend(name) for name in self.queues}
        return {name: path for name, (path, end) in walks.items() if end == ""}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Names of the queues by which gangs board, sorted."""
        return tuple(sorted(self.paths.keys() - self.children.keys()))

    def problem(self, name: str) -> Problem | None:
        """Why no gang can board by this queue, None where it can."""
        if name in self.paths and name not in self.children:
            return None
        if name not in self.queues:
            return Problem(Flaw.MISSING, name, self.leaves)
        path, end = self._ascend(name)
        if end in path:
            return Problem(Flaw.CYCLE, name, (*path[path.index(end) :], end))
        if end:
            return Problem(Flaw.ORPHAN, name, (end,))
        return Problem(Flaw.INNER, name, self.children[name])

    def inherited(self, name: str, field: str) -> float | None:
        """The field's value of the queue, else of the nearest ancestor that has one."""
        values = (getattr(self.queues[queue], field) for queue in self.paths.get(name, ()))
        return next((float(value) for value in values if value is not None), None)

    def _ascend(self, name: str) -> tuple[tuple[str, ...], str]:
        """The way up, and where it ends: "" above a root, else a queue that is missing or was met before."""
        path: list[str] = []
        while name in self.queues and name not in path:
            path.append(name)
            name = self.queues[name].parent
        return tuple(path), name


def tree_of(queues: Iterable[Queue]) -> Tree:
    """The tree of these queues."""
    return Tree({queue.name: queue for queue in queues})
