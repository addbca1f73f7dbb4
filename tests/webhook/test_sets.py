"""LeaderWorkerSets and JobSets: Pods as their controllers label them."""

from typing import Any

import pytest

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
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
    parallel,
    pod,
    pod_terms,
    with_gang,
)
from webhook.mutate import UndecidedError

PYTORCH = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/fit"
MPI = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/fit"
RAY = "/apis/ray.io/v1/namespaces/default/rayclusters/ray"
LWS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets/serve"
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/train"
KAI = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
OURS = {contract.ANNOTATION_TOPOLOGY_REQUIRED: CLIQUE}


def worker_set(keys: dict[str, str] | None = None, size: int = 4, **spec: Any) -> World:
    made = World(MNNVL, parallel("serve-0"), parallel("serve-1"))
    meta = {"name": "serve", "uid": "uid-serve", "annotations": keys or {}, "labels": {}}
    made.objects[LWS] = {"metadata": meta, "spec": {"leaderWorkerTemplate": {"size": size}, **spec}}
    return made


def worker(index: int = 0, revision: str = "r1", size: str = "4", **more: Any) -> Json:
    """Of a StatefulSet that LeaderWorkerSet's controller has made: nothing of it asks for anything."""
    place = {
        contract.LWS_NAME: "serve",
        contract.LWS_GROUP_INDEX: str(index),
        contract.LWS_REVISION: revision,
    }
    return pod(parallel(f"serve-{index}"), {contract.LWS_SIZE: size}, place, **more)


def jobs(name: str, replicas: int = 1, parallelism: int = 1, **more: Any) -> Json:
    spec = {"parallelism": parallelism, "completions": parallelism}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def jobset(*rows: Json, keys: dict[str, str] | None = None, **spec: Any) -> World:
    made = World(MNNVL)
    meta = {"name": "train", "uid": "uid-train", "annotations": keys or {}}
    made.objects[JOBSET] = {"metadata": meta, "spec": {"replicatedJobs": list(rows), **spec}}
    return made


def member(job: str = "workers", index: int = 0, **more: Any) -> Json:
    place = {
        contract.JOBSET_NAME: "train",
        contract.JOBSET_JOB: job,
        contract.JOBSET_INDEX: str(index),
    }
    return pod(labels=place, **more)


def gang(stored: Json) -> str:
    return labels(stored)[contract.LABEL_GANG]


class TestLeaderWorkerSet:
    @pytest.mark.parametrize("keys", [KAI, OURS], ids=["kai", "ours"])
    async def test_each_group_is_a_gang_of_its_size_in_one_domain(self, keys: dict[str, str]) -> None:
        world = worker_set(keys)
        one, same, other = [await admit(worker(index), world) for index in (0, 0, 1)]
        assert counts(one) == ("4", "4", None)
        assert gang(one) == gang(same) != gang(other)
        assert pod_terms(one) == [with_gang(gang(one))]
        assert notes(one) == []
        assert await operations(one, world) == []

    async def test_a_new_revision_is_another_gang_beside_the_old_one(self) -> None:
        world = worker_set(KAI)
        old, new = [await admit(worker(revision=r), world) for r in ("r1", "r2")]
        assert gang(old) != gang(new)

    async def test_keys_of_the_template_are_read_where_the_set_has_none(self) -> None:
        stored = await admit(worker(schedulerName="allaboard"), worker_set(OURS))
        assert counts(stored)[0] == "4"
        member = worker()
        member["metadata"]["annotations"] |= OURS
        assert counts(await admit(member, worker_set())) == ("4", "4", None)

    async def test_a_set_that_asks_for_nothing_stays_as_it_is(self) -> None:
        member = worker()
        assert await admit(member, worker_set()) == member

    @pytest.mark.parametrize(
        "more", [{"startupPolicy": "LeaderReady"}, {}], ids=["leader ready", "exclusive"]
    )
    async def test_a_group_whose_workers_come_after_the_leader_does_not_wait_for_them(
        self, more: dict[str, Any]
    ) -> None:
        keys = KAI if more else {**KAI, contract.LWS_EXCLUSIVE: CLIQUE}
        stored = await admit(worker(), worker_set(keys, **more))
        assert counts(stored) == ("1", "4", None)

    async def test_exclusive_topology_is_a_required_level_where_our_scheduler_is_named(self) -> None:
        world = worker_set({contract.LWS_EXCLUSIVE: CLIQUE})
        stored = await admit(worker(schedulerName="kai-scheduler"), world)
        assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
        theirs = worker()
        assert await admit(theirs, world) == theirs

    async def test_a_set_that_can_not_be_read_just_now_is_not_guessed(self) -> None:
        world = worker_set(KAI)
        world.broken = ("leaderworkersets",)
        with pytest.raises(UndecidedError, match="leaderworkerset serve could not be read"):
            await admit(worker(), world)

    async def test_without_permission_the_pod_itself_says_how_many_there_are(self) -> None:
        world = worker_set(KAI)
        world.forbidden = ("leaderworkersets",)
        member = worker()
        member["metadata"]["annotations"] |= OURS
        stored = await admit(member, world)
        assert counts(stored) == ("4", "4", None)
        assert any("leaderworkerset serve could not be read (forbidden)" in text for text, _ in notes(stored))


