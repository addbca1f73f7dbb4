"""Pods that are none of our business go back as they came: no patch at all."""

import pytest

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
    MNNVL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    namespace,
    operations,
    parallel,
    pod,
    workload,
)

ASKS = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
LLM = parallel("llm", ASKS)
EVERYTHING = {**ASKS, contract.NVCF_INDEX: "0", contract.ANNOTATION_MIN_MEMBER: "2"}


@pytest.mark.parametrize(
    "obj",
    [
        pod(LLM, EVERYTHING, nodeName="n1"),
        pod(LLM, EVERYTHING, schedulerName="volcano"),
        pod(LLM, EVERYTHING, schedulingGroup={"podGroupName": "native"}),
        pod(LLM, EVERYTHING, {contract.LABEL_WEBHOOK: "ignore"}),
        pod(LLM, {**EVERYTHING, "kubernetes.io/config.mirror": "x"}),
        pod(workload("DaemonSet", "agent"), EVERYTHING),
        pod(LLM, EVERYTHING, namespace="kube-system"),
    ],
    ids=["bound", "foreign scheduler", "native gang", "opted out", "mirror", "DaemonSet", "kube-system"],
)
async def test_a_pod_that_may_not_be_touched_is_not_even_looked_up(obj: Json) -> None:
    world = World(MNNVL, LLM)
    assert await operations(obj, world) == []
    assert world.calls == []


async def test_kai_scheduler_is_a_foreign_scheduler_where_it_is_not_served() -> None:
    foreign = pod(LLM, EVERYTHING, schedulerName="kai-scheduler")
    assert await operations(foreign, World(MNNVL, LLM), ("allaboard",)) == []


async def test_a_namespace_may_opt_out() -> None:
    world = World(MNNVL, LLM, namespace(**{contract.LABEL_WEBHOOK: "ignore"}))
    assert await operations(pod(LLM, EVERYTHING), world) == []


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment", "ReplicaSet", "Job"])
async def test_a_plain_workload_with_accelerators_is_left_as_it_is(kind: str) -> None:
    plain = workload(kind, "plain", {"example.com/note": "x"}, replicas=3, parallelism=3)
    assert await operations(pod(plain), World(MNNVL, plain)) == []


async def test_a_pod_of_a_controller_that_we_do_not_know_is_left_as_it_is() -> None:
    ray = workload("RayCluster", "ray")
    world = World(MNNVL)
    assert await operations(pod(ray), world) == []
    assert world.calls == ["/api/v1/namespaces/default"]


async def test_an_owner_of_the_same_name_but_another_uid_is_not_the_owner() -> None:
    gone = parallel("llm", ASKS)
    gone["metadata"]["uid"] = "uid-of-an-earlier-llm"
    assert await operations(pod(gone), World(MNNVL, LLM)) == []
