"""The one place where an Ask becomes changes to a Pod, whatever its dialect.

Scheduler name and queue label for every Pod that asks for something; gang label, counts, levels and the
gate for members of a gang. Seeing its own output again it changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gangs import contract
from gangs.identity import subgroup_label
from gangs.notes import Note, encode
from gangs.subgroups import encode as subgroups
from webhook import patch
from webhook.affinity import constrained
from webhook.ask import Ask, Gang
from webhook.patch import Operation
from webhook.pod import Pod

_LABELS: Final = ("metadata", "labels")
_ANNOTATIONS: Final = ("metadata", "annotations")
# Ours alone to write: what a user puts there would be taken for our word.
_RESERVED: Final = (contract.ANNOTATION_PLAN, contract.ANNOTATION_NOTES, contract.ANNOTATION_EVICTED_FOR)


def render(
    pod: Pod, ask: Ask, scheduler: str, inherited: Mapping[str, str], notes: Sequence[Note]
) -> list[Operation]:
    """The patch for a Pod that asks for something.

    scheduler: the name that it shall have. inherited: labels by what is around it, its queue among them.
    """
    metadata, spec = pod.raw["metadata"], pod.raw["spec"]
    labels = {**inherited, **ask.labels}
    if ask.gang:
        labels[contract.LABEL_GANG] = ask.gang.label
        if ask.gang.subgroups:
            labels[contract.LABEL_SUBGROUP] = subgroup_label(ask.gang.subgroups[-1].name)
    operations = patch.set_entries(metadata, _LABELS, labels)
    operations += _annotate(pod, {**_counted(ask.gang), **ask.verbatim} if ask.gang else {}, notes)
    operations += patch.set_field(spec, ("spec", "schedulerName"), scheduler)
    if ask.priority_class and spec.get("priorityClassName") != ask.priority_class:
        operations += patch.set_field(spec, ("spec", "priorityClassName"), ask.priority_class)
        # Made from the class that it had; the API server makes them anew from the one that it gets.
        operations += patch.remove_entries({"spec": spec}, ("spec",), ("priority", "preemptionPolicy"))
    affinity = constrained(spec.get("affinity"), ask)
    if affinity is not None:
        operations += patch.set_field(spec, ("spec", "affinity"), affinity)
    if ask.gang:
        operations += patch.append(spec, ("spec", "schedulingGates"), {"name": contract.GATE})
    return operations


def remark(pod: Pod, notes: Sequence[Note]) -> list[Operation]:
    """The patch for a Pod that asks for nothing: what we have to say, and no word of ours by others."""
    return _annotate(pod, {}, notes)


def _annotate(pod: Pod, annotations: Mapping[str, str], notes: Sequence[Note]) -> list[Operation]:
    wanted = dict(annotations)
    if notes:
        wanted[contract.ANNOTATION_NOTES] = encode(notes)
    metadata = pod.raw["metadata"]
    forged = tuple(key for key in _RESERVED if key not in wanted)
    return patch.set_entries(metadata, _ANNOTATIONS, wanted) + patch.remove_entries(
        metadata, _ANNOTATIONS, forged
    )


def _counted(gang: Gang) -> dict[str, str]:
    facts = {
        contract.ANNOTATION_MIN_MEMBER: str(gang.min_member),
        contract.ANNOTATION_SIZE: str(gang.size),
        contract.ANNOTATION_SIZE_FROM: gang.size_from,
        contract.ANNOTATION_TOPOLOGY_REQUIRED: ",".join(gang.required),
        contract.ANNOTATION_TOPOLOGY_PREFERRED: ",".join(gang.preferred),
        contract.ANNOTATION_SUBGROUPS: subgroups(gang.subgroups) if gang.subgroups else "",
        contract.ANNOTATION_MIN_SUBGROUP: str(gang.min_subgroup or ""),
        contract.ANNOTATION_AFTER: gang.after,
    }
    return {key: value for key, value in facts.items() if value}
