"""The ways in which a workload can ask for a gang, each in its own file.

Each dialect has `recognise(pod, around) -> Ask | None`; the first that understands the workload decides:

    grove    the PodGang of a Pod that Grove made
    podgroup a PodGroup of KAI's that its author names on the Pod
    kai      KAI's annotations on the owner or the Pod
    nvcf     NVCF's legacy partitions, annotated or by namespace
    yunikorn YuniKorn's task groups
    groups   a group by name: coscheduling, lightweight labels, Koordinator, Volcano
    native   our own labels and annotations, or a namespace where everything is a gang

Where another is there, too, the first says who belongs together, and the stricter floor and level win
(strict.py). A min-member of ours overrides the floor that another dialect arrives at: KAI has no word for it
on a StatefulSet. NVCF's annotation beside KAI's keeps its label and affinity, since charts may rely on them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook import priorities
from webhook.ask import Ask
from webhook.dialects import groups, grove, kai, native, nvcf, podgroup, yunikorn
from webhook.dialects.strict import stricter, with_own_levels
from webhook.pod import Owner, Pod, Surroundings


def group_path(pod: Pod) -> str:
    """Where the API server has the PodGang or PodGroup that this Pod names, "" if it names none."""
    return grove.path(pod) or podgroup.path(pod) or groups.path(pod)


def further(pod: Pod, owner: Owner | None, group: Mapping[str, Any] | None) -> Iterable[str]:
    """What else is to be looked up, once owner and group are known."""
    if grove.path(pod):
        return (*filter(None, (grove.binding(group),)), *priorities.paths(priorities.of_group(group)))
    if podgroup.path(pod):
        return priorities.paths(priorities.of_group(group))
    return priorities.paths(priorities.by_labels(pod, owner)) if kai.asks(pod, owner) else ()


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    """What the workload asks for, None where it asks for nothing."""
    owner = around.owner
    others = yunikorn.beside(pod) or groups.beside(pod, around)
    by_grove = grove.recognise(pod, around)
    if by_grove is not None:
        return stricter(by_grove, others, "Grove", pod, None)
    by_podgroup = podgroup.recognise(pod, around)
    if by_podgroup is not None:
        return _ours(stricter(by_podgroup, others, "KAI", pod, None), "KAI", pod, None)
    by_kai = kai.recognise(pod, around)
    if by_kai is not None:
        ask = stricter(nvcf.alongside(by_kai, pod), others, "KAI", pod, owner)
        return _ours(ask, "KAI", pod, owner)
    by_nvcf = nvcf.recognise(pod, around)
    if by_nvcf is not None:
        return _ours(stricter(by_nvcf, others, "NVCF", pod, None), "NVCF", pod, owner)
    by_task_groups = yunikorn.recognise(pod, around)
    if by_task_groups is not None:
        return stricter(by_task_groups, groups.beside(pod, around), "YuniKorn", pod, None)
    by_group = groups.recognise(pod, around)
    if by_group is not None:
        return native.override(by_group, pod, None)
    return native.recognise(pod, around)


def _ours(ask: Ask, who: str, pod: Pod, owner: Owner | None) -> Ask:
    """Our own annotations beside those of another dialect."""
    return native.override(with_own_levels(ask, who, pod, owner), pod, owner)