class TestJobSet:
    async def test_all_jobs_together_are_one_gang(self) -> None:
        world = jobset(jobs("leader"), jobs("workers", 2, 3), keys=KAI)
        one, other = await admit(member("leader"), world), await admit(member("workers", 1), world)
        assert counts(one) == counts(other) == ("7", "7", None)
        assert gang(one) == gang(other)
        assert pod_terms(one) == [with_gang(gang(one))]
        assert await operations(one, world) == []

    async def test_completions_bound_how_many_there_are_at_one_time(self) -> None:
        row = jobs("workers", 2, 8)
        row["template"]["spec"]["completions"] = 3
        assert counts(await admit(member(), jobset(row, keys=KAI)))[0] == "6"

    @pytest.mark.parametrize(
        ("rows", "spec"),
        [
            ([jobs("leader"), jobs("workers", 2)], {"startupPolicy": {"startupPolicyOrder": "InOrder"}}),
            ([jobs("leader"), jobs("workers", 2, dependsOn=[{"name": "leader", "status": "Ready"}])], {}),
        ],
        ids=["in order", "dependsOn"],
    )
    async def test_jobs_that_come_one_after_another_do_not_wait_for_all(
        self, rows: list[Json], spec: Json
    ) -> None:
        assert counts(await admit(member(), jobset(*rows, keys=KAI, **spec))) == ("1", "3", None)

    async def test_with_exclusive_topology_each_job_goes_by_itself_with_room_for_all_of_it(self) -> None:
        world = jobset(jobs("workers", 2, 3), keys={contract.JOBSET_EXCLUSIVE: CLIQUE})
        one, other = [await admit(member(index=i, schedulerName="allaboard"), world) for i in (0, 1)]
        assert counts(one) == ("1", "3", None)
        assert annotations(one)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
        assert gang(one) != gang(other)

    async def test_a_number_of_ours_on_the_set_is_the_floor(self) -> None:
        keys = {**KAI, contract.ANNOTATION_MIN_MEMBER: "2"}
        assert counts(await admit(member(), jobset(jobs("workers", 2, 3), keys=keys))) == ("2", "6", None)

    async def test_a_number_above_what_the_set_ever_has_is_named_and_blocks(self) -> None:
        keys = {**OURS, contract.ANNOTATION_MIN_MEMBER: "7"}
        [(message, blocking)] = notes(await admit(member(), jobset(jobs("workers", 2, 3), keys=keys)))
        assert blocking
        assert "jobset default/train" in message

    async def test_a_job_that_the_set_does_not_know_goes_by_its_controller(self) -> None:
        stranger = member("others")
        assert await admit(stranger, jobset(jobs("workers"), keys=KAI)) == stranger

    async def test_a_name_that_leads_elsewhere_is_never_looked_up(self) -> None:
        world = jobset(jobs("workers"))
        await admit(pod(labels={contract.JOBSET_NAME: "../../secrets/key"}), world)
        assert [call for call in world.calls if "secrets" in call or "jobsets" in call] == []


