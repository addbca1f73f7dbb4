"""The moves that would let a waiting gang board: a dry run, worked out when somebody asks."""

from collections.abc import Callable, Iterator

from extender.registry import Registry
from extender.rounds import Rounds
from extender.standing import Standing
from gangs.consolidation import Proposal, Resident, proposal
from gangs.muster import Muster
from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.planner import Boarding
from gangs.pods import GangKey, Pod
from gangs.room import Room


class Consolidation:
    """Looks at every gang that runs, so not for the hot path."""

    def __init__(self, registry: Registry, room: Room, rounds: Rounds, shape: Callable[[Pod], Shape]) -> None:
        self._registry = registry
        self._room = room
        self._rounds = rounds
        self._shape = shape

    def proposal(self, key: GangKey) -> Proposal | None:
        """What would have to move for this gang; None where nothing would help, or nothing is needed."""
        row = self._rounds.pending.get(key)
        if row is None or row.standing is not Standing.WAITING or row.gang.aboard:
            return None
        return proposal(self._rounds.boarding(row.gang), self._room, self._residents())

    def _residents(self) -> Iterator[Resident]:
        """Gangs that sit where they were planned, all of them, and may be moved."""
        for key in self._registry.keys:
            gang = self._registry.muster(key)
            if gang and gang.bound and not gang.ready and not gang.gated and _movable(gang):
                members = tuple(Candidate(p.uid, self._shape(p)) for p in gang.bound)
                boarding = Boarding(members, len(members), gang.required, gang.preferred)
                yield Resident(key, gang.name, boarding)


def _movable(gang: Muster) -> bool:
    """Nobody re-creates a Pod without a controller."""
    return all(pod.preemptible and pod.owner for pod in gang.bound)
