"""Pods of sets, labelled as their controllers label them (webhook/sets/ reads that)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from allaboard.manifests import Json, Manifest
from gangs import contract
from webhook.sets import kubeflow


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


def _of_training_job(manifest: Manifest) -> Json:
    """Of the first kind of replica in the file."""
    field = f"spec.{kubeflow.REPLICAS[manifest.kind]}"
    first = next(iter(_field(manifest, field)), "Worker")
    operator = next(name for name, (kind, _) in kubeflow.OPERATORS.items() if kind == manifest.kind)
    if manifest.kind == "MPIJob" and manifest.body.get("apiVersion") == "kubeflow.org/v2beta1":
        operator = "mpi-operator"
    labels = {contract.KUBEFLOW_JOB: manifest.name, contract.KUBEFLOW_OPERATOR: operator}
    return _pod(manifest, f"{field}.{first}.template", labels, {})


def _of_ray(manifest: Manifest) -> Json:
    """The head."""
    return _pod(manifest, "spec.headGroupSpec.template", {contract.RAY_CLUSTER: manifest.name}, {})


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
    "RayCluster": _of_ray,
    **dict.fromkeys(kubeflow.REPLICAS, _of_training_job),
}
