"""Pods of LeaderWorkerSets and JobSets, labelled as their controllers do it (webhook/sets.py reads that)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from allaboard.manifests import Json, Manifest
from gangs import contract


def pod_of(manifest: Manifest) -> Json:
    """One Pod of the set's first group; raises ManifestError."""
    return _MAKERS[manifest.kind](manifest)


def _of_worker_set(manifest: Manifest) -> Json:
    row = _field(manifest, "spec.leaderWorkerTemplate")
    size = row.get("size", 1)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        field = "spec.leaderWorkerTemplate.size"
        raise manifest.wrong(field, f"{size!r} is no number (allowed: a whole number from 1)")
    labels = {contract.LWS_NAME: manifest.name, contract.LWS_GROUP_INDEX: "0"}
    template = "spec.leaderWorkerTemplate.workerTemplate"
    return _pod(manifest, template, labels, {contract.LWS_SIZE: str(size)})


def _of_jobset(manifest: Manifest) -> Json:
    row = _field(manifest, "spec.replicatedJobs.0")
    labels = {
        contract.JOBSET_NAME: manifest.name,
        contract.JOBSET_JOB: str(row.get("name", "")),
        contract.JOBSET_INDEX: "0",
    }
    return _pod(manifest, "spec.replicatedJobs.0.template.spec.template", labels, {})


def _pod(manifest: Manifest, field: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Json:
    template = _field(manifest, field)
    meta = template.get("metadata") or {}
    added = {
        "namespace": manifest.namespace,
        "generateName": f"{manifest.name}-",
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": {**(meta.get("annotations") or {}), **annotations},
    }
    spec = _field(manifest, f"{field}.spec")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, **added}, "spec": spec}


def _field(manifest: Manifest, path: str) -> Mapping[str, Any]:
    """The map at this path; raises ManifestError naming the first part that is none."""
    value: Any = manifest.body
    parts = path.split(".")
    for number, part in enumerate(parts, start=1):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part)
        if not isinstance(value, Mapping | list):
            raise manifest.wrong(".".join(parts[:number]), "missing (allowed: a map, or a list of maps)")
    return value if isinstance(value, Mapping) else {}


_MAKERS: Final[Mapping[str, Callable[[Manifest], Json]]] = {
    "LeaderWorkerSet": _of_worker_set,
    "JobSet": _of_jobset,
}
