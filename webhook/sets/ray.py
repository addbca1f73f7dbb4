"""RayCluster (ray.io/v1): the head and its workers are one gang.

Of an autoscaled group minReplicas are waited for, the rest joins. RayJobs and RayServices make RayClusters,
and it is the RayCluster's annotations, or those of the Pod templates, that count.
"""

from dataclasses import replace
from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import (
    Json,
    Part,
    annotations,
    asks_for_domain,
    count,
    mapping,
    mappings,
    owner,
    place,
)

_HEAD: Final = "headgroup"
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
    floor = 1 + sum(_least(row) for row in rows)
    made = owner(KIND, pod, found, Part(pod.labels[NAME], max(size, floor), floor))
    groups = {str(row.get("groupName", "")): row for row in rows}
    templates = [mapping(row, "template") for row in (mapping(spec, "headGroupSpec"), *rows)]
    if not any(asks_for_domain(annotations(template)) for template in templates):
        return made
    name = pod.labels.get(contract.RAY_GROUP, _HEAD)
    keys = annotations(mapping(groups.get(name) or mapping(spec, "headGroupSpec"), "template"))
    needed = {_HEAD: 1} | {group: _least(row) for group, row in groups.items()}
    topology = str(annotations(found).get(contract.KAI_TOPOLOGY) or "")
    places = (place(name, keys, needed.get(name, 0), topology=topology),)
    return replace(made, places=places, min_subgroup=sum(bool(number) for number in needed.values()))


def _least(row: Json) -> int:
    return _members(row, row.get("minReplicas") or row.get("replicas", 1))


def _members(row: Json, replicas: object) -> int:
    return count(replicas) * (count(row.get("numOfHosts")) or 1)
