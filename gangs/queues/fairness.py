"""Which of several sibling queues is served next: dominant resource fairness.

    1. A queue that stays within its quota goes before one that would exceed it.
    2. Of what is over quota a queue with weight 0 gets only what no other wants.
    3. A higher priority goes first.
    4. The smaller dominant share: within quota of the quota itself, so that quotas which are too many for
       the cluster shrink alike; over it, of the cluster, by weight.

Serving one gang at a time to the smallest share is progressive filling. Half of the next gang counts as
held already, as in the Webster method of apportionment: looking at what is held now favours queues of
small weight, looking at all of what would be held those of large weight, and by more than one gang.
tests/gangs/test_queue_fairness.py compares with the closed form.
"""

from dataclasses import dataclass

from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.tree import Queue


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """How strong a queue's claim is: the smallest is served first."""

    over_quota: bool
    weightless: bool
    priority: int  # negated
    share: float

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """What does not change with each gang that comes and goes."""
        return self.over_quota, self.weightless, self.priority


def claim(queue: Queue, held: Amounts, need: Amounts, capacity: Amounts) -> Claim:
    """The queue's claim to what its next gang needs. capacity: of the whole cluster."""
    rows = [
        _Row(*row)
        for row in zip(
            held.values, need.values, queue.quota.values, queue.weight.values, capacity.values, strict=True
        )
    ]
    over = [row for row in rows if row.over_quota]
    share = max((row.over_share if over else row.quota_share) for row in rows)
    return Claim(bool(over), any(not row.weight for row in over), -queue.priority, share)


@dataclass(frozen=True, slots=True)
class _Row:
    """One resource of a claim."""

    held: float
    need: float
    quota: float
    weight: float
    capacity: float

    @property
    def over_quota(self) -> bool:
        return self.need > 0 and self.held + self.need > self.quota

    @property
    def quota_share(self) -> float:
        """Of the quota; of the cluster where the queue may have all of that."""
        entitled = self.quota if self.quota < UNLIMITED else self.capacity
        return (self.held + self.need / 2) / entitled if entitled else 0.0

    @property
    def over_share(self) -> float:
        """Of the cluster over quota, per weight."""
        beyond = max(0.0, self.held + self.need / 2 - self.quota)
        return beyond / self.capacity / (self.weight or 1.0) if self.capacity else 0.0
