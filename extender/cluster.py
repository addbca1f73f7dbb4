"""What the watches say, turned into changes of registry and room and into permit events.

One handler a resource. Each compares what it knew with what it is told, because a permit cares for the
difference: a member bound, deleted or refused by kube-scheduler; a node that no longer admits who was
promised a seat on it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter

from extender import wire
from extender.api import Json
from extender.owners import Owners, wanted
from extender.registry import Registry
from extender.store import PermitStore, seat_of
from gangs.nodes import Node, Shape, blocker
from gangs.permits import Bound
from gangs.pods import Pod
from gangs.room import Room, domain_of


class Pods:
    """Handler of all Pods of the cluster: every one takes room, those of our schedulers form gangs."""

    def __init__(
        self,
        profiles: frozenset[str],
        registry: Registry,
        room: Room,
        store: PermitStore,
        term: Callable[[], str],
        clock: Callable[[], float],
        changed: Callable[[], None],
        seen: Callable[[Pod], None] = lambda _: None,
        shape: Callable[[Pod], Shape] = attrgetter("shape"),
    ) -> None:
        self._seen = seen
        self._shape = shape
        self._profiles = profiles
        self._term = term
        self._registry = registry
        self._room = room
        self._store = store
        self._clock = clock
        self._changed = changed

    def put(self, obj: Json) -> None:
        """A Pod is new or has changed."""
        self.update(wire.pod(obj))

    def update(self, pod: Pod) -> None:
        """The same, with the Pod already read."""
        self._seen(pod)
        if pod.scheduler not in self._profiles:
            self._seat(pod)
            return
        before = self._registry.pods.get(pod.uid)
        if before and before.node and not pod.node:
            # Told late: a Pod never loses its node, so this is older than the binding we made.
            pod = replace(pod, node=before.node)
        self._registry.put(pod, self._clock())
        self._settle(before, pod)
        self._seat(pod)
        self._changed()

    def drop(self, uid: str) -> None:
        """A Pod is gone."""
        pod = self._registry.pods.get(uid)
        if pod:
            self._store.lose(pod, "the Pod was deleted", certain=True)
            self._registry.drop(uid)
        self._room.give(uid)
        self._changed()

    def bound(self, pod: Pod, node: str) -> None:
        """We have bound the Pod; the watch will say so later."""
        known = self._registry.pods.get(pod.uid)
        if known:  # else it was deleted meanwhile, and nobody would ever tell us again
            self.update(replace(known, node=node))

    def _settle(self, before: Pod | None, pod: Pod) -> None:
        """Tell the permit what became of a member with a seat."""
        seat = self._store.seat(pod)
        if seat is None:
            return
        if not pod.live:
            why = "the Pod is finished" if pod.terminal else "the Pod is being deleted"
            self._store.lose(pod, why, certain=True)
        elif pod.node:
            self._seat(pod)
            self._store.apply(pod.key, Bound(pod.uid))
        elif pod.planned_by_others(before, self._term()):
            self._store.lose(pod, "another instance has planned it anew")
        elif before and before.nominated == seat and not pod.nominated and not self._at_barrier(pod):
            # kube-scheduler clears the nomination of a Pod that it found unschedulable.
            self._store.lose(pod, "kube-scheduler found the node unfit (see the Pod's events)")

    def _at_barrier(self, pod: Pod) -> bool:
        return pod.uid in self._store.permit(pod.key).arrived

    def reseat(self, pod: Pod) -> None:
        """What the Pod asks for has changed: a claim was allocated, or its template is known now."""
        self._seat(pod)
        self._changed()

    def _seat(self, pod: Pod) -> None:
        node = pod.node if pod.seated else self._store.seat(pod)
        if node:
            self._room.take(pod.uid, seat_of(pod, node, self._shape(pod)))
        else:
            self._room.give(pod.uid)


class Nodes:
    """Handler of Nodes."""

    def __init__(
        self,
        registry: Registry,
        room: Room,
        store: PermitStore,
        changed: Callable[[], None],
        equip: Callable[[Node], Node] = lambda node: node,
    ) -> None:
        self._registry = registry
        self._room = room
        self._store = store
        self._changed = changed
        self._equip = equip
        self._names: dict[str, str] = {}
        self._bare: dict[str, Node] = {}  # as the API server has them, without their devices

    def put(self, obj: Json) -> None:
        """A Node is new or has changed."""
        self._names[obj["metadata"]["uid"]] = obj["metadata"]["name"]
        self.update(wire.node(obj))

    def update(self, node: Node) -> None:
        """The same, with the Node already read."""
        self._bare[node.name] = node
        node = self._equip(node)
        before = self._room.nodes.get(node.name)
        if before == node:
            return
        self._room.put_node(node)
        if before:
            self._recheck(before, node)
        self._changed()

    def refresh(self, names: Iterable[str]) -> None:
        """These nodes have other devices now."""
        for name in names:
            if bare := self._bare.get(name):
                self.update(bare)

    def drop(self, uid: str) -> None:
        """A Node is gone."""
        name = self._names.pop(uid, "")
        if name in self._names.values():
            return  # a list tells of the node that was created anew before it tells of the old one
        self._room.drop_node(name)
        self._bare.pop(name, None)
        for pod in self._promised(name):
            self._store.lose(pod, "the node was deleted")
        self._changed()

    def _recheck(self, before: Node, node: Node) -> None:
        for pod in self._promised(node.name):
            refused = blocker(pod.shape, node)
            level = pod.demand.required
            if refused:
                self._store.lose(pod, f"the node is {refused.value}")
            elif domain_of(before, level) != domain_of(node, level):
                self._store.lose(pod, f"the node's {' or '.join(level)} label changed")

    def _promised(self, node: str) -> list[Pod]:
        """Pods with a granted seat on the node that are not bound yet."""
        pods = (self._registry.pods.get(uid) for uid, _ in self._room.holders(node))
        return [pod for pod in pods if pod and self._store.seat(pod) == node]


class OwnerKind:
    """Handler of one kind of owner."""

    def __init__(
        self,
        kind: str,
        owners: Owners,
        registry: Registry,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._owners = owners
        self._registry = registry
        self._clock = clock
        self._changed = changed
        self._namespaces: dict[str, str] = {}

    def put(self, obj: Json) -> None:
        """An owner is new or has changed."""
        owner = wanted(self._kind, obj)
        self._namespaces[owner.uid] = owner.namespace
        if self._owners.put(owner):
            self._tell(owner.namespace)

    def drop(self, uid: str) -> None:
        """An owner is gone."""
        if self._owners.drop(uid):
            self._tell(self._namespaces.pop(uid))

    def _tell(self, namespace: str) -> None:
        self._registry.owner_changed(namespace, self._clock())
        self._changed()
