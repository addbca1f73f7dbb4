"""Who sits where, and how many more of a shape fit: the planner's view of the cluster.

A holder (a Pod's UID) takes room on one node, by being bound there or because a permit promised it.
From that follow a node's slots (members of a shape that still fit) and, per topology level, the room
of each domain:

    nodes + holders ──► slots(shape, node) ──► domains(level, shape): slots and free amount each

Everything derived is cached and recomputed only for the nodes that changed, so that a planning round
over hundreds of cliques costs a look at the few that moved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gangs.apart import is_apart
from gangs.contract import GPU
from gangs.devices import class_of
from gangs.nodes import Node, Shape, blocker
from gangs.ports import on_every_node, port_of
from gangs.queues.amounts import NOTHING, Amounts, amounts_of

Level = tuple[str, ...]
"""Node label keys that a domain shares, widest first; () is the whole cluster."""

Domain = tuple[str, ...]
"""The values of a level's labels."""

_MAX_VIEWS: Final = 64  # cached (level, shape) pairs; older ones are computed anew


@dataclass(frozen=True, slots=True)
class Seat:
    """Room that a holder has on a node.

    owner: how sentences name the holder ("job-7"). queue: on whose account it holds it, "" for none.
    """

    node: str
    requests: Mapping[str, int]
    owner: str
    queue: str = ""


@dataclass(slots=True)
class DomainRoom:
    """What a domain has left for one shape: slots, and free units of the shape's scarcest resource."""

    slots: int = 0
    free: int = 0


class Room:
    """Nodes, holders and what is left. Not thread-safe; one writer owns it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.seats: dict[str, Seat] = {}
        self.growth = 0  # rises whenever room may have become available
        self.changes = 0  # rises whenever a node is added, changed or dropped
        self._lost: dict[str, Mapping[str, str]] = {}
        self.held: dict[str, Amounts] = {}  # by queue
        self._used: dict[str, dict[str, int]] = {}
        self._holders: dict[str, set[str]] = {}
        self._views: dict[tuple[Level, Shape], _View] = {}
        self._largest: dict[tuple[Level, Shape], tuple[int, int]] = {}  # with the changes it was found at

    def put_node(self, node: Node) -> None:
        """Add the node or replace what is known of it."""
        before = self.nodes.get(node.name)
        if before == node:
            return
        if before and before.labels.keys() - node.labels.keys():
            self._lost[node.name] = {**self._lost.get(node.name, {}), **before.labels}
        self.nodes[node.name] = node
        self.growth += 1
        self.changes += 1
        self._touch(node.name)

    def drop_node(self, name: str) -> None:
        """Forget the node; its holders keep their seats until they go themselves."""
        self._lost.pop(name, None)
        if self.nodes.pop(name, None):
            self.changes += 1
            self._touch(name)

    def with_lost_labels(self, name: str) -> Node | None:
        """The node with labels that it once had and lost, None where there is no such node.

        A driver's restart takes labels off for a while (NVIDIA's DRA driver removes nvidia.com/gpu.clique
        when it stops), and the gangs that run there have not moved.
        """
        node, lost = self.nodes.get(name), self._lost.get(name)
        return replace(node, labels={**lost, **node.labels}) if node and lost else node

    def take(self, holder: str, seat: Seat) -> None:
        """Give the holder that seat, and only that one; the same seat twice changes nothing."""
        if self.seats.get(holder) == seat:
            return
        self.give(holder)
        self.seats[holder] = seat
        self._holders.setdefault(seat.node, set()).add(holder)
        used = self._used.setdefault(seat.node, {})
        for name, value in seat.requests.items():
            used[name] = used.get(name, 0) + value
        if seat.queue:
            self.held[seat.queue] = self.held.get(seat.queue, NOTHING) + amounts_of(seat.requests)
        self._touch(seat.node)

    def give(self, holder: str) -> None:
        """Free the holder's seat, if it has one."""
        seat = self.seats.pop(holder, None)
        if seat is None:
            return
        self._holders[seat.node].discard(holder)
        used = self._used[seat.node]
        for name, value in seat.requests.items():
            used[name] -= value
        if seat.queue:
            self.held[seat.queue] -= amounts_of(seat.requests)
        self.growth += 1
        self._touch(seat.node)

    def emptied(self) -> "Room":
        """The same nodes with nobody on them."""
        room = Room()
        room.nodes = dict(self.nodes)
        return room

    def copied(self) -> "Room":
        """The same nodes with the same holders, to try things out in."""
        room = self.emptied()
        for holder, seat in self.seats.items():
            room.take(holder, seat)
        return room

    def free(self, node: Node) -> dict[str, int]:
        """What the node has left by resource name; negative where it is overcommitted."""
        used = self._used.get(node.name, {})
        free = {name: have - used.get(name, 0) for name, have in node.allocatable.items()}
        for name in used.keys() - free.keys():
            free[name] = unlisted(name) - used[name]
        return free

    def slots(self, shape: Shape, node: Node) -> int:
        """How many Pods of this shape the node still takes; 0 where it does not admit them."""
        return 0 if blocker(shape, node) else fitting(shape.requests, self.free(node))

    def holders(self, node: str) -> Iterator[tuple[str, Seat]]:
        """Who sits on the node, as (holder, seat)."""
        return ((uid, self.seats[uid]) for uid in self._holders.get(node, ()))

    def domains(self, level: Level, shape: Shape) -> Mapping[Domain, DomainRoom]:
        """The room of each domain of the level for this shape. Nodes lacking a label belong to none."""
        return self._view(level, shape).domains

    def members(self, level: Level, shape: Shape, domain: Domain) -> Mapping[str, int]:
        """The nodes of a domain that take at least one Pod of the shape, with their slots."""
        return self._view(level, shape).open.get(domain, {})

    def nodes_of(self, level: Level, domain: Domain) -> list[Node]:
        """All nodes of the domain, by name."""
        found = [n for n in self.nodes.values() if domain_of(n, level) == domain]
        return sorted(found, key=lambda n: n.name)

    def largest(self, level: Level, shape: Shape) -> int:
        """How many Pods of the shape the largest domain would hold, empty and with every node usable."""
        known = self._largest.get((level, shape))
        if known and known[0] == self.changes:
            return known[1]
        sums: dict[Domain, int] = {}
        for node in self.nodes.values():
            domain = domain_of(node, level)
            if domain is not None:
                sums[domain] = sums.get(domain, 0) + fitting(shape.requests, node.allocatable)
        found = max(sums.values(), default=0)
        self._largest = {k: v for k, v in self._largest.items() if v[0] == self.changes}
        self._largest[level, shape] = self.changes, found
        return found

    def _view(self, level: Level, shape: Shape) -> "_View":
        view = self._views.pop((level, shape), None) or _View(self, level, shape)
        view.refresh()
        self._views[(level, shape)] = view  # last in the dict: most recently used
        if len(self._views) > _MAX_VIEWS:
            del self._views[next(iter(self._views))]
        return view

    def _touch(self, node: str) -> None:
        for view in self._views.values():
            view.stale.add(node)


