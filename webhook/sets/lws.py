"""LeaderWorkerSet (leaderworkerset.x-k8s.io/v1): each group, a leader and its workers, is a gang.

The size stands on the Pods, too, so a set that can't be read still tells how many there are. With
startupPolicy LeaderReady, or exclusive topology, workers are created after the leader is ready, or scheduled.
"""

from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import Json, Part, count, exclusive, mapping, owner

NAME: Final = contract.LWS_NAME
KIND: Final = "LeaderWorkerSet"
PATHS: Final = {KIND: ("/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets/{}",)}


def where(_: Pod) -> str:
    return PATHS[KIND][0]


def group(pod: Pod, found: Json) -> Owner | None:
    spec = mapping(found, "spec")
    size = count(pod.annotations.get(contract.LWS_SIZE))
    size = size or count(mapping(spec, "leaderWorkerTemplate").get("size"))
    if not size:
        return None
    late = spec.get("startupPolicy") == "LeaderReady" or bool(exclusive(pod, found))
    name = f"{pod.labels[NAME]}-{pod.labels.get(contract.LWS_GROUP_INDEX, '')}"
    part = Part(name, size, floor=size, late=late, revision=pod.labels.get(contract.LWS_REVISION, ""))
    return owner(KIND, pod, found, part)
