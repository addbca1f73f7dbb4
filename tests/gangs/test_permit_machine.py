"""Whatever happens to a permit, in whatever order, the promises hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gangs.parts import assemble
from gangs.permits import (
    BOARDING_SECONDS,
    QUIET_SECONDS,
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
    step,
)
from gangs.subgroups import Subgroup

UIDS = st.sampled_from([f"m{i}" for i in range(5)])


class PermitMachine(RuleBasedStateMachine):
    """Plays kube-scheduler, the watches, the clock and the planner against one permit."""

    def __init__(self) -> None:
        super().__init__()
        self.permit = Permit()
        self.now = 1000.0
        self.at_barrier: set[str] = set()  # members that wait for an answer
        self.granted_at = 0.0
        self.deadline = 0.0

    def send(self, event: Event) -> None:
        before = self.permit
        self.permit, effects = step(before, event, self.now)
        for effect in effects:
            match effect:
                case Release(uids):
                    self._check_release(before, event, uids)
                case Cancel(uids):
                    assert uids
                    assert not uids & self.permit.seats.keys(), "cancelled members still have seats"
            self.at_barrier -= effect.uids
        if self.permit.failures > before.failures:
            assert self.permit.not_before > self.now
            assert self.permit.seats.keys() == self.permit.binding
        if not isinstance(event, Bound | Lost):
            assert before.binding - {getattr(event, "uid", "")} <= self.permit.binding, (
                "a Binding was forgotten"
            )

    def _check_release(self, before: Permit, event: Event, uids: frozenset[str]) -> None:
        assert isinstance(event, Arrived), "only an arrival opens the barrier"
        assert uids <= before.seats.keys(), "released without a seat"
        assert uids <= self.at_barrier, "released without waiting"
        assert before.released or len(uids) >= before.missing, "released before all had come"
        if before.subgroups and not before.released:
            assert before.subgroups.met(uids), "released before each subgroup had its floor"

    # As the planning round does: no new grant while a boarding waits at the barrier.
    @precondition(lambda self: not self.permit.boarding and self.now >= self.permit.not_before)
    @rule(
        uids=st.sets(UIDS, min_size=1),
        floor=st.integers(1, 5),
        deadline=st.none() | st.floats(0, 600),
        of_each=st.integers(0, 2),
    )
    def grant(self, uids: set[str], floor: int, deadline: float | None, of_each: int) -> None:
        until = None if deadline is None else self.now + deadline
        halves = {half: sorted(u for u in uids if int(u[1:]) % 2 == half) for half in (0, 1)}
        floors = {half: Subgroup(str(half), min(of_each, len(members))) for half, members in halves.items()}
        rows = [(uid, (floors[half],)) for half, members in halves.items() for uid in members]
        parts = assemble(rows, None) if of_each else None
        need = max(min(floor, len(uids)), parts.least if parts else 0)
        self.send(Granted({uid: f"n-{uid}" for uid in uids}, ("a",), need, until, parts))
        self.deadline = self.now + BOARDING_SECONDS if until is None else until
        assert self.permit.seats.keys() == uids

    @precondition(lambda self: self.permit.released)
    @rule(uid=UIDS)
    def join(self, uid: str) -> None:
        before = dict(self.permit.seats)
        self.send(Granted({uid: f"n-{uid}"}, ("a",), 0))
        self.deadline = self.now + BOARDING_SECONDS
        assert self.permit.seats == {**before, uid: f"n-{uid}"}

    @rule(uid=UIDS)
    def arrive(self, uid: str) -> None:
        self.at_barrier.add(uid)
        self.send(Arrived(uid))

    @rule(uid=UIDS)
    def withdraw(self, uid: str) -> None:
        self.at_barrier.discard(uid)
        self.send(Withdrew(uid))

    @rule(uid=UIDS)
    def fail_to_bind(self, uid: str) -> None:
        seats = self.permit.seats
        if uid in self.permit.binding:
            self.at_barrier -= {uid}
        self.send(Unbound(uid))
        assert self.permit.seats == seats

    @rule(uid=UIDS, certain=st.booleans())
    def lose(self, uid: str, certain: bool) -> None:
        sure = certain or uid not in self.permit.binding
        if certain and uid in self.permit.binding:
            self.at_barrier -= {uid}  # the barrier itself answers whom it was binding
        self.send(Lost(uid, "why", certain))
        assert sure is (uid not in self.permit.seats)

    @rule(uid=UIDS)
    def bind(self, uid: str) -> None:
        self.at_barrier.discard(uid)
        self.send(Bound(uid))
        assert uid not in self.permit.seats
        assert self.permit.failures == 0

    @rule(seconds=st.floats(0, 700))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.send(Tick())
        assert self.permit.seats.keys() == self.permit.binding or self.now < self.deadline

    @invariant()
    def who_waits_is_who_has_arrived_and_has_a_seat(self) -> None:
        assert self.permit.arrived == self.at_barrier - self.permit.binding
        assert self.permit.arrived <= self.permit.seats.keys()

    @invariant()
    def the_deadline_of_a_boarding_never_moves(self) -> None:
        assert not self.permit.boarding or self.permit.deadline == self.deadline

    @invariant()
    def a_boarding_is_never_quiet_for_long(self) -> None:
        waiting = self.permit.seats.keys() - self.permit.binding
        assert not waiting or self.permit.last_news + QUIET_SECONDS >= self.now - 700


PermitMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestPermitMachine = PermitMachine.TestCase
