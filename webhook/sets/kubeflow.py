"""Kubeflow's training jobs and MPIJob: all replicas of a job are one gang.

The floor is schedulingPolicy.minAvailable, else elasticPolicy.minReplicas, else all of them. A launcher that
is created only when its workers are ready can't be waited for. Workers of a PyTorchJob may be in segments.
"""

from dataclasses import replace
from math import ceil
from typing import Final

from gangs import contract
from webhook.pod import Owner, Place, Pod
from webhook.sets.common import Json, Part, annotations, count, mapping, owner
from webhook.sets.segments import Segments, segmented

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
    floor = _floor(spec, replicas)
    made = owner(kind, pod, found, Part(pod.labels[NAME], total, floor))
    workers = replicas.get("Worker", 0)
    if kind != "PyTorchJob":
        return made
    keys = {**annotations(mapping(mapping(rows, "Worker"), "template")), **pod.annotations}
    keys = {**keys, **{key: value for key, value in made.annotations.items() if key == contract.KAI_TOPOLOGY}}
    return segmented(made, Segments.read(keys), workers, lambda s: _in_segment(made, s, replicas, floor, pod))


def _in_segment(made: Owner, segments: Segments, replicas: dict[str, int], floor: int, pod: Pod) -> Owner:
    """Workers in segments, of which as many board at once as the floor takes; the master is in none."""
    masters, workers = replicas.get("Master", 0), replicas.get("Worker", 0)
    least = max(1, ceil((floor - masters) / segments.size))
    index = pod.labels.get(contract.KUBEFLOW_INDEX, "0")
    number = int(index) // segments.size if index.isdecimal() else 0
    members = max(1, min(segments.size, workers - number * segments.size))
    places: tuple[Place, ...] = (Place("worker", min_subgroup=least),)
    places += (segments.place(f"worker-{number}", members),)
    if pod.labels.get(contract.KUBEFLOW_TYPE, "").lower() == "master":
        places = (Place("master", masters),)
    return replace(made, places=places, min_subgroup=1 + bool(masters))


def _kind_and_path(pod: Pod) -> tuple[str, str]:
    return OPERATORS.get(pod.labels.get(contract.KUBEFLOW_OPERATOR, ""), ("", ""))


def _floor(spec: Json, replicas: dict[str, int]) -> int:
    total = sum(replicas.values())
    if spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
        total -= replicas.get("Launcher", 0)
    policy = mapping(mapping(spec, "runPolicy"), "schedulingPolicy")
    least = count(policy.get("minAvailable")) or count(mapping(spec, "elasticPolicy").get("minReplicas"))
    return max(1, min(least or total, total))
