"""The ways in which a workload can ask for a gang, each in its own file.

Each dialect has `recognise(pod, around) -> Ask | None`; the first that understands the workload decides:

    grove    the PodGang of a Pod that Grove made
    podgroup a PodGroup of KAI's that its author names on the Pod
    kai      KAI's annotations on the owner or the Pod
    nvcf     NVCF's legacy partitions, annotated or by namespace
    groups   a group by name: coscheduling, lightweight labels, Koordinator, Volcano
    native   our own labels and annotations, or a namespace where everything is a gang

A min-member of ours overrides the floor that another dialect arrives at: KAI has no word for it on a
StatefulSet. NVCF's annotation beside KAI's keeps its label and affinity, since charts may rely on them.
A group's name beside either is left unused, and a note says so.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook import priorities
from webhook.ask import Ask
from webhook.dialects import groups, grove, kai, native, nvcf, podgroup
from webhook.pod import Owner, Pod, Surroundings


def group_path(pod: Pod) -> str:
    """Where the API server has the PodGang or PodGroup that this Pod names, "" if it names none."""
    return grove.path(pod) or podgroup.path(pod) or groups.path(pod)


def further(pod: Pod, owner: Owner | None, group: Mapping[str, Any] | None) -> Iterable[str]:
    """What else is to be looked up, once owner and group are known."""
    if grove.path(pod):
        return filter(None, (grove.binding(group), priorities.path(priorities.of_podgang(group))))
    return ()


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    """What the workload asks for, None where it asks for nothing."""
    by_grove = grove.recognise(pod, around)
    if by_grove is not None:
        return groups.alongside(by_grove, pod)
    by_podgroup = podgroup.recognise(pod, around)
    if by_podgroup is not None:
        return native.override(groups.alongside(by_podgroup, pod), pod, None)
    by_kai = kai.recognise(pod, around)
    if by_kai is not None:
        return native.override(groups.alongside(nvcf.alongside(by_kai, pod), pod), pod, around.owner)
    by_nvcf = nvcf.recognise(pod, around)
    if by_nvcf is not None:
        return native.override(groups.alongside(by_nvcf, pod), pod, around.owner)
    by_group = groups.recognise(pod, around)
    if by_group is not None:
        return native.override(by_group, pod, None)
    return native.recognise(pod, around)
