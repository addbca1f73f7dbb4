"""LeaderWorkerSets and JobSets: the workload above a Pod's controller, which says who belongs together.

Their controllers label each Pod with the set's name and its own place in it, so one look-up by name finds
what four hops of owner references would. The dialects then see the set's group in the place of the owner:

    LeaderWorkerSet   each group (a leader and its workers) by itself, size members
    JobSet            all of its Jobs together; each Job by itself where each is to have a domain of its own

Some of these controllers create the rest only once the first member is scheduled. Such a group has a floor of
one: waiting for the others would be waiting for ever. Its first member still goes where all have room.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gangs import contract
from webhook.pod import Owner, Pod

Json = Mapping[str, Any]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

PATHS: Final = {
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets/{}",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets/{}",
}
_LABELS: Final = {"LeaderWorkerSet": contract.LWS_NAME, "JobSet": contract.JOBSET_NAME}


def path(pod: Pod) -> str:
    """Where the API server has the set that this Pod names, "" if it names none."""
    for kind, label in _LABELS.items():
        name = pod.labels.get(label, "")
        if _NAME.fullmatch(name):
            return PATHS[kind].format(pod.namespace, name)
    return ""


def group_of(pod: Pod, found: Json | None) -> Owner | None:
    """The group of the set that this Pod belongs to; None where it is of no set, or its set isn't known.

    found: the set as the API server has it, None where it could not be read.
    """
    if contract.LWS_NAME in pod.labels:
        return _worker_group(pod, found or {})
    if contract.JOBSET_NAME in pod.labels and found is not None:
        return _jobs(pod, found)
    return None


def _worker_group(pod: Pod, found: Json) -> Owner | None:
    template = _map(_map(found, "spec"), "leaderWorkerTemplate")
    size = _count(pod.annotations.get(contract.LWS_SIZE)) or _count(template.get("size"))
    index = pod.labels.get(contract.LWS_GROUP_INDEX, "")
    if not size:
        return None
    late = _map(found, "spec").get("startupPolicy") == "LeaderReady" or exclusive(pod, found)
    revision = pod.labels.get(contract.LWS_REVISION, "")
    name = f"{pod.labels[contract.LWS_NAME]}-{index}"
    return _group("LeaderWorkerSet", pod, found, _Part(name, size, bool(late), revision))


def _jobs(pod: Pod, found: Json) -> Owner | None:
    rows = [_Jobs.read(row) for row in _map(found, "spec").get("replicatedJobs") or ()]
    mine = pod.labels.get(contract.JOBSET_JOB, "")
    row = next((row for row in rows if row.name == mine), None)
    if row is None:
        return None
    if exclusive(pod, found):
        # JobSet's webhook refuses followers until the Job's first Pod is scheduled.
        name = f"{pod.labels[contract.JOBSET_NAME]}-{row.name}-{pod.labels.get(contract.JOBSET_INDEX, '')}"
        return _group("JobSet", pod, found, _Part(name, row.parallelism, late=True))
    order = _map(_map(found, "spec"), "startupPolicy").get("startupPolicyOrder")
    total = sum(row.members for row in rows)
    late = order == "InOrder" or any(row.waits for row in rows)
    return _group("JobSet", pod, found, _Part(pod.labels[contract.JOBSET_NAME], total, late))


def exclusive(pod: Pod, found: Json | None) -> str:
    """The node label of which each group is to have a value for itself, "" where that isn't asked for."""
    annotations = _map(_map(found or {}, "metadata"), "annotations")
    for key in (contract.LWS_EXCLUSIVE, contract.JOBSET_EXCLUSIVE):
        if level := pod.annotations.get(key) or annotations.get(key):
            return str(level)
    return ""


@dataclass(frozen=True, slots=True)
class _Part:
    """late: whether the rest of its members is created only once the first is scheduled or ready."""

    name: str
    size: int
    late: bool
    revision: str = ""


@dataclass(frozen=True, slots=True)
class _Jobs:
    """A replicated Job of a JobSet. waits: for another one, by dependsOn."""

    name: str
    replicas: int
    parallelism: int
    waits: bool

    @classmethod
    def read(cls, row: Json) -> "_Jobs":
        spec = _map(_map(row, "template"), "spec")
        at_once = _count(spec.get("parallelism")) or 1
        most = min(at_once, _count(spec.get("completions")) or at_once)
        replicas = row.get("replicas", 1)
        number = replicas if isinstance(replicas, int) else 1
        return cls(str(row.get("name", "")), number, most, bool(row.get("dependsOn")))

    @property
    def members(self) -> int:
        return self.replicas * self.parallelism


def _group(kind: str, pod: Pod, found: Json, part: _Part) -> Owner:
    meta = _map(found, "metadata")
    annotations = dict(_map(meta, "annotations"))
    # A request of ours only where the Pod names our scheduler; others have it done by affinity.
    if (level := exclusive(pod, found)) and pod.scheduler not in ("", contract.DEFAULT_SCHEDULER_NAME):
        annotations.setdefault(contract.ANNOTATION_TOPOLOGY_REQUIRED, level)
    return Owner(
        kind=kind,
        namespace=pod.namespace,
        name=part.name,
        uid=f"{meta.get('uid', '')}{part.revision}",
        labels=_map(meta, "labels"),
        annotations=annotations,
        size=part.size,
        most=part.size,
        one_by_one=part.late,
        followed=False,
    )


def _map(holder: Json, key: str) -> Json:
    value = holder.get(key)
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    """A number from 1, 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
