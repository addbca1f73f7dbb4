"""LeaderWorkerSet (leaderworkerset.x-k8s.io/v1): each group, a leader and its workers, is a gang.

The size stands on the Pods, too, so a set that can't be read still tells how many there are. With
startupPolicy LeaderReady, or exclusive topology, workers are created after the leader is ready, or scheduled.

Segments, or LeaderWorkerSet's own subgroups of a size, are subgroups where they ask for a domain.
"""

from dataclasses import replace
from typing import Final

from gangs import contract
from webhook.pod import Owner, Place, Pod
from webhook.sets.common import Json, Part, annotations, count, exclusive, mapping, owner
from webhook.sets.segments import Segments, segmented

_LEADER: Final = "leader"
_SEGMENT: Final = "segment-"
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
    made = owner(KIND, pod, found, part)
    template = mapping(spec, "leaderWorkerTemplate")
    policy = mapping(template, "subGroupPolicy")
    keys = {**annotations(mapping(template, "workerTemplate")), **annotations(found)}
    segments = None if late else Segments.read(keys, count(policy.get("subGroupSize")))
    apart = policy.get("subGroupPolicyType") == "LeaderExcluded"
    return segmented(made, segments, size, lambda s: _in_segment(made, s, size, pod, apart=apart))


def _in_segment(made: Owner, segments: Segments, size: int, pod: Pod, *, apart: bool) -> Owner:
    """apart: the leader is in no segment."""
    names = [_segment(index, size, segments.size, apart=apart) for index in range(size)]
    index = pod.labels.get(contract.LWS_WORKER_INDEX, "0")
    mine = names[int(index) % size] if index.isdecimal() else names[0]
    members = names.count(mine)
    place = Place(mine, members) if mine == _LEADER else segments.place(mine, members)
    return replace(made, places=(place,), min_subgroup=len(set(names)))


def _segment(index: int, size: int, segment: int, *, apart: bool) -> str:
    """As LeaderWorkerSet numbers its subgroups: a leader that is one too many joins the first."""
    if index == 0:
        return _LEADER if apart else f"{_SEGMENT}0"
    extra = apart or (size - 1) % segment == 0
    return f"{_SEGMENT}{(index - 1 if extra else index) // segment}"
