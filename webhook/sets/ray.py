"""RayCluster (ray.io/v1): the head and its workers are one gang.

Of an autoscaled group minReplicas are waited for, the rest joins. RayJobs and RayServices make RayClusters,
and it is the RayCluster's annotations, or those of the Pod templates, that count.
"""

from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import Json, Part, count, mapping, mappings, owner

NAME: Final = contract.RAY_CLUSTER
KIND: Final = "RayCluster"
PATHS: Final = {KIND: ("/apis/ray.io/v1/namespaces/{}/rayclusters/{}",)}


def where(_: Pod) -> str:
    return PATHS[KIND][0]


def group(pod: Pod, found: Json) -> Owner | None:
    spec = mapping(found, "spec")
    if not spec:
        return None
    rows = [row for row in mappings(spec, "workerGroupSpecs") if not row.get("suspend")]
    size = 1 + sum(_members(row, row.get("replicas", 1)) for row in rows)
    floor = 1 + sum(_members(row, row.get("minReplicas") or row.get("replicas", 1)) for row in rows)
    return owner(KIND, pod, found, Part(pod.labels[NAME], max(size, floor), floor))


def _members(row: Json, replicas: object) -> int:
    return count(replicas) * (count(row.get("numOfHosts")) or 1)
