"""Groups by name, as coscheduling, Koordinator and Volcano know them.

    scheduling.x-k8s.io/pod-group           label        minMember of the PodGroup scheduling.x-k8s.io
    pod-group.scheduling.sigs.k8s.io/name   label        .../min-available beside it
    gang.scheduling.koordinator.sh/name     annotation   .../min-available beside it
    scheduling.k8s.io/group-name            annotation   minMember of the PodGroup scheduling.volcano.sh

The first of them on a Pod decides. A number that can't be found blocks: a gang that boarded by a guess
would be a broken promise.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gangs import contract
from gangs.identity import gang_label
from gangs.notes import Note
from webhook.ask import Ask, Gang
from webhook.counts import number_of_members
from webhook.dialects import native
from webhook.dialects.common import colocations
from webhook.dialects.strict import Beside
from webhook.pod import Pod, Surroundings

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class _Style:
    """name, floor: keys. api: of the PodGroup which holds the floor where no key does, else ""."""

    field: str
    name: str
    floor: str = ""
    api: str = ""


_STYLES: Final = (
    _Style("label", contract.COSCHEDULING_GROUP, api="scheduling.x-k8s.io/v1alpha1"),
    _Style("label", contract.LIGHTWEIGHT_GROUP, contract.LIGHTWEIGHT_MIN),
    _Style("annotation", contract.KOORDINATOR_GROUP, contract.KOORDINATOR_MIN),
    _Style("annotation", contract.VOLCANO_GROUP, api="scheduling.volcano.sh/v1beta1"),
)


def path(pod: Pod) -> str:
    """Where the API server has the PodGroup that this Pod names, "" if it names none."""
    style = _style(pod)
    if style is None or not style.api:
        return ""
    name = _entries(style, pod)[style.name]
    # An annotation may hold anything, also what would lead to another object.
    if not _NAME.fullmatch(name):
        return ""
    return f"/apis/{style.api}/namespaces/{pod.namespace}/podgroups/{name}"


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    style = _style(pod)
    if style is None:
        return None
    name = _entries(style, pod)[style.name]
    floor, notes = _floor(style, name, pod, around.group)
    required, bad_required = native.levels(pod, around.owner, contract.ANNOTATION_TOPOLOGY_REQUIRED)
    preferred, bad_preferred = native.levels(pod, around.owner, contract.ANNOTATION_TOPOLOGY_PREFERRED)
    label = pod.labels.get(contract.LABEL_GANG) or gang_label("group", "PodGroup", name)
    return Ask(
        gang=Gang(label, floor, floor, required=required, preferred=preferred),
        exists=required,
        colocations=colocations(pod, label, required, preferred),
        notes=(*notes, *bad_required, *bad_preferred),
    )


def beside(pod: Pod, around: Surroundings) -> Beside | None:
    """What the group says where another dialect decides."""
    style = _style(pod)
    if style is None:
        return None
    name = _entries(style, pod)[style.name]
    # Where the deciding dialect names a group, too, it is that one's which was looked up.
    known = bool(style.floor) or (around.group is not None and around.group_path == path(pod))
    floor, notes = _floor(style, name, pod, around.group) if known else (0, ())
    return Beside(f'{style.field} {style.name}: "{name}"', 0 if notes else floor)


def _style(pod: Pod) -> _Style | None:
    return next((style for style in _STYLES if _entries(style, pod).get(style.name)), None)


def _entries(style: _Style, pod: Pod) -> Mapping[str, str]:
    return pod.labels if style.field == "label" else pod.annotations


def _floor(
    style: _Style, name: str, pod: Pod, group: Mapping[str, Any] | None
) -> tuple[int, tuple[Note, ...]]:
    if style.floor:
        value = _entries(style, pod).get(style.floor, "")
        where = f'{pod.title}: {style.field} {style.floor}: "{value}"'
    elif group is None:
        message = (
            f'{pod.title}: {style.field} {style.name}: no PodGroup "{name}" of {style.api} was found when '
            "the Pod was created, so minMember is not known (create the PodGroup first, then the Pods)"
        )
        return 1, (Note(message, blocking=True),)
    else:
        spec = group.get("spec")
        value = str(spec.get("minMember", "")) if isinstance(spec, Mapping) else ""
        where = f'podgroup {pod.namespace}/{name}: spec.minMember: "{value}"'
    if number := number_of_members(value):
        return number, ()
    message = f"{where} is no number of members (allowed: a whole number from 1)"
    return 1, (Note(message, blocking=True),)
