"""A gang that has members without a seat, and why it has."""

from dataclasses import dataclass
from enum import StrEnum

from extender.line import Bid
from gangs.muster import Muster
from gangs.pods import Pod
from gangs.reasons import Reason


class Standing(StrEnum):
    """Why a pending gang has no seats yet; the values are our event reasons."""

    GATHERING = Reason.GATHERING
    HELD = Reason.HELD
    BACKING_OFF = Reason.BACKING_OFF
    WAITING = Reason.WAITING
    FOLLOWING = Reason.FOLLOWING
    NO_QUEUE = Reason.NO_QUEUE
    OVER_LIMIT = Reason.OVER_LIMIT


@dataclass(frozen=True, slots=True)
class Pending:
    """A gang with members that have no seat."""

    gang: Muster
    unseated: tuple[Pod, ...]
    bid: Bid
    standing: Standing
