"""Two dialects on one Pod: the first decides who, the stricter how many and where, and a note names both."""

import pytest

from gangs import contract
from tests.webhook.world import (
    BATCH_MIN,
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
    parallel,
    pod,
    pod_terms,
    workload,
)

KAI = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
PODGROUP = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/g"


def grouped(floor: str) -> dict[str, str]:
    return {contract.LIGHTWEIGHT_GROUP: "g", contract.LIGHTWEIGHT_MIN: floor}


async def said(member: Json, world: World) -> tuple[str | None, str]:
    """The floor, and the only note."""
    stored = await admit(member, world)
    ((message, blocking),) = notes(stored)
    assert not blocking
    assert await operations(stored, world) == []
    return counts(stored)[0], message


@pytest.mark.parametrize(
    ("floor", "taken", "words"),
    [
        ("6", "6", ", but its minMember 6 is, being stricter than 4"),
        ("8", "8", ", but its minMember 8 is, being stricter than 4"),
        ("3", "4", "the group's name is not used"),
        ("9", "4", ", nor its minMember 9, since job default/train wants 8"),
    ],
)
async def test_the_higher_floor_is_taken_as_far_as_the_gang_can_ever_reach_it(
    floor: str, taken: str, words: str
) -> None:
    train = workload("Job", "train", {**KAI, BATCH_MIN: "4"}, parallelism=8, completions=8)
    found, message = await said(pod(train, labels=grouped(floor)), World(MNNVL, train))
    assert found == taken
    assert message.endswith(words)
    assert 'label pod-group.scheduling.sigs.k8s.io/name: "g" stands beside the keys of KAI' in message


async def test_a_floor_that_equals_the_size_does_not_follow_it() -> None:
    train = workload("Job", "train", {**KAI, BATCH_MIN: "4"}, parallelism=8, completions=8)
    stored = await admit(pod(train, labels=grouped("8")), World(MNNVL, train))
    assert counts(stored) == ("8", "8", None)


async def test_members_that_come_one_after_another_are_not_waited_for_all_the_same() -> None:
    ordered = workload("StatefulSet", "llm", KAI, replicas=4)
    found, message = await said(pod(ordered, labels=grouped("4")), World(MNNVL, ordered))
    assert found == "1"
    assert "statefulset default/llm makes its Pods one after another" in message


async def test_the_floor_may_stand_on_a_podgroup_and_one_that_is_missing_changes_nothing() -> None:
    train = workload("Job", "train", KAI, parallelism=4, completions=4)
    member = pod(train, labels={contract.COSCHEDULING_GROUP: "g"})
    world = World(MNNVL, train)
    assert (await said(member, world))[0] == "1"
    world = World(MNNVL, train)
    world.objects[PODGROUP] = {"kind": "PodGroup", "spec": {"minMember": 4}}
    assert (await said(member, world))[0] == "4"


async def test_yunikorns_task_groups_count_beside_kais_keys_too() -> None:
    train = workload("Job", "train", KAI, parallelism=4, completions=4)
    keys = {contract.YUNIKORN_GROUP: "w", contract.YUNIKORN_GROUPS: '[{"name": "w", "minMember": 3}]'}
    found, message = await said(pod(train, keys), World(MNNVL, train))
    assert found == "3"
    assert 'annotation yunikorn.apache.org/task-group-name: "w"' in message


async def test_levels_of_two_dialects_are_both_obeyed() -> None:
    llm = parallel("llm", {**KAI, contract.ANNOTATION_TOPOLOGY_REQUIRED: HOSTNAME})
    world = World(MNNVL, llm)
    stored = await admit(pod(llm), world)
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == f"{CLIQUE},{HOSTNAME}"
    assert [term["topologyKey"] for term in pod_terms(stored)] == [CLIQUE, HOSTNAME]
    ((message, _),) = notes(stored)
    assert f"asks for {HOSTNAME}, the keys of KAI for {CLIQUE}: the gang shares all of them" in message
    assert await operations(stored, world) == []


async def test_a_clique_that_nvcf_requires_is_required_where_kai_only_prefers_one() -> None:
    llm = parallel(
        "llm", {TOPOLOGY: "nvcf-mnnvl-topology", "kai.scheduler/topology-preferred-placement": CLIQUE}
    )
    stored = await admit(pod(llm, {contract.NVCF_INDEX: "0"}), World(MNNVL, llm))
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE


async def test_a_min_member_of_ours_is_an_authors_last_word_and_may_be_lower() -> None:
    train = workload(
        "Job", "train", {**KAI, BATCH_MIN: "4", contract.ANNOTATION_MIN_MEMBER: "2"}, parallelism=8
    )
    stored = await admit(pod(train, labels=grouped("6")), World(MNNVL, train))
    assert counts(stored)[0] == "2"


async def test_groves_gang_stands_whatever_group_its_pods_name() -> None:
    world = World(MNNVL)
    path = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs/pg"
    world.objects[path] = {"spec": {"podgroups": [{"name": "a", "minReplicas": 2}]}}
    member = pod(labels={contract.GROVE_PODGANG: "pg", contract.GROVE_CLIQUE: "a", **grouped("6")})
    found, message = await said(member, world)
    assert found == "2"
    assert "stands beside the keys of Grove" in message
    assert labels(await admit(member, world))[contract.LABEL_GANG].startswith("pg-")
