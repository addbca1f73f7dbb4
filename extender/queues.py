"""The Queue objects of the cluster, and what they hold.

    watch ──► tree ┐
    Room.held ─────┴─► accounts() ──► line.py (a round's order and limits), loose Pods, status

Where there is no Queue object at all nobody uses queues: gangs stand in one line, without limits.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from extender import wire
from extender.api import Json
from gangs.pods import Pod
from gangs.queues.amounts import NOTHING, UNLIMITED, Amounts, amounts_of, total
from gangs.queues.ledger import Ledger
from gangs.queues.tree import Queue, Tree
from gangs.room import Room
from gangs.sentences import REFUSED_LIMIT, REFUSED_QUEUE

PATH: Final = "/apis/scheduling.run.ai/v2/queues"

_NO_LIMIT: Final = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)


class Queues:
    """Handler of Queues. limited: False switches limits off (extender/unprotected.py).

    reserved: what the last round kept below the limits for gangs that wait, by queue.
    """

    def __init__(self, room: Room, changed: Callable[[], None], *, limited: bool = True) -> None:
        self.tree = Tree()
        self.reserved: list[tuple[str, Amounts]] = []
        self._room = room
        self._changed = changed
        self._limited = limited
        self._names: dict[str, str] = {}
        self._capacity = (-1, NOTHING)

    def put(self, obj: Json) -> None:
        """A Queue is new or has changed."""
        self._names[obj["metadata"]["uid"]] = obj["metadata"]["name"]
        self.update(wire.queue(obj))

    def update(self, queue: Queue) -> None:
        """The same, with the Queue already read."""
        queue = queue if self._limited else replace(queue, limit=_NO_LIMIT)
        if self.tree.queues.get(queue.name) != queue:
            self.tree = Tree({**self.tree.queues, queue.name: queue})
            self._changed()

    def drop(self, uid: str) -> None:
        """A Queue is gone."""
        name = self._names.pop(uid, "")
        if name in self._names.values():
            return  # a list tells of the one that was created anew before it tells of the old one
        self.tree = Tree({n: q for n, q in self.tree.queues.items() if n != name})
        self._changed()

    def accounts(self) -> Ledger:
        """What every queue holds now, what is promised included."""
        return Ledger(self.tree, self._room.held)

    @property
    def capacity(self) -> Amounts:
        """What all nodes have."""
        changes, known = self._capacity
        if changes != self._room.changes:
            known = total(amounts_of(node.allocatable) for node in self._room.nodes.values())
            self._capacity = self._room.changes, known
        return known

    def refusal(self, pod: Pod) -> str:
        """Why a loose Pod may not be bound by its queue, "" where it may."""
        if not self.tree or not pod.queue:
            return ""
        if self.tree.problem(pod.queue):
            return REFUSED_QUEUE
        accounts = self.accounts()
        for queue, need in self.reserved:
            accounts.reserve(queue, need)
        return REFUSED_LIMIT if accounts.excess(pod.queue, amounts_of(pod.shape.requests)) else ""
