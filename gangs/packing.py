"""Members to nodes inside one domain.

Hardest shape first, nodes in the order given, each filled before the next is opened. Members of one
shape are alike, so for them counting slots is exact; between shapes, and where a member avoids nodes,
the packing is greedy. What it may miss is found by gangs/exact.py.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from gangs.nodes import Shape
from gangs.room import Room, fitting, scarcest, unlisted


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that needs a node."""

    uid: str
    shape: Shape


Avoid: TypeAlias = frozenset[tuple[str, str]]
"""(member, node) pairs not to be used."""

OpenNodes: TypeAlias = Mapping[Shape, Mapping[str, int]]
"""Per shape, the nodes that take it and how often."""


def pack(
    members: Sequence[Candidate],
    fill: Sequence[str],
    open_nodes: OpenNodes,
    room: Room,
    avoid: Avoid,
    hints: Mapping[str, str],
) -> dict[str, str]:
    """A node for as many members as greed finds one for, by UID.

    fill: node names in the order in which they are to be filled. hints: nodes to be kept if possible.
    """
    table = Table(open_nodes, room)
    placed = {m.uid: n for m in members if (n := hints.get(m.uid)) and _sit(table, m, n, avoid)}
    for shape in hardest_first((m.shape for m in members), open_nodes):
        waiting = deque(m for m in members if m.shape is shape and m.uid not in placed)
        for node in fill:
            if not waiting:
                break
            for member in _next(waiting, node, table.slots(shape, node), avoid):
                table.sit(shape, node)
                placed[member.uid] = node
    return placed


def hardness(shape: Shape) -> tuple[object, ...]:
    """A sort key by what the shape asks for, the most first; equal for shapes that ask for the same."""
    scarce = shape.requests.get(scarcest(shape.requests), 0)
    return -scarce, sorted(shape.requests.items()), repr(replace(shape, requests={}))


def hardest_first(shapes: Iterable[Shape], open_nodes: OpenNodes) -> list[Shape]:
    """Each shape once: fewest nodes first, then the largest requests of what is scarce."""
    return sorted(dict.fromkeys(shapes), key=lambda shape: (len(open_nodes[shape]), *hardness(shape)))


def in_groups(
    names: Iterable[str], slots: Mapping[str, int], room: Room, label: str, near: Set[str], wanted: int
) -> list[str]:
    """The nodes in the same order, but those that share the label's value together, the best value first.

    near: values where members sit already. wanted: how many members are to be seated.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(room.nodes[name].labels.get(label, "") if label else "", []).append(name)
    sizes = {group: sum(slots.get(n, 0) for n in nodes) for group, nodes in groups.items()}
    return [name for group in _group_order(sizes, near, wanted) for name in groups[group]]


def _group_order(sizes: dict[str, int], near: Set[str], missing: int) -> Iterator[str]:
    """Where members sit already, then the tightest that takes all, else the roomiest, until all are in."""

    def rank(group: str) -> tuple[bool, bool, bool, int, str]:
        enough = sizes[group] >= missing
        return not group, group not in near, not enough, sizes[group] * (1 if enough else -1), group

    while sizes:
        best = min(sizes, key=rank)
        missing -= sizes.pop(best)
        yield best


def _next(waiting: deque[Candidate], node: str, number: int, avoid: Avoid) -> list[Candidate]:
    """Take the first so many that may use the node; the others keep their places in the queue."""
    taken: list[Candidate] = []
    passed_over: list[Candidate] = []
    while waiting and len(taken) < number:
        member = waiting.popleft()
        (passed_over if (member.uid, node) in avoid else taken).append(member)
    waiting.extendleft(reversed(passed_over))
    return taken


def _sit(table: "Table", member: Candidate, node: str, avoid: Avoid) -> bool:
    if (member.uid, node) in avoid or not table.slots(member.shape, node):
        return False
    table.sit(member.shape, node)
    return True


class Table:
    """What is left of each node while one gang is being seated."""

    def __init__(self, open_nodes: OpenNodes, room: Room) -> None:
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
        self._change(shape, node, -1)

    def rise(self, shape: Shape, node: str) -> None:
        """Take one Pod of the shape off the node again."""
        self._change(shape, node, 1)

    def _change(self, shape: Shape, node: str, sign: int) -> None:
        left = self._left.setdefault(node, self._room.free(self._room.nodes[node]))
        for name, value in shape.requests.items():
            left[name] = (left[name] if name in left else unlisted(name)) + sign * value
