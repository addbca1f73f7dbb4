"""A gang at one moment: who is here, who is missing, what it asks for.

Members are counted by UID; finished and terminating ones don't count. The newest member's annotations
speak for the gang, unless its owner's live size is known (rule 5 of the design): then that rules. A gang
with a bound member is aboard: it has passed the barrier once, so whoever joins boards singly.
"""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from string import digits
from typing import Final

from gangs.notes import Note
from gangs.parts import Part, assemble
from gangs.pods import Demand, GangKey, Owner, Pod
from gangs.room import Level

_NUMBER: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True)
class Muster:
    """All members of one gang, and what the gang wants.

    floor: members that must board at once. size: members there are to be.
    ready: unbound members that could board. gated: unbound ones that a foreign gate keeps away.
    bound: members with a node. leaving: bound ones on their way out, whose domain still counts.
    subgroups: with who is in which, None for a gang without.
    after: the label of a gang that must be aboard before this one, "" for none.
    staleness: seconds that it may run on below its floor, None for ever. ending: a member has succeeded.
    """

    key: GangKey
    floor: int
    size: int
    required: Level
    preferred: str
    size_from: str
    notes: tuple[Note, ...]
    ready: tuple[Pod, ...]
    gated: tuple[Pod, ...]
    bound: tuple[Pod, ...]
    leaving: tuple[Pod, ...]
    subgroups: Part | None = None
    after: str = ""
    staleness: float | None = None
    ending: bool = False

    @cached_property
    def name(self) -> str:
        """How people know it: namespace and the common controller's name, else the gang label."""
        owners = {p.owner.name if p.owner else "" for p in self.everyone}
        only = owners.pop() if len(owners) == 1 else ""
        return f"{self.key[0]}/{only or self.key[1]}"

    @cached_property
    def owner(self) -> Owner | None:
        """The controller of all members, None where they have none or several."""
        owners = {p.owner for p in self.everyone}
        return owners.pop() if len(owners) == 1 else None

    @property
    def everyone(self) -> tuple[Pod, ...]:
        """All live members."""
        return self.ready + self.gated + self.bound

    @property
    def aboard(self) -> bool:
        """Whether some member is bound: the barrier is behind this gang."""
        return bool(self.bound)

    @property
    def whole(self) -> bool:
        """Whether enough members are here to board now."""
        return bool(self.ready) and (self.aboard or self.enough({p.uid for p in self.ready}))

    def enough(self, uids: Set[str]) -> bool:
        """Whether these members may board together: the floor, in all and of each subgroup."""
        return len(uids) >= self.floor and (self.subgroups is None or self.subgroups.met(uids))

    @property
    def in_domains(self) -> bool:
        """Whether it, or a subgroup of it, must share a domain."""
        parts = self.subgroups.everything if self.subgroups else ()
        return bool(self.required) or any(part.required for part in parts)

    @cached_property
    def complete(self) -> bool:
        """Whether no member of the floor is missing any more: who is unbound now is surplus."""
        return self.enough({p.uid for p in self.bound})

    @property
    def stale(self) -> bool:
        """Whether it has lost members of its floor, and is one of those that must not run on without them."""
        return self.staleness is not None and self.aboard and not self.complete and not self.ending

    @property
    def missing(self) -> int:
        """How many must board together now; 0 where each may board singly."""
        return 0 if self.aboard else self.floor

    @property
    def torn(self) -> bool:
        """Whether a boarding was left unfinished: fewer than the floor are bound, and somebody who had a
        plan before the first was bound still has no seat. A member lost later has a younger replacement,
        and surplus that never found room has no plan, so a gang that only lost one is not torn.
        """
        if not self.aboard or self.complete:
            return False
        first = min((p.bound_at for p in self.bound if p.bound_at), default=0.0)
        return any(p.created <= first and p.valid_plan for p in self.ready)

    @cached_property
    def queue(self) -> str:
        """The queue by which it boards: the oldest member's, as KAI looks at it only once."""
        return min(self.everyone, key=lambda p: (p.created, natural(p.name))).queue

    @cached_property
    def priority(self) -> int:
        """The highest priority among the live members."""
        return max((p.priority for p in self.everyone), default=0)

    @cached_property
    def created(self) -> float:
        """When the oldest live member was created, epoch seconds."""
        return min((p.created for p in self.everyone), default=0.0)


def muster(key: GangKey, pods: Iterable[Pod], live_size: int | None = None) -> Muster | None:
    """Count the members; None where nobody is left.

    live_size: the size that the owner wants now, where the gang's size follows its owner.
    """
    members = list(pods)
    live = [p for p in members if p.live]
    if not live:
        return None
    live.sort(key=lambda p: (p.created, natural(p.name)))
    demand = live[-1].demand
    floor, size = _sizes(demand, live_size)
    subgroups = assemble(((p.uid, p.demand.subgroups) for p in live), demand.min_subgroup)
    if subgroups:
        floor = max(floor, subgroups.least)
    unbound = sorted((p for p in live if not p.node), key=lambda p: natural(p.name))
    return Muster(
        key=key,
        floor=floor,
        size=max(size, floor, len(live)) if subgroups else size,
        required=demand.required,
        preferred=demand.preferred,
        size_from=demand.size_from,
        notes=demand.notes,
        ready=tuple(p for p in unbound if not p.foreign_gates),
        gated=tuple(p for p in unbound if p.foreign_gates),
        bound=tuple(p for p in live if p.node),
        leaving=tuple(p for p in members if not p.live and p.seated),
        subgroups=subgroups,
        after=demand.after,
        staleness=demand.staleness,
        ending=any(p.succeeded for p in members),
    )


def _sizes(demand: Demand, live_size: int | None) -> tuple[int, int]:
    floor = demand.min_member or 1
    size = demand.size or floor
    if live_size is None:
        return floor, size
    # A floor that equalled the size when it was written follows it; a smaller one was asked for as such.
    return (max(1, live_size), live_size) if floor == size else (floor, live_size)


@lru_cache(maxsize=16_384)
def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which llm-2 comes before llm-10."""
    return tuple((0, int(p), "") if p[0] in digits else (1, 0, p) for p in _NUMBER.split(name) if p)
