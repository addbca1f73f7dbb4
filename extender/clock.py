"""The time by which everything here is measured."""

import time
from collections.abc import Callable


def steady_clock(
    wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """Epoch seconds that only ever go on: the wall clock is read once, now.

    A clock that is set forward would end every boarding at once, one set back would hold promised room
    for as long. What is written for others (deadlines) differs from their clocks by a constant at most.
    """
    offset = wall() - monotonic()
    return lambda: offset + monotonic()
