"""Every state of a permit with every event: all that can be reached is walked through, none is left out.

A gang of three members, two of which must board at once. States that differ only in times are one; from
each, every event is sent, and what it leads to must be in the table below, and all of the table must occur.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from gangs.permits import (
    Arrived,
    Bound,
    Cancel,
    Event,
    Granted,
    Lost,
    Permit,
    Release,
    Tick,
    Unbound,
    Withdrew,
)
from gangs.permits import step as take

MEMBERS: Final = ("m0", "m1", "m2")
NOW: Final = 1000.0
FLOOR: Final = 2
SEATS: Final = {uid: f"n-{uid}" for uid in MEMBERS}


def phase(permit: Permit) -> str:
    """no seats: Gathering or Waiting, which the planning round tells apart, or all are aboard."""
    if not permit.seats:
        return "no seats"
    if permit.released:
        return "released"
    return "boarding" if permit.arrived else "granted"


def events(permit: Permit) -> Iterator[tuple[str, Event, float]]:
    """What may come in this state, with its name and time; grants as the planning round makes them."""
    for uid in MEMBERS:
        yield "arrived", Arrived(uid), NOW
        yield "withdrew", Withdrew(uid), NOW
        yield "unbound", Unbound(uid), NOW
        yield "lost", Lost(uid, "why"), NOW
        yield "surely lost", Lost(uid, "why", certain=True), NOW
        yield "bound", Bound(uid), NOW
        if permit.released and uid not in permit.seats:
            yield "granted surplus", Granted({uid: SEATS[uid]}, ("a",), 0), NOW
    if not permit.seats:
        yield "granted", Granted(SEATS, ("a",), FLOOR), NOW
        yield "granted the floor", Granted({u: SEATS[u] for u in MEMBERS[:FLOOR]}, ("a",), FLOOR), NOW
    yield "tick", Tick(), NOW
    yield "late tick", Tick(), NOW + 600.0


def timeless(permit: Permit) -> Permit:
    """The same with its clocks as at the beginning."""
    failures = min(permit.failures, 1)
    return replace(permit, failures=failures, last_news=NOW, deadline=NOW + 480.0, not_before=0.0)


Step = tuple[Permit, str, Event, Permit, tuple[Release | Cancel, ...]]


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """Every step from every state that can be reached."""
    first = timeless(Permit())
    seen, queue, found = {_key(first)}, deque([first]), []
    while queue:
        before = queue.popleft()
        for name, event, now in events(before):
            after, effects = take(before, event, now)
            found.append((before, name, event, after, effects))
            if _key(after) not in seen:
                seen.add(_key(after))
                queue.append(timeless(after))
    return found


def _key(permit: Permit) -> object:
    seats = frozenset(permit.seats)
    return seats, permit.missing, permit.arrived, permit.binding, permit.released, min(permit.failures, 1)


_SAME: Final = ("withdrew", "unbound", "tick")

# The state, and what each event leads to. A gang whose floor is aboard is released for good: its surplus
# and replacements are granted seats one by one.
TABLE: Final[dict[tuple[str, str], set[str]]] = {
    **{
        ("no seats", e): {"no seats"}
        for e in (*_SAME, "arrived", "lost", "surely lost", "bound", "late tick")
    },
    ("no seats", "granted"): {"granted"},
    ("no seats", "granted the floor"): {"granted"},
    ("no seats", "granted surplus"): {"released"},
    **{("granted", e): {"granted"} for e in _SAME},
    ("granted", "arrived"): {"granted", "boarding"},  # a stranger's arrival changes nothing
    ("granted", "lost"): {"granted", "no seats"},  # surplus, or one of the floor
    ("granted", "surely lost"): {"granted", "no seats"},
    ("granted", "bound"): {"granted", "no seats"},
    ("granted", "late tick"): {"no seats"},
    ("boarding", "arrived"): {"boarding", "released"},
    ("boarding", "withdrew"): {"boarding", "granted"},
    ("boarding", "unbound"): {"boarding"},
    ("boarding", "lost"): {"boarding", "granted", "no seats"},
    ("boarding", "surely lost"): {"boarding", "granted", "no seats"},
    ("boarding", "bound"): {"boarding", "granted", "no seats"},
    ("boarding", "tick"): {"boarding"},
    ("boarding", "late tick"): {"no seats"},
    **{("released", e): {"released"} for e in (*_SAME, "arrived", "granted surplus")},
    ("released", "lost"): {"released", "no seats"},  # while its Binding is under way only a sure loss counts
    ("released", "surely lost"): {"released", "no seats"},
    ("released", "bound"): {"released", "no seats"},
    ("released", "late tick"): {"released", "no seats"},
}


def test_each_event_leads_where_the_table_says_and_all_of_the_table_occurs(steps: list[Step]) -> None:
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for before, name, _, after, _ in steps:
        seen[phase(before), name].add(phase(after))
    assert dict(seen) == TABLE


def test_the_walk_is_no_short_one(steps: list[Step]) -> None:
    assert len({_key(before) for before, *_ in steps}) == 143


def test_nobody_is_released_before_the_floor_has_arrived(steps: list[Step]) -> None:
    for before, _, event, after, effects in steps:
        for effect in effects:
            if isinstance(effect, Release):
                assert isinstance(event, Arrived)
                assert effect.uids <= before.seats.keys()
                assert before.released or len(effect.uids) >= before.missing
                assert effect.uids <= after.binding


def test_whoever_waits_at_the_barrier_and_loses_the_seat_is_answered(steps: list[Step]) -> None:
    for before, _, event, after, effects in steps:
        answered = frozenset().union(*(e.uids for e in effects if isinstance(e, Cancel)))
        gone = before.arrived - after.seats.keys()
        if not isinstance(event, Bound):
            assert gone <= answered


def test_a_binding_under_way_ends_only_by_an_answer(steps: list[Step]) -> None:
    for before, _, event, after, _ in steps:
        sure = isinstance(event, Bound | Unbound) or (isinstance(event, Lost) and event.certain)
        decided = {event.uid} if sure and hasattr(event, "uid") else set()
        assert before.binding - decided <= after.binding


def test_a_seat_is_lost_only_to_an_event_that_says_so(steps: list[Step]) -> None:
    for before, name, _, after, _ in steps:
        if name in ("arrived", "withdrew", "unbound", "tick"):
            assert after.seats == before.seats


def test_a_cancelled_boarding_always_backs_off(steps: list[Step]) -> None:
    for before, name, _, after, _ in steps:
        cancelled = before.seats and not after.seats and name not in ("bound",)
        if cancelled:
            assert after.failures > 0
            assert after.not_before > NOW
