"""Which gangs the manifests ask for, read from the workloads themselves.

Not from what the webhook wrote: a wrong minMember there must not fool the checker. Asked for are

    StatefulSet, Parallel, with KAI's topology annotations     all replicas, one domain of the level
    Pods with NVCF's required-nvlink-domain-index              all replicas with this value in the namespace
    Pods with an allaboard.dev/gang label of their own         what their own annotations say
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = Mapping[str, Any]

CLIQUE: Final = "nvidia.com/gpu.clique"
_KAI_REQUIRED: Final = "kai.scheduler/topology-required-placement"
_NVCF_INDEX: Final = "dra.nvcf.nvidia.io/required-nvlink-domain-index"
_GANG: Final = "allaboard.dev/gang"
_MIN_MEMBER: Final = "allaboard.dev/min-member"
_REQUIRED: Final = "allaboard.dev/topology-required"


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang as its author meant it. level: node label that all members must share, "" for none."""

    name: str
    floor: int
    level: str
    members: tuple[str, ...]  # UIDs of its Pods


def gangs(pods: Iterable[Json], statefulsets: Iterable[Json]) -> list[Gang]:
    """Every gang among these Pods and their StatefulSets."""
    sets = {s["metadata"]["uid"]: s for s in statefulsets}
    groups: dict[tuple[str, str, int, str], list[str]] = {}
    for pod in pods:
        found = _gang_of(pod, sets)
        if found:
            groups.setdefault(found, []).append(pod["metadata"]["uid"])
    return [
        Gang(f"{ns}/{name}", floor, level, tuple(uids)) for (ns, name, floor, level), uids in groups.items()
    ]


def _gang_of(pod: Json, sets: Mapping[str, Json]) -> tuple[str, str, int, str] | None:
    namespace, annotations = pod["metadata"]["namespace"], pod["metadata"].get("annotations") or {}
    owner = next((sets[uid] for uid in _owners(pod) if uid in sets), None)
    index = annotations.get(_NVCF_INDEX)
    if index:
        return namespace, f"partition {index}", _partition(namespace, index, sets.values()), CLIQUE
    if owner and _KAI_REQUIRED in (owner["metadata"].get("annotations") or {}):
        if owner["spec"].get("podManagementPolicy") != "Parallel":
            return None
        level = owner["metadata"]["annotations"][_KAI_REQUIRED]
        return namespace, owner["metadata"]["name"], owner["spec"].get("replicas", 1), level
    label = (pod["metadata"].get("labels") or {}).get(_GANG)
    if label and not owner:
        return namespace, label, int(annotations.get(_MIN_MEMBER, 1)), annotations.get(_REQUIRED, "")
    return None


def _owners(pod: Json) -> Iterator[str]:
    return (owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ())


def _partition(namespace: str, index: str, sets: Iterable[Json]) -> int:
    """Replicas of all StatefulSets in the namespace whose template carries this value."""
    total = 0
    for owner in sets:
        template = owner["spec"]["template"].get("metadata") or {}
        same = (template.get("annotations") or {}).get(_NVCF_INDEX) == index
        if same and owner["metadata"]["namespace"] == namespace:
            total += owner["spec"].get("replicas", 1)
    return total
