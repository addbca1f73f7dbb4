"""Members to nodes inside one domain.

Hardest shape first, nodes in the order given, each filled before the next is opened. Members of one
shape are alike, so for them counting slots is exact; between shapes the packing is greedy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gangs.nodes import Shape
from gangs.room import Room, fitting, scarcest


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that needs a node."""

    uid: str
    shape: Shape


def pack(
    members: Sequence[Candidate],
    fill: Sequence[str],
    open_nodes: Mapping[Shape, Mapping[str, int]],
    room: Room,
    avoid: frozenset[tuple[str, str]],
    hints: Mapping[str, str],
) -> dict[str, str]:
    """A node for as many members as possible, by UID.

    fill: node names in the order in which they are to be filled. open_nodes: per shape, the nodes that
    take it and how often. avoid: (member, node) pairs not to be used. hints: nodes to be kept if possible.
    """
    table = _Table(open_nodes, room)
    placed = {m.uid: n for m in members if (n := hints.get(m.uid)) and _sit(table, m, n, avoid)}
    for shape in _hardest_first(dict.fromkeys(m.shape for m in members), open_nodes):
        waiting = [m for m in members if m.shape is shape and m.uid not in placed]
        for node in fill:
            if not waiting:
                break
            for _ in range(table.slots(shape, node)):
                member = next((m for m in waiting if (m.uid, node) not in avoid), None)
                if member is None:
                    break
                table.sit(shape, node)
                placed[member.uid] = node
                waiting.remove(member)
    return placed


def _sit(table: "_Table", member: Candidate, node: str, avoid: frozenset[tuple[str, str]]) -> bool:
    if (member.uid, node) in avoid or not table.slots(member.shape, node):
        return False
    table.sit(member.shape, node)
    return True


def _hardest_first(shapes: Iterable[Shape], open_nodes: Mapping[Shape, Mapping[str, int]]) -> list[Shape]:
    """Fewest nodes first, then the largest requests of what is scarce."""

    def key(shape: Shape) -> tuple[int, int, tuple[tuple[str, int], ...]]:
        scarce = shape.requests.get(scarcest(shape.requests), 0)
        return len(open_nodes[shape]), -scarce, tuple(sorted(shape.requests.items()))

    return sorted(shapes, key=key)


class _Table:
    """What is left of each node while one gang is being seated."""

    def __init__(self, open_nodes: Mapping[Shape, Mapping[str, int]], room: Room) -> None:
        self._open = open_nodes
        self._room = room
        self._left: dict[str, dict[str, int]] = {}

    def slots(self, shape: Shape, node: str) -> int:
        """How many more of the shape the node takes."""
        known = self._open[shape].get(node, 0)
        left = self._left.get(node)
        return known if left is None or not known else fitting(shape.requests, left)

    def sit(self, shape: Shape, node: str) -> None:
        """Seat one Pod of the shape on the node."""
        left = self._left.setdefault(node, self._room.free(self._room.nodes[node]))
        for name, value in shape.requests.items():
            left[name] = left.get(name, 0) - value
