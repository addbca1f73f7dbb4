"""A PodGroup of KAI's (scheduling.run.ai/v2alpha2) that a user has written, and Pods that name it.

KAI's own pod-grouper writes the annotation after a Pod is created; whoever has it at creation has made the
PodGroup himself (kai.scheduler/skip-podgrouper). Its spec says how many must board and in which domain; it is
read and never written.
"""

from collections.abc import Mapping
from typing import Any, Final

from gangs import contract
from gangs.identity import gang_label
from gangs.notes import Note
from webhook.ask import Ask, Gang
from webhook.dialects.common import colocations
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
    title = f"podgroup {pod.namespace}/{name}"
    if around.group is None:
        return _ask(pod, name, floor=1, notes=(_missing(pod, name),))
    spec = mapping(around.group, "spec")
    constraint = mapping(spec, "topologyConstraint")
    topology, required, preferred = (
        str(constraint.get(key) or "")
        for key in ("topology", "requiredTopologyLevel", "preferredTopologyLevel")
    )
    levels = resolve(Wish(title, topology, required, preferred), around.topologies)
    notes = (*levels.notes, *_subgroup_notes(title, spec))
    return _ask(pod, name, _floor(spec), levels.required, levels.preferred, notes)


def _ask(
    pod: Pod, name: str, floor: int, required: str = "", preferred: str = "", notes: tuple[Note, ...] = ()
) -> Ask:
    label = pod.labels.get(contract.LABEL_GANG) or gang_label("kai", "PodGroup", name)
    wide, narrow = ((level,) if level else () for level in (required, preferred))
    return Ask(
        gang=Gang(label, floor, floor, required=wide, preferred=narrow),
        exists=wide,
        colocations=colocations(pod, label, wide, narrow),
        notes=notes,
    )


def _floor(spec: Mapping[str, Any]) -> int:
    """minMember; of a group with subgroups the sum of what its leaves need; as with KAI 1 by default."""
    rows = mappings(spec, "subGroups")
    parents = {row.get("parent") for row in rows}
    leaves = sum(count(row.get("minMember")) for row in rows if row.get("name") not in parents)
    return count(spec.get("minMember")) or leaves or 1


def _subgroup_notes(title: str, spec: Mapping[str, Any]) -> tuple[Note, ...]:
    shared = mapping(spec, "topologyConstraint").get("requiredTopologyLevel")
    for number, row in enumerate(mappings(spec, "subGroups")):
        level = mapping(row, "topologyConstraint").get("requiredTopologyLevel")
        if level and level != shared:
            field = f"spec.subGroups[{number}].topologyConstraint.requiredTopologyLevel"
            message = (
                f'{title}: {field}: "{level}": a domain for each subgroup can\'t be promised yet, so the '
                "gang waits (allowed: spec.topologyConstraint, for all members together)"
            )
            return (Note(message, blocking=True),)
    return ()


def _missing(pod: Pod, name: str) -> Note:
    message = (
        f'{pod.title}: annotation {contract.KAI_POD_GROUP}: no PodGroup "{name}" of '
        "scheduling.run.ai/v2alpha2 was found when the Pod was created, so minMember is not known "
        "(create the PodGroup first, then the Pods)"
    )
    return Note(message, blocking=True)
