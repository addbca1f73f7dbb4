"""One gang's permit: every event in every state that it can meet."""

from gangs.parts import assemble
from gangs.permits import (
    BOARDING_SECONDS,
    QUIET_SECONDS,
    Arrived,
    Bound,
    Cancel,
    Effect,
    Event,
    Granted,
    Lost,
    Permit,
    Release,
    Tick,
    Unbound,
    Withdrew,
    step,
)
from gangs.subgroups import Subgroup

START = 1000.0


def seats(number: int, node: str = "a") -> dict[str, str]:
    return {f"m{i}": f"{node}{i}" for i in range(number)}


def run(permit: Permit, *events: Event, now: float = START) -> tuple[Permit, list[Effect]]:
    """All events at one time; the last permit and every effect."""
    told: list[Effect] = []
    for event in events:
        permit, effects = step(permit, event, now)
        told.extend(effects)
    return permit, told


def granted(number: int = 3, missing: int | None = None) -> Permit:
    grant = Granted(seats(number), ("a",), number if missing is None else missing)
    return run(Permit(), grant)[0]


def cancelled(*uids: str, why: str) -> Cancel:
    return Cancel(frozenset(uids), why)


class TestGrant:
    """Seats are given."""

    def test_it_sets_seats_and_an_absolute_deadline(self) -> None:
        permit = granted(3)
        assert permit.seats == seats(3)
        assert permit.boarding
        assert not permit.released
        assert permit.deadline == START + BOARDING_SECONDS

    def test_a_deadline_that_a_restart_takes_over_is_kept(self) -> None:
        permit, _ = step(Permit(), Granted(seats(2), ("a",), 2, deadline=1234.0), START)
        assert permit.deadline == 1234.0

    def test_seats_on_the_way_stay_when_others_join_a_gang_that_is_aboard(self) -> None:
        permit, _ = run(Permit(), Granted({"m0": "a0"}, ("a",), 0), Granted({"m1": "a1"}, ("a",), 0))
        assert permit.seats == {"m0": "a0", "m1": "a1"}
        assert permit.released

    def test_a_new_boarding_closes_the_barrier_again(self) -> None:
        permit, _ = run(granted(1), Arrived("m0"), Bound("m0"), Granted(seats(2), ("b",), 2))
        assert not permit.released
        assert permit.seats == seats(2)


class TestArrived:
    """A member asks to be bound."""

    def test_nobody_is_released_before_the_last_has_arrived_then_all_are(self) -> None:
        permit, told = run(granted(3), Arrived("m0"), Arrived("m1"))
        assert told == []
        permit, told = run(permit, Arrived("m2"))
        assert told == [Release(frozenset({"m0", "m1", "m2"}))]
        assert permit.released

    def test_the_same_member_twice_counts_once(self) -> None:
        assert run(granted(2), Arrived("m0"), Arrived("m0"))[1] == []

    def test_surplus_with_a_seat_does_not_hold_the_floor_up(self) -> None:
        permit, told = run(granted(3, missing=2), Arrived("m0"), Arrived("m2"))
        assert told == [Release(frozenset({"m0", "m2"}))]
        assert run(permit, Arrived("m1"))[1] == [Release(frozenset({"m1"}))]

    def test_one_without_a_seat_is_sent_back(self) -> None:
        assert run(granted(2), Arrived("x"))[1] == [cancelled("x", why="this member has no seat any more")]
        assert run(Permit(), Arrived("m0"))[1] == [cancelled("m0", why="this member has no seat any more")]

    def test_a_gang_that_is_aboard_takes_each_at_once(self) -> None:
        permit, _ = step(Permit(), Granted(seats(2), ("a",), 0), START)
        assert run(permit, Arrived("m1"))[1] == [Release(frozenset({"m1"}))]


class TestWithdrew:
    """kube-scheduler has hung up."""

    def test_the_member_no_longer_counts_as_arrived_but_keeps_its_seat(self) -> None:
        permit, told = run(granted(2), Arrived("m0"), Withdrew("m0"), Arrived("m1"))
        assert told == []
        assert permit.seats == seats(2)
        assert run(permit, Arrived("m0"))[1] == [Release(frozenset({"m0", "m1"}))]


