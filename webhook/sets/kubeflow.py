"""Kubeflow's training jobs and MPIJob: all replicas of a job are one gang.

The floor is schedulingPolicy.minAvailable, else elasticPolicy.minReplicas, else all of them. A launcher that
is created only when its workers are ready can't be waited for.
"""

from typing import Final

from gangs import contract
from webhook.pod import Owner, Pod
from webhook.sets.common import Json, Part, count, mapping, owner

NAME: Final = contract.KUBEFLOW_JOB
_V1: Final = "/apis/kubeflow.org/v1/namespaces/{}/"
_V2: Final = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs/{}"
# By the label that says whose Pod it is; MPIJobs are served by the training operator, too.
OPERATORS: Final = {
    "pytorchjob-controller": ("PyTorchJob", _V1 + "pytorchjobs/{}"),
    "tfjob-controller": ("TFJob", _V1 + "tfjobs/{}"),
    "xgboostjob-controller": ("XGBoostJob", _V1 + "xgboostjobs/{}"),
    "jaxjob-controller": ("JAXJob", _V1 + "jaxjobs/{}"),
    "mpijob-controller": ("MPIJob", _V1 + "mpijobs/{}"),
    "mpi-operator": ("MPIJob", _V2),
}
PATHS: Final = {kind: tuple(p for k, p in OPERATORS.values() if k == kind) for kind, _ in OPERATORS.values()}
REPLICAS: Final = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}


def where(pod: Pod) -> str:
    return _kind_and_path(pod)[1]


def group(pod: Pod, found: Json) -> Owner | None:
    kind, _ = _kind_and_path(pod)
    spec = mapping(found, "spec")
    rows = mapping(spec, REPLICAS.get(kind, ""))
    replicas = {name: count(mapping(rows, name).get("replicas", 1)) for name in rows}
    total = sum(replicas.values())
    if not total:
        return None
    return owner(kind, pod, found, Part(pod.labels[NAME], total, _floor(spec, replicas)))


def _kind_and_path(pod: Pod) -> tuple[str, str]:
    return OPERATORS.get(pod.labels.get(contract.KUBEFLOW_OPERATOR, ""), ("", ""))


def _floor(spec: Json, replicas: dict[str, int]) -> int:
    total = sum(replicas.values())
    if spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
        total -= replicas.get("Launcher", 0)
    policy = mapping(mapping(spec, "runPolicy"), "schedulingPolicy")
    least = count(policy.get("minAvailable")) or count(mapping(spec, "elasticPolicy").get("minReplicas"))
    return max(1, min(least or total, total))
