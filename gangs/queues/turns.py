"""The order in which gangs are looked at (rule 14 of the design).

From the root down the queue with the strongest claim is chosen, and of a leaf the first gang by priority
and age. What a gang was granted counts for the next choice, so this is an iterator: the caller enters a
grant into the ledger before it asks for the next gang. Only the queues on that gang's path are weighed
anew; the others have not changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gangs.order import Rank
from gangs.queues.amounts import Amounts
from gangs.queues.fairness import Claim, claim
from gangs.queues.ledger import Ledger
from gangs.queues.tree import Queue


@dataclass(frozen=True, slots=True)
class Turn:
    """A gang in line. queue: a leaf; need: what must board at once."""

    queue: str
    rank: Rank
    need: Amounts


Claimant = tuple[Claim, Rank, str]


@dataclass(slots=True)
class _Line:
    """A queue with gangs in line: those of a leaf, last first, or those of its children."""

    queue: Queue
    turns: list[Turn] = field(default_factory=list)
    claimants: list[Claimant] = field(default_factory=list)


def in_turn(turns: Iterable[Turn], ledger: Ledger, capacity: Amounts) -> Iterator[Turn]:
    """Each gang once, next the one whose turn it is by what the ledger says then."""
    return iter(_Lines(turns, ledger, capacity))


def passes(one: Turn, other: Turn, ledger: Ledger, capacity: Amounts) -> bool:
    """Whether one may go before the other however long that has been first in line.

    In one queue by priority and age. Of two queues, those just below what they have in common are compared,
    by quota and priority but not by share: a small gang more or less would turn that round every moment.
    """
    if one.queue == other.queue:
        return one.rank < other.rank
    paths = [reversed(ledger.tree.paths[turn.queue]) for turn in (one, other)]
    ours, theirs = next((a, b) for a, b in zip(*paths, strict=False) if a != b)
    queues = ledger.tree.queues
    mine = claim(queues[ours], ledger.held(ours), one.need, capacity)
    others = claim(queues[theirs], ledger.held(theirs), other.need, capacity)
    return mine.rank < others.rank


class _Lines:
    def __init__(self, turns: Iterable[Turn], ledger: Ledger, capacity: Amounts) -> None:
        self._ledger = ledger
        self._capacity = capacity
        self._lines: dict[str, _Line] = {"": _Line(Queue(""))}
        for turn in sorted(turns, key=lambda t: t.rank, reverse=True):
            self._line(turn.queue).turns.append(turn)
        self._weigh_all("")

    def __iter__(self) -> Iterator[Turn]:
        while self._lines[""].claimants:
            path = list(self._descend())
            yield self._lines[path[-1]].turns.pop()
            for parent, name in reversed(list(zip(["", *path], path, strict=False))):
                self._weigh(parent, name)

    def _line(self, name: str) -> _Line:
        """The queue's line; made with those of its ancestors."""
        for queue in self._ledger.tree.paths[name]:
            if queue not in self._lines:
                self._lines[queue] = _Line(self._ledger.tree.queues[queue])
        return self._lines[name]

    def _weigh_all(self, name: str) -> None:
        for child in self._ledger.tree.children.get(name, ()):
            if child in self._lines:
                self._weigh_all(child)
                self._weigh(name, child)

    def _weigh(self, parent: str, name: str) -> None:
        """Put the queue into its parent's line, if somebody stands in its own."""
        turn = self._next(name)
        if turn:
            line = self._lines[name]
            strength = claim(line.queue, self._ledger.held(name), turn.need, self._capacity)
            heappush(self._lines[parent].claimants, (strength, turn.rank, name))

    def _next(self, name: str) -> Turn | None:
        """Whose turn it is within the queue."""
        while claimants := self._lines[name].claimants:
            name = claimants[0][2]
        turns = self._lines[name].turns
        return turns[-1] if turns else None

    def _descend(self) -> Iterator[str]:
        """From the root to the leaf whose turn it is; each queue leaves its parent's line for now."""
        name = ""
        while claimants := self._lines[name].claimants:
            name = heappop(claimants)[2]
            yield name
