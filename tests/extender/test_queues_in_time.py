"""Queues over time, simulated: a queue's big gang is not starved by another queue's small ones."""

import pytest

from gangs.pods import Pod
from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.tree import Queue
from tests.builders import LEVEL, make_members
from tests.extender.world import World

_SECONDS = 300
_RUNS_FOR = 8  # seconds that a small gang holds its node
_COMES = 40  # when the big gang does
_BIG = ("default", "big")
_FREE = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)


def a_queue(name: str, quota: float = 0) -> Queue:
    return Queue(name, quota=Amounts(quota, UNLIMITED, UNLIMITED), limit=_FREE, weight=Amounts(1, 1, 1))


class Stream:
    """Single Pods of the queue "small": one comes every so many seconds, runs, and goes."""

    def __init__(self, quota: float = 0, cliques: str = "ab", every: int = 1) -> None:
        self.world = World(dict.fromkeys(cliques, 4))
        self._every = every
        for queue in (a_queue("small", quota), a_queue("big")):
            self.world.queues.update(queue)
        self._waiting: list[Pod] = []
        self._running: list[tuple[int, Pod]] = []

    def second(self, number: int) -> None:
        if number % self._every == 0:
            (pod,) = make_members(1, name=f"small-{number}", required=LEVEL, created=number, queue="small")
            self._waiting.append(pod)
            self.world.update(pod)
        if number == _COMES:
            self.world.update(*make_members(4, name="big", required=LEVEL, created=number, queue="big"))
        self.world.round(after=1)
        for member in [p for p in self._waiting if self.world.seat(p)]:
            self._waiting.remove(member)
            self.world.bind(member)
            self._running.append((number + _RUNS_FOR, member))
        for end, member in [r for r in self._running if r[0] <= number]:
            self._running.remove((end, member))
            self.world.pods.drop(member.uid)

    def boards(self) -> int | None:
        """When the big gang has its seats; None where it waits to the end."""
        for number in range(1, _SECONDS):
            self.second(number)
            if self.world.store.permit(_BIG).seats:
                return number
        return None


@pytest.mark.parametrize(("cliques", "every"), [("ab", 1), ("a", 1), ("a", 4), ("a", 7)])
def test_a_queues_big_gang_boards_under_a_stream_of_small_ones_of_another_queue(
    cliques: str, every: int
) -> None:
    """Where the stream is thin its queue holds less than the big gang's would: its turn comes each time."""
    boarded = Stream(cliques=cliques, every=every).boards()
    assert boarded
    assert boarded - _COMES <= 2 * _RUNS_FOR


def test_a_stream_within_its_queues_quota_goes_before_a_gang_over_quota() -> None:
    """Eight nodes, all of which the stream's queue is entitled to."""
    assert Stream(quota=32).boards() is None


@pytest.mark.parametrize("quota", [8, 16])
def test_what_is_beyond_the_streams_quota_the_big_gang_gets_in_bounded_time(quota: float) -> None:
    boarded = Stream(quota).boards()
    assert boarded
    assert boarded - _COMES <= 4 * _RUNS_FOR
