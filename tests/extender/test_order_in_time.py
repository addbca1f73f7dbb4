"""Rule 14 over time, simulated: a stream of small gangs never starves one that needs a whole clique."""

import random

import pytest

from gangs.pods import Pod
from tests.builders import LEVEL, make_members
from tests.extender.world import World

_SECONDS = 400
_RUNS_FOR = 20  # seconds that a small gang holds its nodes
_COMES = 60  # when the big gang does
_BIG = ("default", "big")


class Stream:
    """Small gangs that come every second, run, and go; more of them than there is room for."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)
        self._waiting: list[list[Pod]] = []
        self._running: list[tuple[float, list[Pod]]] = []

    def second(self, number: int) -> None:
        """A second passes: one gang comes, who has a seat is bound, who has run to its end leaves."""
        size = self._rng.randint(1, 2)
        gang = make_members(size, name=f"small-{number}", required=LEVEL, created=number)
        self._waiting.append(gang)
        self._world.update(*gang)
        self._world.round(after=1)
        for members in [w for w in self._waiting if all(self._world.seats(*w))]:
            self._waiting.remove(members)
            self._world.bind(*members)
            self._running.append((number + _RUNS_FOR, members))
        for end, members in [r for r in self._running if r[0] <= number]:
            self._running.remove((end, members))
            for pod in members:
                self._world.pods.drop(pod.uid)


@pytest.mark.parametrize("seed", range(5))
def test_a_whole_clique_gang_boards_once_those_that_ran_before_it_are_done(seed: int) -> None:
    world = World(dict.fromkeys("abcd", 4))
    stream = Stream(world, seed)
    ahead = 0  # since when nobody is ahead of it
    for number in range(1, _SECONDS):
        stream.second(number)
        if number == _COMES:
            world.update(*make_members(4, name="big", required=LEVEL, created=number))
        if world.rounds.keeper.head == _BIG:
            ahead = ahead or number
        if world.store.permit(_BIG).seats:
            assert ahead, "it was never made to wait, so this shows nothing"
            assert number - ahead <= _RUNS_FOR + 1
            return
    raise AssertionError(f"it still waits after {_SECONDS} s")


def test_without_the_kept_domain_it_would_starve(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(dict.fromkeys("abcd", 4))
    monkeypatch.setattr(world.rounds.keeper, "keep_for", lambda *_: None)
    stream = Stream(world, 0)
    for number in range(1, _SECONDS):
        stream.second(number)
        if number == _COMES:
            world.update(*make_members(4, name="big", required=LEVEL, created=number))
    assert not world.store.permit(_BIG).seats
