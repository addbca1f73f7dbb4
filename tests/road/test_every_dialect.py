"""One workload of every dialect where a Pod-by-Pod scheduler goes wrong: three free nodes here, a rack there.

The Pods are labelled as the kinds' controllers label them; those controllers don't run here. The scene is
that of the demo: four members, and kube-scheduler's own scoring prefers the clique in which three have room.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import container, pod
from e2e.scene import KAI_TOPOLOGY, Play
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

CRDS: Final = Path(__file__).parent / "dialects.yaml"
_NAMESPACE: Final = "dialects"
_STOCK: Final = "dialects-stock"
MEMBERS: Final = 4
_CLIQUE: Final = {"allaboard.dev/topology-required": "nvidia.com/gpu.clique"}
_LWS: Final = "leaderworkerset.sigs.k8s.io"
_JOBSET: Final = "jobset.sigs.k8s.io"
_KUBEFLOW: Final = "training.kubeflow.org"
_YUNIKORN: Final = "yunikorn.apache.org"
_KAI: Final = "kai.scheduler"


def _pods(labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> list[Json]:
    return [pod(f"rank-{i}", labels, annotations, **spec) for i in range(MEMBERS)]


def _object(version: str, kind: str, name: str, annotations: Json | None = None, **spec: Any) -> Json:
    meta = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def _job() -> Json:
    template = {"spec": {**pod("rank")["spec"], "restartPolicy": "Never"}}
    keys = {**KAI_TOPOLOGY, "kai.scheduler/batch-min-member": str(MEMBERS)}
    size = {"parallelism": MEMBERS, "completions": MEMBERS}
    return _object("batch/v1", "Job", "rank", keys, template=template, **size)


def _worker_set() -> list[Json]:
    labels = {f"{_LWS}/name": "serve", f"{_LWS}/group-index": "0", f"{_LWS}/template-revision-hash": "r1"}
    spec = {"leaderWorkerTemplate": {"size": MEMBERS, "workerTemplate": {}}}
    serve = _object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", KAI_TOPOLOGY, **spec)
    return [serve, *_pods(labels, {f"{_LWS}/size": str(MEMBERS)})]


def _jobset() -> list[Json]:
    rows = [{"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": MEMBERS // 2}}}]
    train = _object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", KAI_TOPOLOGY, replicatedJobs=rows)
    labels = {f"{_JOBSET}/jobset-name": "train", f"{_JOBSET}/replicatedjob-name": "workers"}
    members = _pods(labels)
    for number, member in enumerate(members):
        member["metadata"]["labels"][f"{_JOBSET}/job-index"] = str(number % 2)
    return [train, *members]


def _training_job() -> list[Json]:
    rows = {"Master": {"replicas": 1}, "Worker": {"replicas": MEMBERS - 1}}
    fit = _object("kubeflow.org/v1", "PyTorchJob", "fit", KAI_TOPOLOGY, pytorchReplicaSpecs=rows)
    operator = {f"{_KUBEFLOW}/job-name": "fit", f"{_KUBEFLOW}/operator-name": "pytorchjob-controller"}
    return [fit, *_pods(operator)]


def _ray() -> list[Json]:
    rows = [{"groupName": "workers", "replicas": MEMBERS - 1}]
    cluster = _object("ray.io/v1", "RayCluster", "ray", KAI_TOPOLOGY, workerGroupSpecs=rows)
    return [cluster, *_pods({"ray.io/cluster": "ray"})]


def _podgroup() -> list[Json]:
    """Of KAI's, with two subgroups in one replica that has a clique to itself."""
    clique = {"topology": "nvcf-mnnvl-topology", "requiredTopologyLevel": "nvidia.com/gpu.clique"}
    rows = [
        {"name": "replica", "topologyConstraint": clique},
        {"name": "leader", "parent": "replica", "minMember": 1},
        {"name": "workers", "parent": "replica", "minMember": MEMBERS - 1},
    ]
    group = _object("scheduling.run.ai/v2alpha2", "PodGroup", "pg", subGroups=rows, minSubGroup=1)
    members = _pods(None, {"pod-group-name": "pg"}, schedulerName="kai-scheduler")
    for number, member in enumerate(members):
        member["metadata"]["labels"][f"{_KAI}/subgroup-name"] = "workers" if number else "leader"
    return [group, *members]


