"""The permit of one gang: who has a seat, who stands at the barrier, when all may go.

    Gathering ─► Waiting ─► Granted ─► Boarding ─► Aboard
                    ▲           │          │
                    └─ cancelled (a member refused or gone, no news for a minute, too late)

Once a member is released its Binding is being created, and nothing but the API server's answer decides:
until then the seat is neither given up nor granted again, however late that answer is.

State changes only through step(permit, event, now): a new permit and the effects that its owner has to
carry out. A permit knows members by UID and nothing of Pods, planning or HTTP.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from gangs.parts import Part
from gangs.room import Domain

QUIET_SECONDS: Final = 60.0  # barrier without a new arrival (design rule 9)
BOARDING_SECONDS: Final = 480.0  # a boarding in all; NVCA re-creates an instance after 600
# Quick at first: each failure teaches the planner a node to avoid, so the next plan is another one.
_BACKOFF_SECONDS: Final = (0.5, 0.5, 0.5, 1.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

_NO_SEATS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Permit:
    """A gang's permit.

    seats: node by UID, of members that were granted one and are not bound yet.
    missing: how many must stand at the barrier before the first may be bound; 0: none.
    subgroups: of each of them so many, None for a gang without.
    arrived: UIDs that wait at the barrier. released: the barrier has opened.
    binding: UIDs that are released and whose Binding has no answer yet.
    deadline: when this boarding ends at the latest (epoch seconds, absolute: it survives restarts).
    failures, not_before: cancelled boardings in a row, and when the next may begin.
    """

    seats: Mapping[str, str] = field(default_factory=lambda: _NO_SEATS)
    domain: Domain = ()
    missing: int = 0
    subgroups: Part | None = None
    arrived: frozenset[str] = frozenset()
    binding: frozenset[str] = frozenset()
    released: bool = False
    last_news: float = 0.0
    deadline: float = 0.0
    failures: int = 0
    not_before: float = 0.0

    @property
    def boarding(self) -> bool:
        """Whether seats are granted that nobody sits in yet."""
        return bool(self.seats)

    def enough(self, uids: Set[str]) -> bool:
        """Whether the barrier opens once these members stand at it."""
        if not self.missing:
            return bool(uids)
        return len(uids) >= self.missing and (self.subgroups is None or self.subgroups.met(uids))


@dataclass(frozen=True, slots=True)
class Granted:
    """The planner found seats. deadline: of an earlier grant that a restart takes over, else None."""

    seats: Mapping[str, str]
    domain: Domain
    missing: int
    deadline: float | None = None
    subgroups: Part | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A member passed every check of kube-scheduler and asks to be bound."""

    uid: str


@dataclass(frozen=True, slots=True)
class Withdrew:
    """kube-scheduler no longer waits for the answer to this member's bind."""

    uid: str


@dataclass(frozen=True, slots=True)
class Unbound:
    """The Binding of a released member was not made, and kube-scheduler was told so."""

    uid: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A member can't take its seat: refused by a check, deleted, or its node became unfit.

    certain: its Binding was refused, or the Pod is no more. Anything less is ignored while the Binding is
    being created.
    """

    uid: str
    why: str
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A member sits on its node."""

    uid: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Granted | Arrived | Withdrew | Unbound | Lost | Bound | Tick


@dataclass(frozen=True, slots=True)
class Release:
    """Bind these members now."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Answer the waiting bind calls of these members with this text; their seats are gone."""

    uids: frozenset[str]
    why: str


Effect = Release | Cancel


def step(permit: Permit, event: Event, now: float, jitter: float = 0.0) -> tuple[Permit, tuple[Effect, ...]]:
    """The permit after the event, and what must be done. jitter: 0..1, spreads the back-off."""
    match event:
        case Granted():
            return _grant(permit, event, now), ()
        case Arrived(uid):
            return _arrive(permit, uid, now)
        case Withdrew(uid):
            return replace(permit, arrived=permit.arrived - {uid}), ()
        case Unbound(uid) if uid in permit.binding:
            return replace(permit, binding=permit.binding - {uid}, last_news=now), ()
        case Unbound():
            return permit, ()
        case Bound(uid):
            return _settle(permit, uid)
        case Lost():
            return _lose(permit, event, now, jitter)
        case Tick():
            return _expire(permit, now, jitter)


