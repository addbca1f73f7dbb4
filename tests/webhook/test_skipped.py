"""Owners that KAI looks past, Spark's applications, and the priority class that a label names."""

from typing import Any

import pytest

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
    HOSTNAME,
    MNNVL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    admit,
    counts,
    exists,
    gates,
    labels,
    node_terms,
    notes,
    operations,
    parallel,
    pod,
    pod_terms,
    with_gang,
    workload,
)

KAI = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/fit"
TRAINJOB = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/fit"
WORKFLOW = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/flow"
LWS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets/decode-0"
DYNAMO = "/apis/nvidia.com/v1alpha1/namespaces/default/"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses/{}"


def owned(name: str, version: str, kind: str, above: str, **meta: Any) -> Json:
    reference = {
        "apiVersion": version,
        "kind": kind,
        "name": above,
        "uid": f"uid-{above}",
        "controller": True,
    }
    return {"name": name, "uid": f"uid-{name}", "ownerReferences": [reference], **meta}


def train_job(**of_set: str) -> World:
    world = World(MNNVL, workload("Job", "fit-node-0", parallelism=4))
    meta = owned("fit", "trainer.kubeflow.org/v1alpha1", "TrainJob", "fit", annotations=of_set)
    rows = [{"name": "node", "replicas": 1, "template": {"spec": {"parallelism": 4}}}]
    world.objects[JOBSET] = {"metadata": meta, "spec": {"replicatedJobs": rows}}
    world.objects[TRAINJOB] = {
        "metadata": {
            "name": "fit",
            "uid": "uid-fit",
            "annotations": KAI,
            "labels": {contract.LABEL_QUEUE: "q"},
        }
    }
    return world


def trainer() -> Json:
    place = {contract.JOBSET_NAME: "fit", contract.JOBSET_JOB: "node", contract.JOBSET_INDEX: "0"}
    return pod(workload("Job", "fit-node-0"), labels=place)


async def test_keys_of_a_train_job_count_for_the_jobset_that_it_makes() -> None:
    world = train_job()
    stored = await admit(trainer(), world)
    assert counts(stored)[:2] == ("4", "4")
    assert pod_terms(stored) == [with_gang(labels(stored)[contract.LABEL_GANG])]
    assert labels(stored)[contract.LABEL_QUEUE] == "q"
    assert notes(stored) == []
    assert await operations(stored, world) == []


async def test_what_is_nearer_to_the_pods_goes_before_what_is_above() -> None:
    stored = await admit(trainer(), train_job(**{REQUIRED_LEVEL: HOSTNAME}))
    assert [term["topologyKey"] for term in pod_terms(stored)] == [HOSTNAME]


async def test_an_owner_above_that_is_another_of_the_same_name_does_not_count() -> None:
    world = train_job()
    world.objects[TRAINJOB]["metadata"]["uid"] = "uid-of-a-later-one"
    assert await operations(trainer(), world) == []


def step(**labels_: str) -> Json:
    made = pod(labels=labels_)
    made["metadata"] |= owned("flow-1", "argoproj.io/v1alpha1", "Workflow", "flow")
    return made


async def test_each_pod_of_an_argo_workflow_is_placed_by_itself_by_the_workflows_keys() -> None:
    world = World(MNNVL)
    world.objects[WORKFLOW] = {"metadata": {"name": "flow", "uid": "uid-flow", "annotations": KAI}}
    stored = await admit(step(), world)
    assert node_terms(stored) == [{"matchExpressions": [exists(CLIQUE)]}]
    assert gates(stored) == []
    assert stored["spec"]["schedulerName"] == "allaboard"


async def test_a_workflow_of_somebody_else_is_not_looked_for() -> None:
    world = World(MNNVL)
    made = step()
    made["metadata"]["ownerReferences"][0]["apiVersion"] = "example.com/v1"
    assert await operations(made, world) == []
    assert world.calls == ["/api/v1/namespaces/default"]


async def test_keys_on_dynamos_graph_reach_the_worker_sets_that_it_makes_without_grove() -> None:
    world = World(MNNVL, parallel("decode-0"))
    component = owned("decode", "nvidia.com/v1alpha1", "DynamoGraphDeployment", "dgd")
    of_set = owned("decode-0", "nvidia.com/v1alpha1", "DynamoComponentDeployment", "decode")
    world.objects[LWS] = {"metadata": of_set, "spec": {"leaderWorkerTemplate": {"size": 3}}}
    world.objects[DYNAMO + "dynamocomponentdeployments/decode"] = {"metadata": component}
    graph = {"metadata": {"name": "dgd", "uid": "uid-dgd", "annotations": KAI}}
    world.objects[DYNAMO + "dynamographdeployments/dgd"] = graph
    place = {contract.LWS_NAME: "decode-0", contract.LWS_GROUP_INDEX: "0"}
    stored = await admit(pod(parallel("decode-0"), labels=place), world)
    assert counts(stored)[0] == "3"
    assert [term["topologyKey"] for term in pod_terms(stored)] == [CLIQUE]


async def test_owners_above_one_another_in_a_circle_end_somewhere() -> None:
    world = World(MNNVL)
    meta = owned("flow", "argoproj.io/v1alpha1", "Workflow", "flow")
    world.objects[WORKFLOW] = {"metadata": meta}
    assert await operations(step(), world) == []


SPARK = {contract.SPARK_NAME: "pi", contract.SPARK_APP: "spark-7f"}


async def test_sparks_driver_and_executors_share_a_domain_and_none_waits() -> None:
    driver, executor = pod(annotations=KAI, labels=SPARK), pod(annotations=KAI, labels=SPARK)
    executor["metadata"] |= owned("pi-exec-1", "v1", "Pod", "pi-driver")
    stored = [await admit(one) for one in (driver, executor)]
    gang = labels(stored[0])[contract.LABEL_GANG]
    assert gang.startswith("spark-7f-")
    for one in stored:
        assert counts(one) == ("1", "1", None)
        assert pod_terms(one) == [with_gang(gang)]


async def test_one_label_of_sparks_alone_makes_no_application() -> None:
    stored = await admit(pod(annotations=KAI, labels={contract.SPARK_APP: "spark-7f"}))
    assert contract.LABEL_GANG not in labels(stored)


@pytest.mark.parametrize(
    ("of_owner", "of_pod", "there", "expected"),
    [
        ("urgent", "late", ("urgent", "late"), "urgent"),
        ("gone", "late", ("late",), "late"),
        ("", "late", ("late",), "late"),
        ("gone", "", (), None),
        ("../../pods", "", (), None),
    ],
)
async def test_the_priority_class_is_the_owners_label_else_the_pods_where_it_exists(
    of_owner: str, of_pod: str, there: tuple[str, ...], expected: str | None
) -> None:
    def named(name: str) -> dict[str, str]:
        return {contract.KAI_PRIORITY: name} if name else {}

    llm = parallel("llm", KAI, labels=named(of_owner))
    world = World(MNNVL, llm)
    for name in there:
        world.objects[CLASSES.format(name)] = {"metadata": {"name": name}}
    member = pod(llm, labels=named(of_pod), priority=0, preemptionPolicy="PreemptLowerPriority")
    stored = await admit(member, world)
    assert stored["spec"].get("priorityClassName") == expected
    assert ("priority" in stored["spec"]) == (expected is None)


async def test_no_priority_class_is_looked_up_for_pods_that_ask_for_nothing() -> None:
    plain = parallel("plain", labels={contract.KAI_PRIORITY: "train"})
    world = World(MNNVL, plain)
    assert await operations(pod(plain), world) == []
    assert not any("priorityclasses" in call for call in world.calls)
