"""The reasons of our events: a fixed set, so that people can filter by them and alerts can count them.

`kubectl get events --field-selector reason=GangWaiting` finds what waits. docs/events.md lists them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why an event was written."""

    GATHERING = "GangGathering"
    HELD = "GangHeld"
    WAITING = "GangWaiting"
    NO_QUEUE = "GangHasNoQueue"
    OVER_LIMIT = "GangOverLimit"
    FOLLOWING = "GangFollowing"
    BACKING_OFF = "GangBackingOff"
    RELEASED = "GangReleased"
    EVICTING = "GangEvicting"
    EVICTED = "GangEvicted"
    GRANTED = "GangGranted"
    REPLANNED = "GangReplanned"
    BOARDED = "GangBoarded"
    TORN = "GangTorn"
    STALE = "GangStale"
    SLIPPED = "GangSlipped"
    NOTED = "GangNoted"

    @property
    def is_warning(self) -> bool:
        """Whether somebody has to do something: the event's type is Warning then."""
        return self in _WARNINGS


_WARNINGS: Final = frozenset({Reason.HELD, Reason.TORN, Reason.STALE, Reason.SLIPPED})

MEANINGS: Final[Mapping[Reason, str]] = {
    Reason.GATHERING: "Members are missing: not created yet, refused by a quota, or held by another gate.",
    Reason.HELD: "What was asked for can't be understood; the event names object, field and what is allowed.",
    Reason.WAITING: "All members are here and no domain has room; the nearest and its shortage are named.",
    Reason.NO_QUEUE: "Its queue does not exist, is no leaf, or is part of a cycle.",
    Reason.OVER_LIMIT: "All members are here, but they would take its queue, or one above, over its limit.",
    Reason.FOLLOWING: "It boards after another gang, which is not aboard yet (a scaled gang after its base).",
    Reason.BACKING_OFF: "A boarding was cancelled and the next has not begun.",
    Reason.RELEASED: "Only more nodes can help: the gates fell, so that a cluster autoscaler sees the Pods.",
    Reason.EVICTING: "Other gangs are being evicted for it; it boards once they are gone.",
    Reason.EVICTED: "This Pod has to go, for a gang of higher priority or of a queue within its quota.",
    Reason.GRANTED: "Every member has a place; told where the boarding lasts longer than two seconds.",
    Reason.REPLANNED: "The same after a boarding that was cancelled; the event says why it was.",
    Reason.BOARDED: "The floor is bound. On the owner, and on Pods that were told before that they wait.",
    Reason.TORN: "A boarding could not be finished in its domain: this bound member is evicted, or kept.",
    Reason.STALE: "A member was lost and not replaced within the staleness period: the others are evicted.",
    Reason.SLIPPED: "A Pod was created while the webhook could not be reached, and its gang misses it.",
    Reason.NOTED: "What was assumed of a manifest, or could not be understood.",
}
