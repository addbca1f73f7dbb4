"""YuniKorn's task groups: annotations that say how many of each kind must be there before any may start.

    yunikorn.apache.org/task-groups       JSON on the Pods: [{"name": "worker", "minMember": 3}, …]
    yunikorn.apache.org/task-group-name   which of them the Pod belongs to
    app id (label or annotation)          whose Pods are one gang; else those of the owner

Each task group is a subgroup. YuniKorn reserves by placeholder Pods, so its first Pod may be there before the
others are made; we make none. Spark's driver makes its executors, so Spark's task groups are no floor.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from gangs import contract
from gangs.identity import gang_label
from gangs.notes import Note
from gangs.subgroups import Subgroup
from webhook.ask import Ask, Gang
from webhook.counts import number_of_members
from webhook.dialects import native
from webhook.dialects.common import Ring, identity
from webhook.dialects.strict import Beside
from webhook.pod import Pod, Surroundings

_DIALECT: Final = "yunikorn"
_APP_KEYS: Final = (contract.YUNIKORN_APP, contract.YUNIKORN_APP_LABEL)


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    name = pod.annotations.get(contract.YUNIKORN_GROUP, "")
    if not name:
        return None
    groups, notes = _groups(pod, name)
    if contract.SPARK_APP in pod.labels:
        groups, notes = {}, (_spark(pod),)
    required, bad_required = native.levels(pod, around.owner, contract.ANNOTATION_TOPOLOGY_REQUIRED)
    preferred, bad_preferred = native.levels(pod, around.owner, contract.ANNOTATION_TOPOLOGY_PREFERRED)
    label = pod.labels.get(contract.LABEL_GANG) or _label(pod, around)
    floor = max(1, sum(groups.values()))
    gang = Gang(
        label,
        floor,
        floor,
        required=required,
        preferred=preferred,
        subgroups=(Subgroup(name, groups[name]),) if name in groups else (),
        min_subgroup=len(groups) or None,
    )
    return Ask(
        gang=gang,
        exists=required,
        colocations=tuple(Ring(required, preferred).colocations(label)),
        notes=(*notes, *bad_required, *bad_preferred),
    )


def beside(pod: Pod) -> Beside | None:
    """What the task groups say where another dialect decides."""
    name = pod.annotations.get(contract.YUNIKORN_GROUP, "")
    if not name:
        return None
    groups, _ = _groups(pod, name)
    floor = 0 if contract.SPARK_APP in pod.labels else sum(groups.values())
    return Beside(f'annotation {contract.YUNIKORN_GROUP}: "{name}"', floor)


def _label(pod: Pod, around: Surroundings) -> str:
    entries = {**pod.annotations, **pod.labels}
    if app := next((entries[key] for key in _APP_KEYS if entries.get(key)), ""):
        return gang_label(_DIALECT, "Application", app)
    return identity(_DIALECT, pod, around.owner)


def _groups(pod: Pod, name: str) -> tuple[dict[str, int], tuple[Note, ...]]:
    """minMember by name of the task groups, and what is wrong with them."""
    value = pod.annotations.get(contract.YUNIKORN_GROUPS, "")
    try:
        rows = json.loads(value) if value else []
        groups = dict(_group(row) for row in rows)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        groups = {}
    if name in groups:
        return groups, ()
    where = f"{pod.title}: annotation {contract.YUNIKORN_GROUPS}"
    what = f"names no group {name} with a minMember" if value else "is missing"
    message = (
        f"{where} {what}, so it is not known how many must board (allowed on every Pod: a JSON list such as "
        f'[{{"name": "{name}", "minMember": 2}}])'
    )
    return {}, (Note(message, blocking=True),)


def _group(row: Mapping[str, Any]) -> tuple[str, int]:
    number = number_of_members(str(row["minMember"]))
    if not number:
        raise ValueError(row)
    return str(row["name"]), number


def _spark(pod: Pod) -> Note:
    return Note(
        f"{pod.title}: annotation {contract.YUNIKORN_GROUP}: the driver makes the executors, so nobody waits "
        "for them; the application's Pods are kept together where a domain is asked for"
    )
