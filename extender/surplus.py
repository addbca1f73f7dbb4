"""When surplus may take what has come free while another gang lacks its floor (rule 16 of the design)."""

from collections.abc import Callable
from typing import Final

from gangs.room import Room

# Room comes free node by node. While a gang lacks its floor, surplus takes none of it at once: the next node
# may make it enough for the floor. But room may come without end, so surplus is held back only so long.
SURPLUS_SECONDS: Final = 2.0
SURPLUS_MOST_SECONDS: Final = 30.0


class Surplus:
    """Knows since when the room has not grown, and when surplus was let through last."""

    def __init__(self, room: Room, clock: Callable[[], float]) -> None:
        self._room = room
        self._clock = clock
        self._grown = (0, clock())  # the room's growth, and since when it is that
        self._let_through = clock()

    def held_back(self, floor_waits: bool) -> bool:
        """Whether what came free lately is left to a gang that lacks its floor."""
        now = self._clock()
        if self._grown[0] != self._room.growth:
            self._grown = self._room.growth, now
        fresh = floor_waits and now - self._grown[1] < SURPLUS_SECONDS
        if not fresh or now - self._let_through >= SURPLUS_MOST_SECONDS:
            self._let_through = now
            return False
        return True
