"""What became of each boarding is written down once, whatever way it ended."""

from dataclasses import replace

from extender.journal import MOST_ENTRIES, Journal, Outcome
from gangs.permits import QUIET_SECONDS, Arrived, Bound, Event, Granted, Permit, step
from tests.builders import KEY
from tests.extender.world import World, gang


def outcomes(world: World) -> list[tuple[str, int, bool]]:
    return [(row.outcome.value, row.members, row.whole) for row in world.store.journal.entries]


def test_a_boarding_is_granted_and_ends_aboard_with_its_duration() -> None:
    world, pods = World(), gang(3)
    world.board(*pods)
    world.clock.advance(4)
    world.bind(*pods)
    assert outcomes(world) == [("granted", 3, True), ("boarded", 3, True)]
    last = world.store.journal.entries[-1]
    assert (last.number, last.seconds, last.domain, last.key) == (2, 4, ("a",), ("default", "llm"))


def test_a_member_that_is_refused_cancels_it() -> None:
    world, pods = World(), gang(3)
    world.board(*pods)
    world.store.lose(world.registry.pods["u-llm-1"], "no disk")
    assert outcomes(world) == [("granted", 3, True), ("cancelled", 3, True)]


def test_members_that_never_come_let_it_expire() -> None:
    world = World()
    world.board(*gang(3))
    world.clock.advance(QUIET_SECONDS)
    world.store.tick()
    assert outcomes(world)[-1] == ("expired", 3, True)


def test_surplus_that_joins_while_the_floor_is_bound_does_not_hide_that_the_gang_boards() -> None:
    journal, permit = Journal(), Permit()
    floor = Granted({"u0": "a0", "u1": "a1"}, ("a",), missing=2)
    surplus = Granted({"u2": "a2"}, ("a",), missing=0)
    come: tuple[Event, ...] = (
        floor,
        Arrived("u0"),
        Arrived("u1"),
        surplus,
        *(Bound(f"u{i}") for i in range(3)),
    )
    for now, event in enumerate(come):
        before, (permit, _) = permit, step(permit, event, now)
        journal.saw(KEY, before, event, permit, now)
    assert [(row.outcome, row.members, row.whole) for row in journal.entries] == [
        (Outcome.GRANTED, 2, True),
        (Outcome.GRANTED, 3, True),
        (Outcome.BOARDED, 3, True),
    ]


def test_a_replacement_boards_singly() -> None:
    world, pods = World(), gang(3)
    world.board(*pods)
    world.bind(*pods)
    world.pods.drop("u-llm-1")
    again = replace(pods[1], uid="u-again")
    world.board(again)
    world.bind(again)
    assert outcomes(world)[2:] == [("granted", 1, False), ("boarded", 1, False)]


def test_it_is_told_to_listeners_and_forgets_the_oldest() -> None:
    world, told = World(), []
    world.store.journal.listeners.append(lambda entry: told.append(entry.outcome))
    for number in range(MOST_ENTRIES):
        [pod] = gang(1, name=f"g{number}")
        world.board(pod)
        world.bind(pod)
        world.pods.drop(pod.uid)
        world.round()
    assert len(world.store.journal.entries) == MOST_ENTRIES
    assert told == [Outcome.GRANTED, Outcome.BOARDED] * MOST_ENTRIES