class TestUnbound:
    """A released member's Binding was not made, and nobody asks for it."""

    def test_it_keeps_its_seat_and_is_released_at_once_when_it_comes_again(self) -> None:
        permit, _ = run(granted(2), Arrived("m0"), Arrived("m1"), Bound("m0"), Unbound("m1"))
        assert set(permit.seats) == {"m1"}
        assert run(permit, Arrived("m1"))[1] == [Release(frozenset({"m1"}))]

    def test_it_has_a_minute_to_come_again(self) -> None:
        permit, _ = run(granted(1), Arrived("m0"))
        permit, _ = step(permit, Unbound("m0"), START + 100)
        assert step(permit, Tick(), START + 159)[0].seats
        assert not step(permit, Tick(), START + 160)[0].seats


class TestLost:
    """A member can't take its seat."""

    def test_one_of_the_floor_cancels_the_boarding_and_those_who_wait_hear_why(self) -> None:
        permit, told = run(granted(3), Arrived("m0"), Arrived("m1"), Lost("m2", "no disk"))
        assert told == [cancelled("m0", "m1", why="no disk")]
        assert not permit.boarding
        assert not permit.arrived
        assert permit.failures == 1
        assert permit.not_before > START

    def test_the_lost_member_itself_hears_why_too(self) -> None:
        _, told = run(granted(2), Arrived("m0"), Lost("m0", "no disk"))
        assert told == [cancelled("m0", why="no disk")]

    def test_surplus_is_dropped_and_the_others_go_on(self) -> None:
        permit, told = run(granted(3, missing=2), Arrived("m0"), Lost("m2", "no disk"))
        assert told == []
        assert set(permit.seats) == {"m0", "m1"}
        assert permit.failures == 0
        assert run(permit, Arrived("m1"))[1] == [Release(frozenset({"m0", "m1"}))]

    def test_after_the_release_the_others_go_on(self) -> None:
        permit, _ = run(granted(2), Arrived("m0"), Arrived("m1"))
        permit, told = run(permit, Lost("m0", "gone", certain=True))
        assert told == []
        assert set(permit.seats) == {"m1"}

    def test_while_its_binding_is_under_way_only_a_sure_loss_counts(self) -> None:
        permit, _ = run(granted(1), Arrived("m0"))
        assert run(permit, Lost("m0", "the node was cordoned")) == (permit, [])
        assert not run(permit, Lost("m0", "refused", certain=True))[0].seats

    def test_the_last_seat_lost_after_the_release_backs_off(self) -> None:
        permit, _ = run(granted(1), Arrived("m0"), Lost("m0", "gone", certain=True))
        assert permit.failures == 1

    def test_a_stranger_changes_nothing(self) -> None:
        permit = granted(2)
        assert run(permit, Lost("x", "?")) == (permit, [])


class TestBound:
    """A member sits on its node."""

    def test_its_seat_is_used_up(self) -> None:
        permit, _ = run(granted(2), Arrived("m0"), Arrived("m1"), Bound("m0"))
        assert set(permit.seats) == {"m1"}

    def test_when_all_are_bound_nobody_boards_any_more(self) -> None:
        permit, _ = run(granted(2), Arrived("m0"), Arrived("m1"), Bound("m0"), Bound("m1"))
        assert not permit.boarding

    def test_it_ends_the_back_off(self) -> None:
        permit, _ = run(granted(1), Lost("m0", "x"), Granted(seats(1), ("a",), 1), Arrived("m0"), Bound("m0"))
        assert (permit.failures, permit.not_before) == (0, 0.0)


