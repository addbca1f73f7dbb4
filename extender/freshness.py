"""How old what we know of the cluster may be.

A watch brings an event or a bookmark about once a minute. One that brings nothing for longer may have missed
a node that went or a Pod that came, and a plan made from that could promise room which isn't there. So
nothing new is granted meanwhile; boardings that are under way go on, and the guard answers from memory.
"""

from collections.abc import Callable, Mapping
from typing import Final

LIMIT_SECONDS: Final = 120.0  # a silent watch is dropped after 100 s, and made anew


class Freshness:
    """When each watch was heard of last."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._heard: dict[str, float] = {}

    def heard(self, path: str) -> None:
        """The watch of this resource path has brought a list, an event or a bookmark."""
        self._heard[path] = self._clock()

    @property
    def ages(self) -> Mapping[str, float]:
        """Seconds since each watch was heard of, by resource ("pods")."""
        now = self._clock()
        return {path.rpartition("/")[2]: now - at for path, at in self._heard.items()}

    @property
    def stale(self) -> tuple[str, ...]:
        """Resources of which too little was heard for too long."""
        return tuple(sorted(name for name, age in self.ages.items() if age > LIMIT_SECONDS))
