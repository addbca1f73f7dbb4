"""What every queue holds, its descendants included, and what its limit still allows.

Limits count along the whole path to the root. A gang that is whole but can't board yet has its amount
reserved against those limits, or smaller ones behind it would use up each bit that comes free:

    limit >= held + reserved for who is ahead + what the next one needs
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gangs.queues.amounts import NOTHING, RESOURCES, UNLIMITED, Amounts
from gangs.queues.tree import Tree


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that would be exceeded: of this queue, for this resource (one of RESOURCES).

    reserved: for gangs ahead.
    """

    queue: str
    resource: str
    held: float
    reserved: float
    need: float
    limit: float

    @property
    def hopeless(self) -> bool:
        """Whether it would be exceeded even if the queue held nothing."""
        return self.need > self.limit


class Ledger:
    """The accounts of a tree's queues. held: what each holds by itself, by name."""

    def __init__(self, tree: Tree, held: Mapping[str, Amounts]) -> None:
        self.tree = tree
        self._held: dict[str, Amounts] = {}
        self._reserved: dict[str, Amounts] = {}
        for name, amounts in held.items():
            self.take(name, amounts)

    def held(self, name: str) -> Amounts:
        """What the queue and its descendants hold."""
        return self._held.get(name, NOTHING)

    def take(self, name: str, amounts: Amounts) -> None:
        """The queue holds so much more, and so do its ancestors; a queue that isn't in use has no account."""
        for queue in self.tree.paths.get(name, ()):
            self._held[queue] = self.held(queue) + amounts

    def reserve(self, name: str, need: Amounts) -> None:
        """Keep room below the limits for a gang that is ahead of those to come.

        What a queue has too little of must be given back in that queue first, and then its ancestors
        have it, too: there only the rest is reserved.
        """
        for queue in self.tree.paths.get(name, ()):
            before = self._reserved.get(queue, NOTHING)
            self._reserved[queue] = before + need
            limit = self.tree.queues[queue].limit
            wanted = (self.held(queue) + before + need).values
            short = [max(0.0, all_of - most) for all_of, most in zip(wanted, limit.values, strict=True)]
            need = Amounts(*(max(0.0, n - s) for n, s in zip(need.values, short, strict=True)))

    def excess(self, name: str, need: Amounts) -> Excess | None:
        """The first limit on the way up that so much more would exceed, None where there is none."""
        for queue in self.tree.paths.get(name, ()):
            rows = zip(
                RESOURCES,
                self.held(queue).values,
                self._reserved.get(queue, NOTHING).values,
                need.values,
                self.tree.queues[queue].limit.values,
                strict=True,
            )
            for resource, held, reserved, more, limit in rows:
                if more > 0 and held + reserved + more > limit:
                    return Excess(queue, resource, held, reserved, more, limit)
        return None

    def is_limited(self, name: str, need: Amounts) -> bool:
        """Whether any limit on the way up bounds what is needed."""
        limits = (self.tree.queues[queue].limit for queue in self.tree.paths.get(name, ()))
        return any(
            n > 0 and most < UNLIMITED
            for limit in limits
            for n, most in zip(need.values, limit.values, strict=True)
        )

    def hopeless(self, name: str, need: Amounts) -> bool:
        """Whether some limit on the way up is below the need itself."""
        limits = (self.tree.queues[queue].limit for queue in self.tree.paths.get(name, ()))
        return any(n > most for limit in limits for n, most in zip(need.values, limit.values, strict=True))
