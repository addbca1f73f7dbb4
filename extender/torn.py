"""Gangs left half bound that can't be finished where they are (rule 10 of the design).

All Bindings of a gang are created together, but the last may still fail: its node is deleted, somebody
took the room. The rest is then planned in the same domain; where that finds no room for a minute, the
bound members are evicted and the gang starts anew elsewhere. A Pod without a controller would not come
back, so it is kept and its event says what to do.
"""

from collections.abc import Callable, Iterator
from typing import Final

from extender.evictions import Creator, evict
from extender.news import Announcement
from extender.rounds import Rounds
from extender.standing import Pending, Standing
from gangs import sentences
from gangs.pods import GangKey
from gangs.reasons import Reason

PATIENCE_SECONDS: Final = 60.0


class Torn:
    """Finds torn gangs and evicts what is bound of them."""

    def __init__(self, api: Creator, rounds: Rounds, clock: Callable[[], float]) -> None:
        self._api = api
        self._rounds = rounds
        self._clock = clock
        self._since: dict[GangKey, float] = {}

    async def mend(self) -> list[Announcement]:
        """Evict the members of gangs that were torn for too long; what is to be said about it."""
        said = []
        for row in list(self._ripe()):
            for pod in row.gang.bound:
                evicted = pod.owner is not None and await evict(self._api, pod, "torn gang")
                limited = row.standing is Standing.OVER_LIMIT
                text = sentences.torn(row.gang, evicted, limited=limited)
                said.append(Announcement(pod, Reason.TORN, text))
        return said

    def _ripe(self) -> Iterator[Pending]:
        now = self._clock()
        torn = {
            key: row
            for key, row in self._rounds.pending.items()
            if row.gang.torn and (row.standing is Standing.OVER_LIMIT or _finds_no_room(row))
        }
        self._since = {key: self._since.get(key, now) for key in torn}
        for key, row in torn.items():
            if now - self._since[key] >= PATIENCE_SECONDS:
                self._since[key] = now
                yield row


def _finds_no_room(row: Pending) -> bool:
    return row.standing is Standing.WAITING and row.gang.in_domains
