"""One planning round's line of gangs: whose turn it is, and how many members the limits let aboard.

A grant is entered at once, so two gangs of a round can't exceed a limit together. The first gang of a
queue that is whole and can't board has its amount reserved below the limits, as its domain is kept
(extender/keeper.py): those behind it board around that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from extender.queues import Queues
from gangs.muster import Muster
from gangs.order import in_order, rank
from gangs.pods import GangKey, Pod
from gangs.queues.amounts import NOTHING, Amounts, amounts_of, total
from gangs.queues.ledger import Excess
from gangs.queues.tree import Problem
from gangs.queues.turns import Turn, in_turn, passes


@dataclass(frozen=True, slots=True)
class Bid:
    """What a gang asks of its queue.

    members: those that could board now. need: what its floor still takes; whole: what all of them take.
    mixed: whether some of them are on the account of another queue.
    """

    gang: Muster
    members: tuple[Pod, ...]
    need: Amounts
    whole: Amounts
    mixed: bool


def bid(gang: Muster, seated: Collection[str]) -> Bid:
    """The gang's bid for its members without a seat."""
    members = tuple(p for p in gang.ready if p.uid not in seated)
    needs = [_need(pod) for pod in members]
    mixed = any(pod.queue != gang.queue for pod in members)
    lacking = max(1, gang.floor - len(gang.bound))
    return Bid(gang, members, total(needs[:lacking]), total(needs), mixed)


class Line:
    """One round. excesses: the limit that keeps a gang from boarding."""

    def __init__(self, queues: Queues) -> None:
        self.excesses: dict[GangKey, Excess] = {}
        self._queues = queues
        self._tree = queues.tree
        self._accounts = queues.accounts()
        self._waiting: set[str] = set()
        self._passes: dict[tuple[GangKey, GangKey], bool] = {}
        queues.reserved = []

    def in_turn(self, bids: Iterable[Bid], first: Collection[GangKey] = ()) -> Iterator[Muster]:
        """The gangs in the order in which they may board, as it follows from what is granted meanwhile.

        first: gangs that go on with what they have begun, and so go before all others.
        """
        by_key = {row.gang.key: row for row in bids}
        ahead = [key for key, row in by_key.items() if key in first or self.problem(row.gang)]
        if not self._tree:
            yield from in_order(row.gang for row in by_key.values())
            return
        yield from in_order(by_key.pop(key).gang for key in ahead)
        turns = [_turn(row) for row in by_key.values()]
        for turn in in_turn(turns, self._accounts, self._queues.capacity):
            yield by_key[turn.rank[-1]].gang

    def passes(self, row: Bid, head: Bid) -> bool:
        """Whether this gang may go before the one at the head."""
        if not self._tree or self.problem(row.gang) or self.problem(head.gang):
            return rank(row.gang) < rank(head.gang)
        pair = row.gang.key, head.gang.key
        if pair not in self._passes:
            self._passes[pair] = passes(_turn(row), _turn(head), self._accounts, self._queues.capacity)
        return self._passes[pair]

    def problem(self, gang: Muster) -> Problem | None:
        """What is wrong with the gang's queue."""
        return self._tree.problem(gang.queue) if self._tree else None

    def admitted(self, row: Bid) -> Sequence[Pod]:
        """The members that the limits let aboard, () where those are fewer than the floor."""
        gang, accounts = row.gang, self._accounts
        self.excesses.pop(gang.key, None)
        if not self._tree:
            return row.members
        if not row.mixed:
            if not accounts.excess(gang.queue, row.whole):
                return row.members
            if gang.missing and (excess := accounts.excess(gang.queue, row.need)):
                self.excesses[gang.key] = excess
                return ()
        members, excess = self._one_by_one(row.members)
        if excess and len(members) < (gang.missing or 1):
            self.excesses[gang.key] = excess
            return ()
        return members

    def granted(self, members: Iterable[Pod]) -> None:
        """These have got seats."""
        self._passes.clear()
        for pod in members:
            self._accounts.take(pod.queue, _need(pod))

    def reserve(self, row: Bid, has_hope: Callable[[Muster], bool]) -> None:
        """This gang is whole and has to wait: those behind it leave it its room below the limits.

        has_hope: whether it could board some day; asked only of a queue's first.
        """
        queue = row.gang.queue
        if queue in self._waiting or not self._accounts.is_limited(queue, row.need):
            return
        if self._accounts.hopeless(queue, row.need) or not has_hope(row.gang):
            return
        self._waiting.add(queue)
        self._accounts.reserve(queue, row.need)
        self._queues.reserved.append((queue, row.need))

    def _one_by_one(self, members: Iterable[Pod]) -> tuple[list[Pod], Excess | None]:
        """Those who fit below the limits together, and the first limit that somebody met."""
        fit, first = [], None
        for pod in members:
            excess = self._accounts.excess(pod.queue, _need(pod))
            if excess is None:
                self._accounts.take(pod.queue, _need(pod))
                fit.append(pod)
            first = first or excess
        for pod in fit:
            self._accounts.take(pod.queue, NOTHING - _need(pod))
        return fit, first


def _turn(row: Bid) -> Turn:
    return Turn(row.gang.queue, rank(row.gang), row.need)


def _need(pod: Pod) -> Amounts:
    return amounts_of(pod.shape.requests)
