"""Which Pods make which gang.

Keeps the Pods of the schedulers that we serve, by UID, and the gangs that they form, by namespace and
gang label. A gang's muster is counted when somebody asks and kept until one of its Pods or its owner
changes. Knows nothing of permits or room.
"""

from collections.abc import Iterable

from extender.owners import Owners
from gangs.muster import Muster, muster
from gangs.pods import GangKey, Pod


class Registry:
    """Pods and gangs. One writer changes it; anyone may read."""

    def __init__(self, owners: Owners) -> None:
        self.pods: dict[str, Pod] = {}
        self.changed: set[GangKey] = set()  # gangs to look at in the next planning round
        self.stirred: set[GangKey] = set()  # the same, for who tells others how gangs stand
        self.noted: list[Pod] = []  # new unbound Pods that carry notes nobody was told of yet
        self.perishable: set[GangKey] = set()  # gangs that may not run on below their floor for ever
        self._gangs: dict[GangKey, set[str]] = {}
        self._news: dict[GangKey, tuple[float, float]] = {}
        self._owners = owners
        self._claiming: dict[
            tuple[str, str], set[str]
        ] = {}  # UIDs by namespace and name of claim or template

    def put(self, pod: Pod, now: float) -> Pod | None:
        """Add or replace the Pod; gives back what was known of it before."""
        before = self.pods.get(pod.uid)
        if before and before.key != pod.key:
            self._leave(before)  # somebody has relabelled it
        self._claim(pod, pod.claim_names)
        self.pods[pod.uid] = pod
        if before is None and pod.demand.notes and not pod.node:
            self.noted.append(pod)
        if pod.gang:
            self._gangs.setdefault(pod.key, set()).add(pod.uid)
            if pod.demand.staleness is not None:
                self.perishable.add(pod.key)
            self.changed.add(pod.key)
            self.stirred.add(pod.key)
            if before is None or before.key != pod.key:
                first, _ = self._news.get(pod.key, (now, now))
                self._news[pod.key] = first, now
        return before

    def drop(self, uid: str) -> Pod | None:
        """Forget the Pod; gives back what was known of it."""
        pod = self.pods.get(uid)
        if pod:
            self._claim(pod, frozenset())
            del self.pods[uid]
            self._leave(pod)
        return pod

    def _claim(self, pod: Pod, names: frozenset[str]) -> None:
        """The Pod uses claims and templates of these names now; pod: as it was known, or as it is."""
        known = self.pods.get(pod.uid)
        for name in (known.claim_names if known else frozenset()) - names:
            users = self._claiming[pod.namespace, name]
            users.discard(pod.uid)
            if not users:
                del self._claiming[pod.namespace, name]
        for name in names:
            self._claiming.setdefault((pod.namespace, name), set()).add(pod.uid)

    def _leave(self, pod: Pod) -> None:
        if not pod.gang:
            return
        members = self._gangs[pod.key]
        members.discard(pod.uid)
        self.changed.add(pod.key)
        self.stirred.add(pod.key)
        if not members:
            del self._gangs[pod.key]
            self.perishable.discard(pod.key)
            del self._news[pod.key]

    def owner_changed(self, namespace: str, now: float) -> None:
        """An owner in this namespace wants another number of members: count its gangs anew."""
        for key in self._gangs:
            if key[0] == namespace:
                self.changed.add(key)
                self._news[key] = self._news[key][0], now

    def claim_changed(self, namespace: str, name: str) -> list[Pod]:
        """A claim or template lets some Pods go elsewhere now: plan their gangs anew; these Pods."""
        pods = [self.pods[uid] for uid in self._claiming.get((namespace, name), ())]
        self.changed.update(pod.key for pod in pods if pod.gang)
        return pods

    def members(self, key: GangKey) -> Iterable[Pod]:
        """All Pods with this gang label in this namespace, finished ones included."""
        return (self.pods[uid] for uid in self._gangs.get(key, ()))

    def muster(self, key: GangKey) -> Muster | None:
        """Count the gang; None where it has no live member."""
        members = list(self.members(key))
        return muster(key, members, self._owners.live_size(members))

    def quiet_since(self, key: GangKey) -> tuple[float, float]:
        """When the gang's first member came, and when the last news of it did (epoch seconds)."""
        return self._news.get(key, (0.0, 0.0))

    @property
    def keys(self) -> Iterable[GangKey]:
        """All gangs with at least one Pod."""
        return self._gangs.keys()
