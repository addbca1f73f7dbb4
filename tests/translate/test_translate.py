"""`allaboard translate`: gangs and patches from files alone, and errors that say where to look."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from allaboard.cli import app
from gangs import contract

EXAMPLES = Path(__file__).parents[2] / "examples"
STATEFULSET = """
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: llm
  annotations: {kai.scheduler/topology: racks, kai.scheduler/topology-required-placement: rack}
spec:
  podManagementPolicy: Parallel
  replicas: 3
  template:
    spec:
      containers:
        - {name: worker, image: worker, resources: {limits: {nvidia.com/gpu: 4}}}
"""
TOPOLOGY = """
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: example.com/rack, alias: rack}]}
"""
CRONJOB = """
kind: CronJob
metadata: {name: nightly}
spec:
  jobTemplate:
    metadata: {annotations: {allaboard.dev/min-member: "2"}}
    spec:
      parallelism: 4
      completions: 4
      template: {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""
PARTITION = f"    metadata: {{annotations: {{{contract.NVCF_INDEX}: '0'}}}}\n"
ANNOTATIONS = (
    "  annotations: {kai.scheduler/topology: racks, kai.scheduler/topology-required-placement: rack}\n"
)


def translated(*files: Path) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, documents, error lines."""
    options = [part for file in files for part in ("-f", str(file))]
    result = CliRunner().invoke(app, ["translate", *options])
    return result.exit_code, list(yaml.safe_load_all(result.stdout)), result.stderr


def written(folder: Path, text: str, name: str = "manifest.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_workload_that_names_our_default_topology_needs_no_file_with_it() -> None:
    code, [entry], errors = translated(EXAMPLES / "kai-statefulset.yaml")
    assert (code, errors) == (0, "")
    assert entry["object"] == "statefulset default/llm"
    assert entry["gang"] | {"label": ""} == {
        "namespace": "default",
        "label": "",
        "minMember": 2,
        "size": 2,
        "sizeFrom": "owner",
        "required": contract.NODE_CLIQUE,
    }
    assert {"op": "add", "path": "/spec/schedulerName", "value": "allaboard"} in entry["patch"]


def test_a_topology_may_come_from_another_file(tmp_path: Path) -> None:
    files = written(tmp_path, STATEFULSET), written(tmp_path, TOPOLOGY, "topology.yaml")
    code, [entry], _ = translated(*files)
    assert (code, entry["gang"]["required"]) == (0, "example.com/rack")


def test_a_level_that_nobody_defines_is_an_error_with_file_object_and_field(tmp_path: Path) -> None:
    file = written(tmp_path, STATEFULSET)
    code, [entry], errors = translated(file)
    assert code == 1
    assert entry["gang"]["minMember"] == 3
    complaint = f"{file}:2: statefulset default/llm: annotation kai.scheduler/topology: no Topology"
    assert errors.startswith(f"error: {complaint}")


def test_owners_of_one_nvcf_partition_are_one_gang_of_all_their_pods(tmp_path: Path) -> None:
    part = STATEFULSET.replace("    spec:", PARTITION + "    spec:").replace(ANNOTATIONS, "")
    files = written(tmp_path, part), written(tmp_path, part.replace("name: llm", "name: more"), "more.yaml")
    code, [one, other], _ = translated(*files)
    assert code == 0
    assert one["gang"] == other["gang"]
    assert (one["gang"]["minMember"], one["gang"]["size"]) == (6, 6)


def test_a_cronjob_is_judged_by_the_job_that_it_makes(tmp_path: Path) -> None:
    code, [entry], _ = translated(written(tmp_path, CRONJOB))
    assert (code, entry["object"]) == (0, "job default/nightly")
    assert (entry["gang"]["minMember"], entry["gang"]["size"]) == (2, 4)


def test_pods_that_never_reach_the_webhook_are_left_as_they_are(tmp_path: Path) -> None:
    plain = STATEFULSET.replace("{limits: {nvidia.com/gpu: 4}}", "{}")
    code, [entry], _ = translated(written(tmp_path, plain))
    assert (code, entry["patch"]) == (0, "none: left as it is")


def test_objects_that_make_no_pods_are_passed_over(tmp_path: Path) -> None:
    code, entries, errors = translated(written(tmp_path, TOPOLOGY))
    assert (code, entries, errors) == (0, [], "")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (
            STATEFULSET.replace("replicas: 3", "replicas: '3'"),
            9,
            "statefulset default/llm: spec.replicas: '3' is",
        ),
        (
            STATEFULSET.replace("topology: racks", "topology: 3"),
            6,
            "metadata.annotations.kai.scheduler/topology: 3",
        ),
        (STATEFULSET.replace("template:", "tmpl:"), 7, "statefulset default/llm: spec.template: missing"),
        (
            STATEFULSET.replace("containers:", "schedulerName: 5\n      containers:"),
            12,
            "spec.template.spec.schedulerName: ",
        ),
        (TOPOLOGY.replace("nodeLabel", "label"), 5, "topology default/racks: spec.levels: a list"),
        (
            "kind: Widget\nmetadata: {name: w}\nspec: {a: {podSpec: {}}}",
            1,
            'widget default/w: kind: "Widget" is not',
        ),
        (CRONJOB.replace("template: {spec", "template: {spek"), 10, "spec.template.spec: missing"),
        ("kind: Pod", 1, "pod: metadata: missing"),
        ("just words", 1, "kind: missing"),
        ("---\na: [", 3, "no YAML: did not find"),
        ("kind: Pod\nmetadata: {name: p, x: 2026-13-45}", 1, "no YAML: month must be in 1..12"),
    ],
)
def test_what_cannot_be_understood_is_one_line_and_exit_code_1(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    file = written(tmp_path, text)
    code, _, errors = translated(file)
    assert code == 1
    assert errors.startswith(f"error: {file}:{line}: ")
    assert sentence in errors
    assert len(errors.splitlines()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, _, errors = translated(tmp_path / "none.yaml")
    assert (code, errors) == (1, f"error: {tmp_path / 'none.yaml'}: No such file or directory\n")


def test_a_podgroup_in_the_files_gives_its_floor(tmp_path: Path) -> None:
    group = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
---
kind: Pod
metadata: {name: one, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: worker}]}
"""
    code, [entry], _ = translated(written(tmp_path, group))
    assert (code, entry["gang"]["minMember"]) == (0, 3)


LWS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, annotations: {allaboard.dev/topology-required: nvidia.com/gpu.clique}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 4}}}]}}
"""
JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, annotations: {allaboard.dev/topology-required: nvidia.com/gpu.clique}}
spec:
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          parallelism: 3
          template: {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 4}}}]}}
"""


PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: fit, annotations: {allaboard.dev/topology-required: nvidia.com/gpu.clique}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 4}}}]}}
    Worker: {replicas: 3, template: *pod}
"""
RAY = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, annotations: {allaboard.dev/topology-required: nvidia.com/gpu.clique}}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 4}}}]}}}
  workerGroupSpecs: [{groupName: a, replicas: 2}]
"""
MPI = PYTORCH.replace("kubeflow.org/v1", "kubeflow.org/v2beta1").replace("PyTorchJob", "MPIJob")
MPI = MPI.replace("pytorchReplicaSpecs", "mpiReplicaSpecs").replace("Master", "Launcher")


@pytest.mark.parametrize(
    ("text", "members"),
    [(LWS, 4), (JOBSET, 6), (PYTORCH, 4), (MPI, 4), (RAY, 3)],
    ids=["LeaderWorkerSet", "JobSet", "PyTorchJob", "MPIJob", "RayCluster"],
)
def test_sets_are_translated_by_a_pod_as_their_controllers_label_it(
    tmp_path: Path, text: str, members: int
) -> None:
    code, [entry], errors = translated(written(tmp_path, text))
    assert (code, errors) == (0, "")
    assert (entry["gang"]["minMember"], entry["gang"]["size"]) == (members, members)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (LWS.replace("size: 4", "size: four"), "spec.leaderWorkerTemplate.size"),
        (LWS.replace("workerTemplate:", "template:"), "spec.leaderWorkerTemplate.workerTemplate"),
        (JOBSET.replace("replicatedJobs", "jobs"), "spec.replicatedJobs"),
        (JOBSET.replace("template: {spec", "pod: {spec"), "spec.replicatedJobs.0.template.spec.template"),
    ],
)
def test_what_is_wrong_with_a_set_is_named_by_its_field(tmp_path: Path, text: str, field: str) -> None:
    code, _, errors = translated(written(tmp_path, text))
    assert code == 1
    assert f": {field}: " in errors
