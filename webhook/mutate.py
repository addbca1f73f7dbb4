"""From a Pod to its patch.

    is it ours to touch? ──► look up owner, namespace, Topologies ──► what does it ask for? ──► patch

The first and the last two steps are pure. Nothing here denies a Pod: what could not be read or understood
stands in the Pod's notes. Only where its owner exists and can't be read just now is there no answer
(docs/decisions/0005-an-owner-is-never-guessed.md).
"""

from collections.abc import Sequence
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.dialects import further, group_path, kai, podgroup, recognise
from webhook.lookup import Lookups
from webhook.patch import Operation
from webhook.pod import Owner, Pod, Surroundings, open_names, own_names
from webhook.render import remark, render

_MIRROR: Final = "kubernetes.io/config.mirror"
_SYSTEM_NAMESPACE: Final = "kube-system"


class UndecidedError(Exception):
    """Whether the Pod asks for anything can't be found out now; the text says why."""


class Mutator:
    """Answers one Pod at a time. profiles: the scheduler names that are served."""

    def __init__(self, lookups: Lookups, profiles: Sequence[str]) -> None:
        self._lookups = lookups
        self._profiles = tuple(profiles)

    async def operations(self, pod: Pod) -> list[Operation]:
        """The JSON patch for this Pod, [] where it stays as it is. Raises UndecidedError."""
        if not is_ours_to_touch(pod, self._profiles):
            return []
        around = await self._lookups.gather(pod, _needs_topologies, group_path(pod), further)
        if around.undecided:
            raise UndecidedError(f"{pod.title}: {'; '.join(around.failures)}")
        return decide(pod, around, self._profiles)


def _needs_topologies(pod: Pod, owner: Owner | None) -> bool:
    return bool(podgroup.path(pod)) or kai.needs_topologies(pod, owner)


def is_ours_to_touch(pod: Pod, profiles: Sequence[str]) -> bool:
    """Whether anything may be changed, judged by the Pod alone (design rule 1)."""
    if pod.node or pod.natively_grouped or pod.namespace == _SYSTEM_NAMESPACE or _MIRROR in pod.annotations:
        return False
    if pod.controller is not None and pod.controller.kind == "DaemonSet":
        return False
    if pod.labels.get(contract.LABEL_WEBHOOK) == contract.WEBHOOK_IGNORE:
        return False
    return pod.scheduler in open_names(profiles)


def decide(pod: Pod, around: Surroundings, profiles: Sequence[str]) -> list[Operation]:
    """The patch for a Pod that may be touched. Pure."""
    if around.namespace_labels.get(contract.LABEL_WEBHOOK) == contract.WEBHOOK_IGNORE:
        return []
    ask = recognise(pod, around)
    if ask is None:
        return remark(pod, _blindness(pod, around) if pod.scheduler in own_names(profiles) else ())
    notes = (*ask.notes, *_blindness(pod, around))
    inherited = {contract.LABEL_QUEUE: _queue(pod, around), **_preemptibility(around)}
    return render(pod, ask, _scheduler(pod, profiles), inherited, notes)


def _scheduler(pod: Pod, profiles: Sequence[str]) -> str:
    name = pod.scheduler or contract.DEFAULT_SCHEDULER_NAME
    if name in profiles:
        return name
    return own_names(profiles)[0]


def _queue(pod: Pod, around: Surroundings) -> str:
    owner_labels = around.owner.labels if around.owner else {}
    for labels in (pod.labels, owner_labels, around.namespace_labels):
        if queue := labels.get(contract.LABEL_QUEUE):
            return queue
    return contract.DEFAULT_QUEUE


def _preemptibility(around: Surroundings) -> dict[str, str]:
    """KAI's label of the owner, which counts before the Pod's own."""
    owner_labels = around.owner.labels if around.owner else {}
    value = owner_labels.get(contract.KAI_PREEMPTIBILITY)
    return {contract.KAI_PREEMPTIBILITY: value} if value else {}


def _blindness(pod: Pod, around: Surroundings) -> tuple[Note, ...]:
    return tuple(
        Note(f"{pod.title}: {failure}; only what the Pod itself says was taken")
        for failure in around.failures
    )