def _grant(permit: Permit, grant: Granted, now: float) -> Permit:
    # Members of a gang that is aboard are granted seats one after another, beside those on their way.
    kept = permit.seats if permit.released else _NO_SEATS
    return replace(
        permit,
        seats={**kept, **grant.seats},
        domain=grant.domain,
        missing=grant.missing,
        subgroups=grant.subgroups,
        arrived=frozenset(),
        binding=permit.binding & frozenset(kept),
        released=grant.missing == 0,
        last_news=now,
        deadline=now + BOARDING_SECONDS if grant.deadline is None else grant.deadline,
    )


def _arrive(permit: Permit, uid: str, now: float) -> tuple[Permit, tuple[Effect, ...]]:
    if uid not in permit.seats:
        return permit, (Cancel(frozenset({uid}), "this member has no seat any more"),)
    if uid in permit.binding:
        return permit, ()  # asked again; the Binding under way answers this call, too
    arrived = permit.arrived | {uid}
    if not permit.released and not permit.enough(arrived):
        return replace(permit, arrived=arrived, last_news=now), ()
    gone = replace(
        permit, arrived=frozenset(), binding=permit.binding | arrived, released=True, last_news=now
    )
    return gone, (Release(arrived),)


def _settle(permit: Permit, uid: str) -> tuple[Permit, tuple[Effect, ...]]:
    return replace(_without(permit, uid), failures=0, not_before=0.0), ()


def _lose(permit: Permit, lost: Lost, now: float, jitter: float) -> tuple[Permit, tuple[Effect, ...]]:
    if lost.uid not in permit.seats or (lost.uid in permit.binding and not lost.certain):
        return permit, ()
    told: tuple[Effect, ...] = ()
    if lost.uid in permit.arrived:
        told = (Cancel(frozenset({lost.uid}), lost.why),)
    rest = _without(permit, lost.uid)
    if permit.released:
        return (rest if rest.seats else _backed_off(rest, now, jitter)), told
    if permit.enough(rest.seats.keys()):
        return rest, told
    cancelled, effects = _cancel(rest, lost.why, now, jitter)
    return cancelled, told + effects


def _without(permit: Permit, uid: str) -> Permit:
    seats = {u: n for u, n in permit.seats.items() if u != uid}
    return replace(permit, seats=seats, arrived=permit.arrived - {uid}, binding=permit.binding - {uid})


def _expire(permit: Permit, now: float, jitter: float) -> tuple[Permit, tuple[Effect, ...]]:
    late = permit.seats.keys() - permit.binding
    if not late or now < min(permit.last_news + QUIET_SECONDS, permit.deadline):
        return permit, ()
    absent = len(late) - len(permit.arrived)
    why = f"{absent} of {len(late)} members did not reach the barrier in time"
    return _cancel(permit, why, now, jitter)


def _cancel(permit: Permit, why: str, now: float, jitter: float) -> tuple[Permit, tuple[Effect, ...]]:
    told: tuple[Effect, ...] = (Cancel(permit.arrived, why),) if permit.arrived else ()
    kept = {u: n for u, n in permit.seats.items() if u in permit.binding}
    return _backed_off(replace(permit, seats=kept, arrived=frozenset()), now, jitter), told


def _backed_off(permit: Permit, now: float, jitter: float) -> Permit:
    pause = _BACKOFF_SECONDS[min(permit.failures, len(_BACKOFF_SECONDS) - 1)] * (1 + jitter / 2)
    return replace(permit, failures=permit.failures + 1, not_before=now + pause)
