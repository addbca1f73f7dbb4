"""Protections switched off, on purpose: the negative controls of whoever judges our promises.

A check that can't fail proves nothing. With the guard open, or the nodes drawn at random, the checker
has to report violations; only tests and the demo's own controls ever use this.
"""

import random
from collections.abc import Callable, Sequence

from extender.guard import Guard, Verdict
from extender.keeper import Keeper
from gangs.muster import Muster
from gangs.planner import Boarding, Kept, Placement
from gangs.pods import Pod
from gangs.room import Room


class OpenGuard(Guard):
    """Lets every Pod use every node, promised or not."""

    def filter(self, pod: Pod, nodes: Sequence[str]) -> Verdict:
        """All of them."""
        return Verdict(nodes)


class HeedlessKeeper(Keeper):
    """Keeps no domain for the head of the queue: whoever fits first boards first."""

    def keep_for(self, gang: Muster, boarding: Callable[[Muster], Boarding]) -> None:
        """Nothing is kept."""


def scatter(boarding: Boarding, room: Room, kept: Kept | None = None) -> Placement | None:
    """A random node with room for each member, whatever domain it is in."""
    nodes: dict[str, str] = {}
    for member in boarding.members:
        able = [name for name, node in room.nodes.items() if room.slots(member.shape, node)]
        free = sorted(set(able) - set(nodes.values()))
        if free:
            nodes[member.uid] = random.choice(free)
    return Placement(("random",), nodes) if len(nodes) >= boarding.floor else None
