"""What all kinds of sets are read with: forgiving, since nothing here was validated for us."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gangs import contract
from webhook.pod import Owner, Place, Pod

Json = Mapping[str, Any]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_EXCLUSIVE: Final = (contract.LWS_EXCLUSIVE, contract.JOBSET_EXCLUSIVE)


@dataclass(frozen=True, slots=True)
class Part:
    """A group of a set. floor: how many of size must board at once.

    late: whether the rest of its members is created only once the first is scheduled or ready.
    """

    name: str
    size: int
    floor: int
    late: bool = False
    revision: str = ""


def owner(kind: str, pod: Pod, found: Json, part: Part) -> Owner:
    """The group in the owner's place."""
    meta = mapping(found, "metadata")
    annotations = dict(mapping(meta, "annotations"))
    # A request of ours only where the Pod names our scheduler; others have it done by affinity.
    if (level := exclusive(pod, found)) and pod.scheduler not in ("", contract.DEFAULT_SCHEDULER_NAME):
        annotations.setdefault(contract.ANNOTATION_TOPOLOGY_REQUIRED, level)
    return Owner(
        kind=kind,
        namespace=pod.namespace,
        name=part.name,
        uid=f"{meta.get('uid', '')}{part.revision}",
        labels=mapping(meta, "labels"),
        annotations=annotations,
        size=part.size,
        most=part.size,
        floor=part.floor,
        one_by_one=part.late,
        followed=False,
    )


def place(
    name: str, keys: Json, min_member: int = 0, min_subgroup: int | None = None, topology: str = ""
) -> Place:
    """A subgroup by KAI's annotations on what stands for it. topology: of the set, where that has none."""
    return Place(
        name,
        min_member,
        min_subgroup,
        str(keys.get(contract.KAI_TOPOLOGY) or topology),
        str(keys.get(contract.KAI_TOPOLOGY_REQUIRED) or ""),
        str(keys.get(contract.KAI_TOPOLOGY_PREFERRED) or ""),
    )


def asks_for_domain(keys: Json) -> bool:
    """Whether KAI's annotations ask for one."""
    return bool(keys.get(contract.KAI_TOPOLOGY_REQUIRED) or keys.get(contract.KAI_TOPOLOGY_PREFERRED))


def annotations(holder: Json) -> Json:
    """Those in its metadata."""
    return mapping(mapping(holder, "metadata"), "annotations")


def exclusive(pod: Pod, found: Json) -> str:
    """The node label of which each group is to have a value for itself, "" where that isn't asked for."""
    annotations = mapping(mapping(found, "metadata"), "annotations")
    for key in _EXCLUSIVE:
        if level := pod.annotations.get(key) or annotations.get(key):
            return str(level)
    return ""


def is_name(text: str) -> bool:
    """Whether an object may be called so; a label may hold what would lead to another object."""
    return _NAME.fullmatch(text) is not None


def mapping(holder: Json, key: str) -> Json:
    """The map under this key, {} where there is none."""
    value = holder.get(key)
    return value if isinstance(value, Mapping) else {}


def mappings(holder: Json, key: str) -> list[Json]:
    """The maps in the list under this key."""
    value = holder.get(key)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def count(value: object) -> int:
    """A number from 1, 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