def _task_groups() -> list[Json]:
    rows = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": MEMBERS - 1}]
    members = _pods({"applicationId": "app"}, {f"{_YUNIKORN}/task-groups": json.dumps(rows), **_CLIQUE})
    for number, member in enumerate(members):
        name = "workers" if number else "leader"
        member["metadata"]["annotations"][f"{_YUNIKORN}/task-group-name"] = name
    return members


DIALECTS: Final[dict[str, list[Json]]] = {
    "our own": _pods({"allaboard.dev/gang": "g"}, {**_CLIQUE, "allaboard.dev/min-member": str(MEMBERS)}),
    "coscheduling": [
        _object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", minMember=MEMBERS),
        *_pods({"scheduling.x-k8s.io/pod-group": "g"}, _CLIQUE),
    ],
    "lightweight": _pods(
        {
            "pod-group.scheduling.sigs.k8s.io/name": "g",
            "pod-group.scheduling.sigs.k8s.io/min-available": str(MEMBERS),
        },
        _CLIQUE,
    ),
    "Koordinator": _pods(
        None,
        {
            "gang.scheduling.koordinator.sh/name": "g",
            "gang.scheduling.koordinator.sh/min-available": str(MEMBERS),
            **_CLIQUE,
        },
    ),
    "Volcano": [
        _object("scheduling.volcano.sh/v1beta1", "PodGroup", "g", minMember=MEMBERS),
        *_pods(None, {"scheduling.k8s.io/group-name": "g", **_CLIQUE}),
    ],
    "YuniKorn": _task_groups(),
    "PodGroup of KAI's": _podgroup(),
    "Job by KAI's keys": [_job()],
    "LeaderWorkerSet": _worker_set(),
    "JobSet": _jobset(),
    "PyTorchJob": _training_job(),
    "RayCluster": _ray(),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trap(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """Three free nodes in the first clique, all in the second, where agents take half of the CPUs."""
    stage, observer = played
    kube, (few, many, *full) = stage.kube, stage.nodes
    await kube.run("apply", "-f", str(CRDS))
    await kube.run("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    await kube.namespace(_NAMESPACE)
    await kube.namespace(_STOCK, {"allaboard.dev/webhook": "ignore"})
    await stage.occupy("others", [*few[3:], *(node for rack in full for node in rack)])
    await kube.apply("others", [_agent(node) for node in many])
    yield Play(stage, observer, lambda _: None)
    await kube.clear(_NAMESPACE, _STOCK, "others")


def _agent(node: str) -> Json:
    half = container(resources={"requests": {"cpu": "36"}})
    return pod(f"agent-{node}", nodeName=node, containers=[half])


async def test_without_allaboard_the_same_pods_are_torn(trap: Play) -> None:
    together = {"labelSelector": {"matchLabels": {"app": "rank"}}, "topologyKey": "nvidia.com/gpu.clique"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [together]}}
    await trap.stage.kube.apply(_STOCK, _pods({"app": "rank"}, affinity=affinity))

    async def torn() -> bool:
        return trap.where(_STOCK) == {"c0000": 3}

    await until(torn, "kube-scheduler alone binds three, and the fourth has no room")
    await trap.stage.kube.clear(_STOCK)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_gang_of_every_dialect_boards_whole_where_all_have_room(trap: Play, dialect: str) -> None:
    try:
        await trap.stage.kube.apply(_NAMESPACE, DIALECTS[dialect])
        await trap.bound(_NAMESPACE, MEMBERS)
        assert trap.where(_NAMESPACE) == {"c0001": MEMBERS}
        trap.clean(_NAMESPACE)
    finally:
        await trap.stage.kube.clear(_NAMESPACE)
