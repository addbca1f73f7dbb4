"""JobSet (jobset.x-k8s.io/v1alpha2): all of its Jobs are one gang.

Where Jobs are created one after another (startupPolicyOrder InOrder, dependsOn) nobody can wait for all. With
exclusive topology each Job is a gang by itself, and JobSet's own webhook refuses followers until the Job's
first Pod is scheduled. KAI's keys on the template of a replicated Job are for each of its Jobs by itself.
"""

from dataclasses import dataclass, replace
from typing import Final

from gangs import contract
from webhook.pod import Owner, Place, Pod
from webhook.sets.common import (
    Json,
    Part,
    annotations,
    asks_for_domain,
    count,
    exclusive,
    mapping,
    mappings,
    owner,
    place,
)

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
    total = sum(row.total for row in rows)
    in_order = mapping(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder"
    late = in_order or any(row.waits for row in rows)
    least = min(count(annotations(found).get(contract.KAI_BATCH_MIN_MEMBER)) or len(rows), len(rows))
    floor = sum(sorted(row.floor for row in rows)[:least])
    made = owner(KIND, pod, found, Part(pod.labels[NAME], total, floor, late))
    if late or not (least < len(rows) or any(row.special for row in rows)):
        return made
    job = f"{mine.name}-replica-{pod.labels.get(contract.JOBSET_INDEX, '')}"
    places = Place(mine.name, min_subgroup=mine.replicas), place(job, mine.keys, mine.least)
    return replace(made, places=places, min_subgroup=least)


@dataclass(frozen=True, slots=True)
class _Jobs:
    """A replicated Job. parallelism: Pods that one Job has at one time, least of which board at once.

    waits: for another, by dependsOn. keys: KAI's annotations on the template, for each Job by itself.
    """

    name: str
    replicas: int
    parallelism: int
    waits: bool
    keys: Json

    @property
    def total(self) -> int:
        return self.replicas * self.parallelism

    @property
    def least(self) -> int:
        return min(count(self.keys.get(contract.KAI_BATCH_MIN_MEMBER)) or self.parallelism, self.parallelism)

    @property
    def floor(self) -> int:
        return self.replicas * self.least

    @property
    def special(self) -> bool:
        """Whether each Job is more than a part of the whole."""
        return self.least < self.parallelism or asks_for_domain(self.keys)

    @classmethod
    def read(cls, row: Json) -> "_Jobs":
        spec = mapping(mapping(row, "template"), "spec")
        at_once = count(spec.get("parallelism")) or 1
        most = min(at_once, count(spec.get("completions")) or at_once)
        replicas = row.get("replicas", 1)
        number = replicas if isinstance(replicas, int) else 1
        keys = annotations(mapping(row, "template"))
        return cls(str(row.get("name", "")), number, most, bool(row.get("dependsOn")), keys)
