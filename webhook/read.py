"""The API server's JSON → the webhook's values. Pure, and forgiving: what is absent has its default."""

from collections.abc import Mapping
from typing import Any, Final

from webhook.pod import Controller, Owner, Topology

Json = Mapping[str, Any]

_INTERCHANGEABLE: Final = frozenset({"Deployment", "ReplicaSet"})


def labels(obj: Json) -> Mapping[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def uid(obj: Json) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def controller(obj: Json) -> Controller | None:
    """The object's controller, None where it has none."""
    for reference in obj.get("metadata", {}).get("ownerReferences") or ():
        if reference.get("controller"):
            version = reference.get("apiVersion", "")
            return Controller(reference["kind"], reference["name"], reference["uid"], version)
    return None


def owner(kind: str, obj: Json) -> Owner:
    """A StatefulSet, Deployment, ReplicaSet or Job (lists don't name the kind of what they hold)."""
    meta, spec = obj["metadata"], obj.get("spec", {})
    most, left = _job_size(obj) if kind == "Job" else (_replicas(spec), _replicas(spec))
    return Owner(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        size=left,
        most=most,
        one_by_one=kind == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel",
        interchangeable=kind in _INTERCHANGEABLE,
    )


def unread_owner(namespace: str, reference: Controller) -> Owner:
    """All that is known of an owner which could not be read.

    A StatefulSet is taken for one_by_one: a gang that waits for members which its owner doesn't create
    yet would wait for ever.
    """
    return Owner(
        kind=reference.kind,
        namespace=namespace,
        name=reference.name,
        uid=reference.uid,
        labels={},
        annotations={},
        one_by_one=reference.kind == "StatefulSet",
        interchangeable=reference.kind in _INTERCHANGEABLE,
    )


def topologies(listing: Json) -> tuple[Topology, ...]:
    """A list of KAI Topologies, by name."""
    found = (
        Topology(
            item["metadata"]["name"],
            tuple((level["nodeLabel"], level.get("alias", "")) for level in item["spec"]["levels"]),
        )
        for item in listing.get("items") or ()
    )
    return tuple(sorted(found, key=lambda topology: topology.name))


def _replicas(spec: Json) -> int:
    return int(spec.get("replicas", 1))


def _job_size(job: Json) -> tuple[int, int]:
    """Members that a Job may have at one time, and those that it still wants now."""
    spec = job.get("spec", {})
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is None:  # a work queue: its members end when the work does
        return parallelism, parallelism
    left = int(completions) - int(job.get("status", {}).get("succeeded") or 0)
    return min(parallelism, int(completions)), min(parallelism, left)