class TestTick:
    """Time passes."""

    def test_a_minute_without_an_arrival_cancels(self) -> None:
        permit, _ = run(granted(2), Arrived("m0"))
        assert step(permit, Tick(), START + QUIET_SECONDS - 0.1) == (permit, ())
        after, told = step(permit, Tick(), START + QUIET_SECONDS)
        assert told == (cancelled("m0", why="1 of 2 members did not reach the barrier in time"),)
        assert not after.boarding

    def test_each_arrival_gives_the_others_another_minute(self) -> None:
        permit, _ = step(granted(3), Arrived("m0"), START + 50)
        assert step(permit, Tick(), START + 100)[0].boarding
        assert not step(permit, Tick(), START + 110)[0].boarding

    def test_no_boarding_lasts_longer_than_its_deadline_however_many_arrive(self) -> None:
        permit, now = granted(20), START
        for number in range(15):
            now = START + number * 50
            permit, _ = step(permit, Tick(), now)
            if not permit.boarding:
                break
            permit, _ = step(permit, Arrived(f"m{number}"), now)
        assert now == START + 500
        assert permit.failures == 1

    def test_a_deadline_in_the_past_cancels_at_once(self) -> None:
        permit, _ = step(Permit(), Granted(seats(2), ("a",), 2, deadline=START - 1), START)
        assert not step(permit, Tick(), START)[0].boarding

    def test_without_seats_there_is_nothing_to_expire(self) -> None:
        assert step(Permit(), Tick(), START + 10**6) == (Permit(), ())

    def test_a_member_that_never_comes_loses_its_seat_in_a_gang_that_is_aboard_too(self) -> None:
        permit, _ = step(Permit(), Granted(seats(1), ("a",), 0), START)
        assert not step(permit, Tick(), START + QUIET_SECONDS)[0].boarding

    def test_a_released_member_never_loses_its_seat_to_the_clock(self) -> None:
        permit, _ = run(granted(3, missing=2), Arrived("m0"), Arrived("m1"))
        after, told = step(permit, Tick(), START + BOARDING_SECONDS)
        assert told == ()
        assert set(after.seats) == {"m0", "m1"}
        assert step(after, Tick(), START + 10 * BOARDING_SECONDS) == (after, ())


class TestBackOff:
    """Cancelled boardings in a row."""

    def test_it_grows_up_to_half_a_minute(self) -> None:
        permit, pauses = Permit(), []
        for _ in range(14):
            permit, _ = run(permit, Granted(seats(1), ("a",), 1), Lost("m0", "x"))
            pauses.append(permit.not_before - START)
        assert pauses == sorted(pauses)
        assert pauses[0] == 0.5
        assert pauses[-1] == 30.0

    def test_jitter_spreads_it_by_half_at_most(self) -> None:
        permit, _ = step(granted(1), Lost("m0", "x"), START, jitter=1.0)
        assert permit.not_before == START + 0.75


class TestSubgroups:
    """So many of each subgroup, not only so many in all."""

    def test_the_barrier_opens_when_each_subgroup_is_there(self) -> None:
        permit, told = run(of_two_subgroups(), Arrived("m0"), Arrived("m1"), Arrived("m2"))
        assert not permit.released
        assert told == []
        _, told = run(permit, Arrived("m3"))
        assert told == [Release(frozenset({"m0", "m1", "m2", "m3"}))]

    def test_losing_surplus_of_one_subgroup_changes_nothing_and_losing_the_floor_of_the_other_cancels(
        self,
    ) -> None:
        permit, told = run(of_two_subgroups(), Arrived("m0"), Lost("m1", "gone"))
        assert permit.seats.keys() == {"m0", "m2", "m3"}
        assert told == []
        permit, told = run(permit, Lost("m3", "gone"))
        assert permit.seats == {}
        assert told == [cancelled("m0", why="gone")]


def of_two_subgroups() -> Permit:
    """m0 to m2 are of one subgroup that needs one of them, m3 is of another; two are needed in all."""
    one, other = Subgroup("one", 1), Subgroup("other", 1)
    whole = assemble([*((f"m{i}", (one,)) for i in range(3)), ("m3", (other,))], None)
    return run(Permit(), Granted(seats(4), ("a",), 2, subgroups=whole))[0]
