"""A PodGroup of KAI's (scheduling.run.ai/v2alpha2) that a user has written, and Pods that name it.

KAI's own pod-grouper writes the annotation after a Pod is created; whoever has it at creation has made the
PodGroup himself (kai.scheduler/skip-podgrouper). Its spec says how many must board, of which subgroups, and
in which domains; it is read and never written. The label kai.scheduler/subgroup-name says to which of them a
Pod belongs.
"""

from collections.abc import Mapping
from typing import Any, Final

from gangs import contract
from gangs.identity import gang_label, is_label_value
from gangs.notes import Note
from gangs.subgroups import Subgroup
from webhook import priorities
from webhook.ask import Ask, Gang
from webhook.dialects.common import Ring
from webhook.levels import Wish, resolve
from webhook.pod import Pod, Surroundings
from webhook.sets.common import count, is_name, mapping, mappings

_PATH: Final = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups/{}"


def path(pod: Pod) -> str:
    """Where the API server has the PodGroup that this Pod names, "" if it names none."""
    name = pod.annotations.get(contract.KAI_POD_GROUP, "")
    # The key has no prefix, so that of Pods which name no scheduler of ours it may mean anything.
    named = pod.scheduler not in ("", contract.DEFAULT_SCHEDULER_NAME)
    return _PATH.format(pod.namespace, name) if named and is_name(name) else ""


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    if not path(pod):
        return None
    name = pod.annotations[contract.KAI_POD_GROUP]
    label = pod.labels.get(contract.LABEL_GANG) or gang_label("kai", "PodGroup", name)
    if around.group is None:
        return Ask(gang=Gang(label), notes=(_missing(pod, name),))
    return _PodGroup(pod, name, label, around).ask()


class _PodGroup:
    """One PodGroup as the Pod's gang."""

    def __init__(self, pod: Pod, name: str, label: str, around: Surroundings) -> None:
        self._pod = pod
        self._label = label
        self._title = f"podgroup {pod.namespace}/{name}"
        self._topologies = around.topologies
        self._priority = priorities.first(priorities.of_group(around.group), around.found)
        self._spec = mapping(around.group or {}, "spec")
        self._rows = {str(row.get("name", "")): row for row in mappings(self._spec, "subGroups")}

    def ask(self) -> Ask:
        rings, path, notes = self._around()
        whole = rings[0]
        floor = self._floor()
        gang = Gang(
            self._label,
            floor,
            floor,
            required=whole.required,
            preferred=whole.preferred,
            subgroups=path,
            min_subgroup=self._needed() if path else None,
        )
        return Ask(
            gang=gang,
            exists=tuple(dict.fromkeys(key for ring in rings for key in ring.required)),
            colocations=tuple(term for ring in rings for term in ring.colocations(self._label)),
            labels=self._queue(),
            priority_class=self._priority,
            notes=(*(note for ring in rings for note in ring.notes), *notes),
        )

    def _around(self) -> tuple[list[Ring], tuple[Subgroup, ...], tuple[Note, ...]]:
        """The gang and the subgroups around the Pod, outermost first."""
        rings = [self._ring(self._title, self._spec, ())]
        name = self._pod.labels.get(contract.KAI_SUBGROUP, "")
        if not self._rows:
            return rings, (), ()
        if name not in self._rows:
            return rings, (), (self._unknown(name),)
        path: list[Subgroup] = []
        for row in self._chain(name):
            inner = str(row.get("name", ""))
            ring = self._ring(f"{self._title} subgroup {inner}", row, self._leaves(inner))
            least = count(row.get("minSubGroup")) or self._needing(inner)
            is_leaf = not self._children(inner)
            floor = count(row.get("minMember")) if is_leaf else 0
            path.append(Subgroup(inner, floor, None if is_leaf else least, ring.required, ring.preferred))
            rings.append(ring)
        return rings, tuple(path), ()

    def _chain(self, name: str) -> list[Mapping[str, Any]]:
        chain: list[Mapping[str, Any]] = []
        while name in self._rows and len(chain) < len(self._rows):  # parents in a circle end it
            chain.insert(0, self._rows[name])
            name = str(self._rows[name].get("parent") or "")
        return chain

    def _children(self, name: str) -> list[str]:
        return [inner for inner, row in self._rows.items() if (row.get("parent") or "") == name]

    def _leaves(self, name: str, depth: int = 0) -> tuple[str, ...]:
        inner = self._children(name) if depth < len(self._rows) else []
        return tuple(leaf for child in inner for leaf in self._leaves(child, depth + 1)) or (name,)

    def _needing(self, name: str) -> int:
        """How many of the subgroups in this one need somebody."""
        leaves = (self._leaves(child) for child in self._children(name))
        return sum(any(count(self._rows[leaf].get("minMember")) for leaf in inside) for inside in leaves)

    def _needed(self) -> int:
        return count(self._spec.get("minSubGroup")) or self._needing("")

    def _floor(self) -> int:
        """minMember; of a group with subgroups the sum of what its leaves need; as with KAI 1 by default."""
        if self._spec.get("minSubGroup"):
            return 1  # which of the subgroups will board shows only when they are here
        leaves = (row for name, row in self._rows.items() if not self._children(name))
        return count(self._spec.get("minMember")) or sum(count(row.get("minMember")) for row in leaves) or 1

    def _ring(self, title: str, holder: Mapping[str, Any], leaves: tuple[str, ...]) -> Ring:
        own = mapping(holder, "topologyConstraint")
        topology = own.get("topology") or mapping(self._spec, "topologyConstraint").get("topology") or ""
        required, preferred = (
            str(own.get(f"{kind}TopologyLevel") or "") for kind in ("required", "preferred")
        )
        wish = Wish(title, str(topology) if required or preferred else "", required, preferred)
        levels = resolve(wish, self._topologies)
        wide, narrow = ((level,) if level else () for level in (levels.required, levels.preferred))
        return Ring(wide, narrow, leaves, levels.notes)

    def _queue(self) -> dict[str, str]:
        queue = str(self._spec.get("queue") or "")
        own = contract.LABEL_QUEUE in self._pod.labels
        return {contract.LABEL_QUEUE: queue} if is_label_value(queue) and not own else {}

    def _unknown(self, name: str) -> Note:
        message = (
            f'{self._pod.title}: label {contract.KAI_SUBGROUP}: "{name}" is no subgroup of {self._title} '
            f"(subgroups: {', '.join(self._rows)})"
        )
        return Note(message, blocking=True)


def _missing(pod: Pod, name: str) -> Note:
    message = (
        f'{pod.title}: annotation {contract.KAI_POD_GROUP}: no PodGroup "{name}" of '
        "scheduling.run.ai/v2alpha2 was found when the Pod was created, so minMember is not known "
        "(create the PodGroup first, then the Pods)"
    )
    return Note(message, blocking=True)