def training_job(
    path: str, replicas: dict[str, int], keys: dict[str, str] | None = None, **spec: Any
) -> World:
    field = "mpiReplicaSpecs" if path == MPI else "pytorchReplicaSpecs"
    made = World(MNNVL)
    rows = {name: {"replicas": number} for name, number in replicas.items()}
    meta = {"name": "fit", "uid": "uid-fit", "annotations": KAI if keys is None else keys}
    made.objects[path] = {"metadata": meta, "spec": {field: rows, **spec}}
    return made


def replica(operator: str = "pytorchjob-controller", **more: Any) -> Json:
    place = {contract.KUBEFLOW_JOB: "fit", contract.KUBEFLOW_OPERATOR: operator}
    return pod(labels=place, **more)


class TestKubeflow:
    async def test_all_replicas_of_a_job_are_one_gang(self) -> None:
        world = training_job(PYTORCH, {"Master": 1, "Worker": 3})
        stored = await admit(replica(), world)
        assert counts(stored) == ("4", "4", None)
        assert pod_terms(stored) == [with_gang(gang(stored))]
        assert await operations(stored, world) == []

    @pytest.mark.parametrize(
        ("spec", "floor"),
        [
            ({"elasticPolicy": {"minReplicas": 2}}, "2"),
            ({"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}, "3"),
            (
                {
                    "elasticPolicy": {"minReplicas": 2},
                    "runPolicy": {"schedulingPolicy": {"minAvailable": 3}},
                },
                "3",
            ),
            ({"runPolicy": {"schedulingPolicy": {"minAvailable": 9}}}, "4"),
        ],
    )
    async def test_a_smaller_floor_is_taken_from_the_job(self, spec: Json, floor: str) -> None:
        world = training_job(PYTORCH, {"Master": 1, "Worker": 3}, **spec)
        assert counts(await admit(replica(), world)) == (floor, "4", None)

    async def test_a_launcher_that_comes_after_its_workers_is_not_waited_for(self) -> None:
        replicas = {"Launcher": 1, "Worker": 4}
        late = training_job(MPI, replicas, launcherCreationPolicy="WaitForWorkersReady")
        assert counts(await admit(replica("mpi-operator"), late)) == ("4", "5", None)
        assert counts(await admit(replica("mpi-operator"), training_job(MPI, replicas)))[0] == "5"

    async def test_a_job_that_asks_for_nothing_stays_as_it_is(self) -> None:
        member = replica()
        assert await admit(member, training_job(PYTORCH, {"Worker": 3}, {})) == member

    async def test_an_operator_that_nobody_knows_is_passed_over(self) -> None:
        member = replica("paddlejob-controller")
        assert await admit(member, training_job(PYTORCH, {"Worker": 3})) == member


class TestRay:
    async def test_head_and_workers_are_one_gang_and_an_autoscaled_group_has_a_floor(self) -> None:
        groups = [
            {"groupName": "fixed", "replicas": 2, "numOfHosts": 2},
            {"groupName": "scaled", "replicas": 3, "minReplicas": 1},
            {"groupName": "asleep", "replicas": 5, "suspend": True},
        ]
        world = World(MNNVL)
        meta = {"name": "ray", "uid": "uid-ray", "annotations": KAI}
        world.objects[RAY] = {"metadata": meta, "spec": {"workerGroupSpecs": groups}}
        member = pod(labels={contract.RAY_CLUSTER: "ray"})
        assert counts(await admit(member, world)) == ("6", "8", None)

    async def test_a_cluster_that_is_not_there_leaves_the_pod_to_what_it_says_itself(self) -> None:
        member = pod(labels={contract.RAY_CLUSTER: "ray"})
        assert await admit(member, World(MNNVL)) == member
