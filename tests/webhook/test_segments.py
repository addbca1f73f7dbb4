"""Parts of a set that ask for domains of their own: segments, replicated Jobs, Ray's worker groups."""

from collections import Counter
from typing import Any

import orjson
import pytest

from gangs import contract
from tests.webhook.test_sets import JOBSET, LWS, PYTORCH, RAY, jobset, member, worker, worker_set
from tests.webhook.world import (
    CLIQUE,
    HOSTNAME,
    MNNVL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    admit,
    annotations,
    counts,
    labels,
    notes,
    operations,
    pod,
    pod_terms,
    with_gang,
)

BLOCK = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
SEGMENTS = {
    TOPOLOGY: "nvcf-mnnvl-topology",
    contract.KAI_SEGMENT: "2",
    contract.KAI_SEGMENT_REQUIRED: HOSTNAME,
}


def path(stored: Json) -> list[Json]:
    found: list[Json] = orjson.loads(annotations(stored).get(contract.ANNOTATION_SUBGROUPS, "[]"))
    return found


def at(index: int, size: int) -> Json:
    made = worker(size=str(size))
    made["metadata"]["labels"][contract.LWS_WORKER_INDEX] = str(index)
    return made


async def segments(world: World, size: int) -> Counter[tuple[str, int]]:
    """How many members are in which segment, and how many it says there are."""
    found: Counter[tuple[str, int]] = Counter()
    for index in range(size):
        stored = await admit(at(index, size), world)
        assert notes(stored) == []
        [inner] = path(stored)
        found[inner["name"], inner["minMember"]] += 1
    return found


class TestLeaderWorkerSet:
    async def test_each_segment_has_a_domain_inside_that_of_the_group(self) -> None:
        world = worker_set({**BLOCK, **SEGMENTS})
        stored = await admit(at(3, 4), world)
        assert counts(stored)[0] == "4"
        assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
        assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "2"
        assert path(stored) == [{"name": "segment-1", "minMember": 2, "required": HOSTNAME}]
        gang, segment = pod_terms(stored)
        assert gang == with_gang(labels(stored)[contract.LABEL_GANG])
        assert segment["labelSelector"]["matchExpressions"][0]["values"] == ["segment-1"]
        assert notes(stored) == []
        assert await operations(stored, world) == []

    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (4, {("segment-0", 2): 2, ("segment-1", 2): 2}),
            (5, {("segment-0", 3): 3, ("segment-1", 2): 2}),  # a leader that is one too many joins the first
            (3, {("segment-0", 3): 3}),
        ],
    )
    async def test_members_are_counted_as_the_set_numbers_its_subgroups(
        self, size: int, expected: dict[tuple[str, int], int]
    ) -> None:
        assert await segments(worker_set(SEGMENTS, size=size), size) == expected

    async def test_a_leader_that_is_excluded_is_a_subgroup_by_itself_without_a_domain(self) -> None:
        world = worker_set({k: v for k, v in SEGMENTS.items() if k != contract.KAI_SEGMENT}, size=5)
        template = world.objects[LWS]["spec"]["leaderWorkerTemplate"]
        template["subGroupPolicy"] = {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}
        found = await segments(world, 5)
        assert found == {("leader", 1): 1, ("segment-0", 2): 2, ("segment-1", 2): 2}
        assert "required" not in path(await admit(at(0, 5), world))[0]

    @pytest.mark.parametrize("size", ["1", "5", "many", ""])
    async def test_a_size_that_makes_no_sense_blocks_and_says_what_is_allowed(self, size: str) -> None:
        world = worker_set({**SEGMENTS, contract.KAI_SEGMENT: size})
        ((message, blocking),) = notes(await admit(at(0, 4), world))
        assert blocking
        assert message.endswith("is no size of segments (allowed: a whole number from 2 to 4)")

    async def test_a_group_whose_workers_come_late_has_no_segments(self) -> None:
        stored = await admit(at(0, 4), worker_set({**BLOCK, **SEGMENTS}, startupPolicy="LeaderReady"))
        assert path(stored) == []
        assert counts(stored)[0] == "1"


def train(role: str, index: int, **policy: Any) -> tuple[Json, World]:
    world = World(MNNVL)
    rows = {
        "Master": {"replicas": 1},
        "Worker": {"replicas": 5, "template": {"metadata": {"annotations": SEGMENTS}}},
    }
    spec = {"pytorchReplicaSpecs": rows, **policy}
    world.objects[PYTORCH] = {"metadata": {"name": "fit", "uid": "u", "annotations": BLOCK}, "spec": spec}
    place = {
        contract.KUBEFLOW_JOB: "fit",
        contract.KUBEFLOW_OPERATOR: "pytorchjob-controller",
        contract.KUBEFLOW_TYPE: role,
        contract.KUBEFLOW_INDEX: str(index),
    }
    return pod(labels=place), world


