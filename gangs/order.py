"""Who is looked at first: priority, then age, then name (rule 14 of the design, inside one queue)."""

from collections.abc import Iterable

from gangs.muster import Muster
from gangs.pods import GangKey

Rank = tuple[int, float, GangKey]


def in_order(gangs: Iterable[Muster]) -> list[Muster]:
    """The gangs in the order in which they may board."""
    return sorted(gangs, key=rank)


def rank(gang: Muster) -> Rank:
    """Smaller boards first."""
    return -gang.priority, gang.created, gang.key
