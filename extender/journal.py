"""What became of each boarding: the timeline of the live page, and what metrics count.

    permit store ──► saw(before, event, after) ──► Entry ──► entries, listeners

Sees every change of every permit, and remembers only that seats were granted and how that ended.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gangs.permits import Bound, Event, Granted, Permit, Tick
from gangs.pods import GangKey
from gangs.room import Domain

MOST_ENTRIES: Final = 500


class Outcome(StrEnum):
    """What happened to a boarding."""

    GRANTED = "granted"  # it has begun
    BOARDED = "boarded"  # all who had a seat are bound
    CANCELLED = "cancelled"  # a member could not take its seat
    EXPIRED = "expired"  # not every member came to the barrier in time


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal.

    number: rises by one a line. at: epoch seconds. seconds: since the grant. members: who had a seat.
    whole: the gang boards as one; otherwise surplus or replacements board singly.
    """

    number: int
    at: float
    key: GangKey
    outcome: Outcome
    domain: Domain
    members: int
    seconds: float
    whole: bool


@dataclass(frozen=True, slots=True)
class _Boarding:
    at: float
    members: int
    whole: bool


class Journal:
    """The last boardings, newest last. listeners are called with each new entry and must not block."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=MOST_ENTRIES)
        self.listeners: list[Callable[[Entry], None]] = []
        self._boardings: dict[GangKey, _Boarding] = {}
        self._number = 0

    def saw(self, key: GangKey, before: Permit, event: Event, after: Permit, now: float) -> None:
        """A permit has changed."""
        if isinstance(event, Granted):
            self._boardings[key] = self._begin(key, before, event, now)
            self._write(key, Outcome.GRANTED, after.domain, now)
        elif key in self._boardings and (outcome := _end(before, event, after)):
            self._write(key, outcome, before.domain, now)
            if not after.boarding:
                del self._boardings[key]

    def oldest(self, now: float) -> float:
        """Seconds since the oldest boarding under way began, 0 where there is none."""
        return now - min((boarding.at for boarding in self._boardings.values()), default=now)

    def forget(self, key: GangKey) -> None:
        """The gang is gone, or somebody else leads now."""
        self._boardings.pop(key, None)

    def _begin(self, key: GangKey, before: Permit, grant: Granted, now: float) -> _Boarding:
        known = self._boardings.get(key)
        if known and before.boarding and before.released:  # surplus joins while the floor is being bound
            return _Boarding(known.at, known.members + len(grant.seats), known.whole)
        return _Boarding(now, len(grant.seats), grant.missing > 0)

    def _write(self, key: GangKey, outcome: Outcome, domain: Domain, now: float) -> None:
        boarding = self._boardings[key]
        self._number += 1
        seconds = max(0.0, now - boarding.at)
        entry = Entry(self._number, now, key, outcome, domain, boarding.members, seconds, boarding.whole)
        self.entries.append(entry)
        for listener in self.listeners:
            listener(entry)


def _end(before: Permit, event: Event, after: Permit) -> Outcome | None:
    """How the boarding has ended with this event, None where it goes on."""
    if after.failures > before.failures:
        return Outcome.EXPIRED if isinstance(event, Tick) else Outcome.CANCELLED
    if isinstance(event, Bound) and before.seats and not after.seats:
        return Outcome.BOARDED
    return None