class _View:
    """Slots of one shape per node and per domain of one level, kept up to date node by node."""

    def __init__(self, room: Room, level: Level, shape: Shape) -> None:
        self.domains: dict[Domain, DomainRoom] = {}
        self.open: dict[Domain, dict[str, int]] = {}
        self.stale: set[str] = set(room.nodes)
        self._room = room
        self._level = level
        self._shape = shape
        self._scarce = scarcest(shape.requests)
        self._known: dict[str, tuple[Domain, int, int]] = {}
        self._population: dict[Domain, int] = {}  # nodes; a domain without any is none

    def refresh(self) -> None:
        """Recompute what changed since the last look."""
        for name in self.stale:
            self._forget(name)
            self._learn(name)
        self.stale.clear()

    def _forget(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known:
            domain, slots, free = known
            self.domains[domain].slots -= slots
            self.domains[domain].free -= free
            self.open[domain].pop(name, None)
            self._population[domain] -= 1
            if not self._population[domain]:
                del self.domains[domain], self.open[domain], self._population[domain]

    def _learn(self, name: str) -> None:
        node = self._room.nodes.get(name)
        domain = domain_of(node, self._level) if node else None
        if node is None or domain is None:
            return
        slots = self._room.slots(self._shape, node)
        free = max(0, self._room.free(node).get(self._scarce, 0)) if slots else 0
        room = self.domains.setdefault(domain, DomainRoom())
        room.slots += slots
        room.free += free
        open_nodes = self.open.setdefault(domain, {})
        if slots:
            open_nodes[name] = slots
        self._known[name] = (domain, slots, free)
        self._population[domain] = self._population.get(domain, 0) + 1


def domain_of(node: Node, level: Level) -> Domain | None:
    """The node's domain at that level, None where it lacks one of the labels."""
    try:
        return tuple(node.labels[key] for key in level)
    except KeyError:
        return None


def fitting(requests: Mapping[str, int], free: Mapping[str, int]) -> int:
    """How many times the requests fit into what is free."""
    have = ((free[name] if name in free else unlisted(name)) // value for name, value in requests.items())
    return max(0, min(have))


def unlisted(resource: str) -> int:
    """How much a node has of a resource that it doesn't list: none, but for those that every node has."""
    if is_apart(resource):
        return 1
    return on_every_node(resource) if port_of(resource) else 0


def scarcest(requests: Mapping[str, int]) -> str:
    """The resource by which a shape is packed: GPUs where it asks for any, else an extended one, else the
    devices of which it asks for most, else cpu."""
    if GPU in requests:
        return GPU
    extended = sorted(name for name in requests if "/" in name and not class_of(name))
    if extended:
        return extended[0]
    devices = [(requests[name], name) for name in requests if class_of(name)]
    return max(devices)[1] if devices else "cpu"
