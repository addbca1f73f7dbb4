"""A small world around the webhook: objects by path, Pods as their controllers would create them.

`admit` sends a Pod through the whole of mutate.py and applies the patch strictly, as the API server does.
"""

import copy
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gangs import contract
from gangs.notes import decode
from webhook import wire
from webhook.lookup import Lookups
from webhook.mutate import Mutator
from webhook.patch import Operation
from webhook.pod import Pod

Json = dict[str, Any]

PROFILES = ("allaboard", "kai-scheduler")
CLIQUE = "nvidia.com/gpu.clique"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TOPOLOGY = contract.KAI_TOPOLOGY
REQUIRED_LEVEL = contract.KAI_TOPOLOGY_REQUIRED
PREFERRED_LEVEL = contract.KAI_TOPOLOGY_PREFERRED
BATCH_MIN = contract.KAI_BATCH_MIN_MEMBER

_KINDS = {
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "Job": ("batch/v1", "jobs"),
    "DaemonSet": ("apps/v1", "daemonsets"),
}
_TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"


class ForbiddenError(Exception):
    """As the API client raises it."""

    status = 403


class World:
    """An API server's objects, as a Reader. broken: paths (or parts of them) that can't be reached.

    forbidden: those that we lack permission for.
    """

    def __init__(self, *objects: Json) -> None:
        self.objects: dict[str, Json] = {"/api/v1/namespaces/default": {"metadata": {"name": "default"}}}
        self.broken: tuple[str, ...] = ()
        self.forbidden: tuple[str, ...] = ()
        self.calls: list[str] = []
        for obj in objects:
            self.add(obj)

    def add(self, obj: Json) -> None:
        if obj["kind"] == "Topology":
            self.objects.setdefault(_TOPOLOGIES, {"items": []})["items"].append(obj)
        else:
            self.objects[_path(obj)] = obj

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        self.calls.append(path)
        if any(part in path for part in self.broken):
            raise ConnectionError("connection refused")
        if any(part in path for part in self.forbidden):
            raise ForbiddenError("forbidden")
        return self.objects.get(path)


def _path(obj: Json) -> str:
    meta = obj["metadata"]
    if obj["kind"] == "PriorityClass":
        return f"/apis/scheduling.k8s.io/v1/priorityclasses/{meta['name']}"
    if obj["kind"] == "Namespace":
        return f"/api/v1/namespaces/{meta['name']}"
    version, plural = _KINDS[obj["kind"]]
    return f"/apis/{version}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"


def namespace(name: str = "default", **labels: str) -> Json:
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def topology(name: str, *levels: str | tuple[str, str]) -> Json:
    """levels: node label keys, or pairs with an alias."""
    rows = [
        {"nodeLabel": level} if isinstance(level, str) else {"nodeLabel": level[0], "alias": level[1]}
        for level in levels
    ]
    return {"kind": "Topology", "metadata": {"name": name}, "spec": {"levels": rows}}


MNNVL = topology("nvcf-mnnvl-topology", CLIQUE, HOSTNAME)


def workload(
    kind: str,
    name: str,
    annotations: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    above: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    """An owner with this spec; above: its own controller."""
    meta: Json = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "labels": dict(labels or {})}
    meta["annotations"] = dict(annotations or {})
    if above is not None:
        meta["ownerReferences"] = [reference(above)]
    return {"kind": kind, "metadata": meta, "spec": spec, "status": status or {}}


def parallel(name: str, annotations: Mapping[str, str] | None = None, replicas: int = 4, **more: Any) -> Json:
    return workload(
        "StatefulSet", name, annotations, podManagementPolicy="Parallel", replicas=replicas, **more
    )


def reference(owner: Json) -> Json:
    meta = owner["metadata"]
    return {
        "apiVersion": _KINDS.get(owner["kind"], ("example.com/v1", ""))[0],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def pod(
    owner: Json | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    gpus: int = 4,
    **spec: Any,
) -> Json:
    """A Pod as the API server shows it to webhooks: the owner's, or a bare one named `solo`."""
    container: Json = {"name": "worker", "image": "registry.invalid/worker:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    meta: Json = {"namespace": namespace, "name": "solo"}
    if owner is not None:
        meta["name"] = owner["metadata"]["name"] + "-0"
        meta["ownerReferences"] = [reference(owner)]
    if annotations is not None:
        meta["annotations"] = dict(annotations)
    if labels is not None:
        meta["labels"] = dict(labels)
    return {
        "metadata": meta,
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
    }


def review(obj: Json, **request: Any) -> Json:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": obj.get("metadata", {}).get("namespace", "default"),
            "object": obj,
            **request,
        },
    }


def parsed(obj: Json) -> Pod:
    admitted = wire.parse(orjson.dumps(review(obj))).pod
    assert admitted is not None
    return admitted


async def operations(
    obj: Json, world: World | None = None, profiles: Sequence[str] = PROFILES
) -> list[Operation]:
    lookups = Lookups(world or World(MNNVL), time.monotonic)
    return await Mutator(lookups, profiles).operations(parsed(obj))


async def admit(obj: Json, world: World | None = None, profiles: Sequence[str] = PROFILES) -> Json:
    """The Pod as it is stored."""
    return patched(obj, await operations(obj, world, profiles))


def patched(obj: Json, steps: Sequence[Operation]) -> Json:
    """RFC 6902 for add and remove; a missing parent or a missing target is an error, as it is there."""
    result = copy.deepcopy(obj)
    for step in steps:
        *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in step["path"].split("/")[1:]]
        target: Any = result
        for part in parents:
            target = target[part]
        if step["op"] == "remove":
            del target[last]
        elif isinstance(target, list):
            assert last == "-"
            target.append(step["value"])
        else:
            target[last] = step["value"]
    return result


def labels(obj: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found


def annotations(obj: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def counts(obj: Json) -> tuple[str | None, str | None, str | None]:
    """min-member, size and size-from of an admitted Pod."""
    found = annotations(obj)
    return (
        found.get(contract.ANNOTATION_MIN_MEMBER),
        found.get(contract.ANNOTATION_SIZE),
        found.get(contract.ANNOTATION_SIZE_FROM),
    )


def gates(obj: Json) -> list[str]:
    return [gate["name"] for gate in obj["spec"].get("schedulingGates") or []]


def notes(obj: Json) -> list[tuple[str, bool]]:
    """Messages on an admitted Pod, each with whether it blocks."""
    return [(n.message, n.blocking) for n in decode(annotations(obj).get(contract.ANNOTATION_NOTES, ""))]


def node_terms(obj: Json) -> list[Json]:
    terms: list[Json] = obj["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def pod_terms(obj: Json, kind: str = REQUIRED) -> list[Json]:
    terms: list[Json] = obj["spec"].get("affinity", {}).get("podAffinity", {}).get(kind, [])
    return terms


def with_gang(label: str, level: str = CLIQUE) -> Json:
    """The affinity term: in one domain of the level with the gang."""
    return {"labelSelector": {"matchLabels": {contract.LABEL_GANG: label}}, "topologyKey": level}


def exists(label: str) -> Json:
    return {"key": label, "operator": "Exists"}