class TestPyTorchJob:
    async def test_workers_are_in_segments_and_the_master_is_in_none(self) -> None:
        stored = await admit(*train("worker", 2))
        assert counts(stored)[0] == "6"
        assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "2"
        assert path(stored) == [
            {"name": "worker", "minSubGroup": 3},
            {"name": "worker-1", "minMember": 2, "required": HOSTNAME},
        ]
        assert path(await admit(*train("worker", 4)))[1]["minMember"] == 1
        assert path(await admit(*train("master", 0))) == [{"name": "master", "minMember": 1}]

    async def test_as_many_segments_as_the_floor_takes_must_board(self) -> None:
        elastic = {"elasticPolicy": {"minReplicas": 4}}
        stored = await admit(*train("worker", 0, **elastic))
        assert counts(stored)[0] == "4"
        assert path(stored)[0] == {"name": "worker", "minSubGroup": 2}


def jobs(name: str, replicas: int, parallelism: int, **keys: str) -> Json:
    template = {"metadata": {"annotations": keys}, "spec": {"parallelism": parallelism}}
    return {"name": name, "replicas": replicas, "template": template}


class TestJobSet:
    async def test_each_job_has_the_domain_that_its_template_asks_for(self) -> None:
        rack = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: HOSTNAME}
        world = jobset(jobs("driver", 1, 1), jobs("workers", 2, 4, **rack), keys=BLOCK)
        stored = await admit(member("workers", 1), world)
        assert counts(stored)[0] == "9"
        assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "2"
        assert path(stored) == [
            {"name": "workers", "minSubGroup": 2},
            {"name": "workers-replica-1", "minMember": 4, "required": HOSTNAME},
        ]
        driver = path(await admit(member("driver"), world))
        assert driver == [{"name": "driver", "minSubGroup": 1}, {"name": "driver-replica-0", "minMember": 1}]
        assert await operations(stored, world) == []

    async def test_min_members_of_set_and_templates_are_floors(self) -> None:
        some = jobset(
            jobs("a", 1, 4, **{contract.KAI_BATCH_MIN_MEMBER: "3"}),
            jobs("b", 1, 4),
            keys={**BLOCK, contract.KAI_BATCH_MIN_MEMBER: "1"},
        )
        stored = await admit(member("a"), some)
        assert counts(stored)[:2] == ("3", "8")
        assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "1"
        assert path(stored)[1] == {"name": "a-replica-0", "minMember": 3}
        assert notes(stored) == []

    async def test_a_set_of_which_no_part_is_special_has_no_subgroups(self) -> None:
        stored = await admit(member("a"), jobset(jobs("a", 2, 2), keys=BLOCK))
        assert path(stored) == []
        assert JOBSET.endswith("jobsets/train")


class TestRayCluster:
    async def test_each_worker_group_has_the_domain_that_its_template_asks_for(self) -> None:
        world = World(MNNVL)
        asks = {"metadata": {"annotations": {REQUIRED_LEVEL: CLIQUE}}}
        rows = [
            {"groupName": "big", "replicas": 4, "minReplicas": 2, "template": asks},
            {"groupName": "small", "replicas": 1, "template": {}},
        ]
        meta = {"name": "ray", "uid": "u", "annotations": {TOPOLOGY: "nvcf-mnnvl-topology"}}
        world.objects[RAY] = {"metadata": meta, "spec": {"workerGroupSpecs": rows}}

        def of(group: str, keys: dict[str, str] | None = None) -> Json:
            return pod(annotations=keys, labels={contract.RAY_CLUSTER: "ray", contract.RAY_GROUP: group})

        big = await admit(of("big", {REQUIRED_LEVEL: CLIQUE}), world)
        assert counts(big)[:2] == ("4", "6")
        assert contract.ANNOTATION_TOPOLOGY_REQUIRED not in annotations(big)
        assert annotations(big)[contract.ANNOTATION_MIN_SUBGROUP] == "3"
        assert path(big) == [{"name": "big", "minMember": 2, "required": CLIQUE}]
        assert path(await admit(of("headgroup"), world)) == [{"name": "headgroup", "minMember": 1}]
        assert path(await admit(of("small"), world)) == [{"name": "small", "minMember": 1}]
