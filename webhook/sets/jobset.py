"""JobSet (jobset.x-k8s.io/v1alpha2): all of its Jobs are one gang.

Where Jobs are created one after another (startupPolicyOrder InOrder, dependsOn) nobody can wait for all. With
exclusive topology each Job is a gang by itself, and JobSet's own webhook refuses followers until the Job's
first Pod is scheduled.
"""

from dataclasses import dataclass
from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import Json, Part, count, exclusive, mapping, mappings, owner

NAME: Final = contract.JOBSET_NAME
KIND: Final = "JobSet"
PATHS: Final = {KIND: ("/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets/{}",)}


def where(_: Pod) -> str:
    return PATHS[KIND][0]


def group(pod: Pod, found: Json) -> Owner | None:
    spec = mapping(found, "spec")
    rows = [_Jobs.read(row) for row in mappings(spec, "replicatedJobs")]
    mine = next((row for row in rows if row.name == pod.labels.get(contract.JOBSET_JOB, "")), None)
    if mine is None:
        return None
    if exclusive(pod, found):
        name = f"{pod.labels[NAME]}-{mine.name}-{pod.labels.get(contract.JOBSET_INDEX, '')}"
        return owner(KIND, pod, found, Part(name, mine.parallelism, mine.parallelism, late=True))
    total = sum(row.replicas * row.parallelism for row in rows)
    in_order = mapping(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder"
    late = in_order or any(row.waits for row in rows)
    return owner(KIND, pod, found, Part(pod.labels[NAME], total, total, late))


@dataclass(frozen=True, slots=True)
class _Jobs:
    """A replicated Job. parallelism: Pods that one Job has at one time. waits: for another, by dependsOn."""

    name: str
    replicas: int
    parallelism: int
    waits: bool

    @classmethod
    def read(cls, row: Json) -> "_Jobs":
        spec = mapping(mapping(row, "template"), "spec")
        at_once = count(spec.get("parallelism")) or 1
        most = min(at_once, count(spec.get("completions")) or at_once)
        replicas = row.get("replicas", 1)
        number = replicas if isinstance(replicas, int) else 1
        return cls(str(row.get("name", "")), number, most, bool(row.get("dependsOn")))
