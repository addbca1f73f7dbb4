"""Who is looked at first: priority, then age, then name (rule 14 of the design, inside one queue).

Gangs with subgroups come in the order of rule 16: floors of gangs that wait for none, floors of those that
board after another, and surplus last, so that one gang's extra members take no room that another needs.
"""

from collections.abc import Iterable

from gangs.muster import Muster
from gangs.pods import GangKey

Rank = tuple[int, int, float, GangKey]


def in_order(gangs: Iterable[Muster]) -> list[Muster]:
    """The gangs in the order in which they may board."""
    return sorted(gangs, key=rank)


def rank(gang: Muster) -> Rank:
    """Smaller boards first."""
    return -gang.priority, _turn(gang), gang.created, gang.key


def _turn(gang: Muster) -> int:
    if gang.subgroups and gang.complete:
        return 2
    return 1 if gang.after else 0
