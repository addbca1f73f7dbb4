"""How many members a gang's owner wants right now (rule 5 of the design: the live size rules).

The webhook writes the size that it saw; scaling, a Job's progress or a second owner of an NVCF
partition change it later. Where a gang's size follows its owners, this is where the live figure comes
from: StatefulSets, Deployments and Jobs, watched.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gangs import contract
from gangs.pods import Pod

PATHS: Final[Mapping[str, str]] = {
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Deployment": "/apis/apps/v1/deployments",
    "Job": "/apis/batch/v1/jobs",
}


_ASKING: Final = (
    contract.ANNOTATION_MIN_MEMBER,
    contract.ANNOTATION_TOPOLOGY_REQUIRED,
    contract.ANNOTATION_TOPOLOGY_PREFERRED,
    contract.KAI_TOPOLOGY_REQUIRED,
    contract.KAI_TOPOLOGY_PREFERRED,
    contract.KAI_BATCH_MIN_MEMBER,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an owner wants: so many Pods, with this NVCF index in their template ("" for none).

    asks: whether one of our keys or KAI's makes a gang of it.
    """

    uid: str
    namespace: str
    members: int
    partition_index: str
    asks: bool = False


def wanted(kind: str, obj: Mapping[str, Any]) -> Wanted:
    """Read a StatefulSet, Deployment or Job."""
    meta, spec = obj["metadata"], obj["spec"]
    template = (spec["template"].get("metadata") or {}).get("annotations") or {}
    keys = {**(meta.get("annotations") or {}), **template}
    members = _job_members(spec, obj.get("status") or {}) if kind == "Job" else spec.get("replicas", 1)
    leaving = "deletionTimestamp" in meta
    return Wanted(
        uid=meta["uid"],
        namespace=meta["namespace"],
        members=0 if leaving else members,
        partition_index=template.get(contract.NVCF_INDEX, ""),
        asks=any(keys.get(key) for key in _ASKING),
    )


def _job_members(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    """min(parallelism, completions left); a suspended Job wants none."""
    if spec.get("suspend"):
        return 0
    parallelism: int = spec.get("parallelism", 1)
    completions = spec.get("completions")
    return parallelism if completions is None else min(parallelism, completions - status.get("succeeded", 0))


class Owners:
    """All owners known, by UID."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Wanted] = {}

    def put(self, owner: Wanted) -> bool:
        """Remember the owner; whether that changed anything."""
        changed = self._by_uid.get(owner.uid) != owner
        self._by_uid[owner.uid] = owner
        return changed

    def drop(self, uid: str) -> bool:
        """Forget the owner; whether it was known."""
        return self._by_uid.pop(uid, None) is not None

    def asks(self, uid: str) -> bool:
        """Whether this owner is known and asks for a gang."""
        owner = self._by_uid.get(uid)
        return owner is not None and owner.asks

    def live_size(self, members: Iterable[Pod]) -> int | None:
        """The size that these members' gang is to have, None where the annotations are the truth."""
        newest = max((p for p in members if p.live), key=lambda p: p.created, default=None)
        match newest.demand.size_from if newest else "":
            case contract.SIZE_FROM_OWNER:
                return self._of_owner(newest) if newest else None
            case contract.SIZE_FROM_PARTITION:
                return self._of_partition(newest) if newest else None
        return None

    def _of_owner(self, pod: Pod) -> int | None:
        owner = self._by_uid.get(pod.owner.uid) if pod.owner else None
        return owner.members if owner else None

    def _of_partition(self, pod: Pod) -> int | None:
        sizes = [
            owner.members
            for owner in self._by_uid.values()
            if owner.namespace == pod.namespace and owner.partition_index == pod.partition_index
        ]
        return sum(sizes) if sizes else None
