"""Our own labels and annotations, and namespaces where everything counts."""

import pytest

from gangs import contract
from gangs.identity import gang_label
from tests.webhook.world import (
    CLIQUE,
    HOSTNAME,
    PREFERRED,
    Json,
    World,
    admit,
    annotations,
    counts,
    exists,
    gates,
    labels,
    namespace,
    node_terms,
    operations,
    parallel,
    pod,
    pod_terms,
    with_gang,
    workload,
)

MIN, SIZE = contract.ANNOTATION_MIN_MEMBER, contract.ANNOTATION_SIZE
REQUIRED_LEVELS = contract.ANNOTATION_TOPOLOGY_REQUIRED
PREFERRED_LEVELS = contract.ANNOTATION_TOPOLOGY_PREFERRED
ENABLED = namespace(**{contract.LABEL_ENABLED: "true"})


async def test_a_gang_label_names_the_gang_and_min_member_says_how_many() -> None:
    stored = await admit(pod(None, {MIN: "3"}, {contract.LABEL_GANG: "mine"}))
    assert labels(stored)[contract.LABEL_GANG] == "mine"
    assert counts(stored) == ("3", "3", None)
    assert gates(stored) == [contract.GATE]


async def test_a_bare_pod_with_a_gang_label_and_no_number_waits_for_nobody() -> None:
    assert counts(await admit(pod(labels={contract.LABEL_GANG: "mine"}))) == ("1", "1", None)


async def test_a_size_beyond_min_member_is_kept() -> None:
    stored = await admit(pod(None, {MIN: "3", SIZE: "5"}, {contract.LABEL_GANG: "mine"}))
    assert counts(stored) == ("3", "5", None)


async def test_one_owners_size_is_no_limit_to_a_gang_that_has_a_name() -> None:
    half = parallel("half", replicas=2)
    stored = await admit(pod(half, {MIN: "4"}, {contract.LABEL_GANG: "both"}), World(half))
    assert counts(stored) == ("4", "4", None)
    assert contract.ANNOTATION_NOTES not in annotations(stored)


async def test_levels_are_node_labels_and_there_may_be_several() -> None:
    llm = parallel("llm", {REQUIRED_LEVELS: f"example.com/zone, {CLIQUE}", PREFERRED_LEVELS: HOSTNAME})
    stored = await admit(pod(llm), World(llm))
    gang = gang_label("native", "StatefulSet", "llm", "uid-of-llm")
    assert counts(stored) == ("4", "4", "owner")
    assert pod_terms(stored) == [with_gang(gang, "example.com/zone"), with_gang(gang)]
    assert pod_terms(stored, PREFERRED) == [{"weight": 100, "podAffinityTerm": with_gang(gang, HOSTNAME)}]
    assert node_terms(stored) == [{"matchExpressions": [exists("example.com/zone"), exists(CLIQUE)]}]


async def test_a_number_on_the_owner_is_a_floor_that_stays_when_the_owner_is_scaled() -> None:
    llm = parallel("llm", {MIN: "4"}, replicas=4)
    assert counts(await admit(pod(llm), World(llm))) == ("4", "4", None)


async def test_a_number_on_the_pod_wins_over_the_owners() -> None:
    llm = parallel("llm", {MIN: "4"}, replicas=4)
    assert counts(await admit(pod(llm, {MIN: "2"}), World(llm))) == ("2", "4", "owner")


async def test_a_deployment_with_a_number_is_a_gang() -> None:
    web = workload("Deployment", "web", {MIN: "2"}, replicas=3)
    web_1 = workload("ReplicaSet", "web-1", above=web, replicas=3)
    stored = await admit(pod(web_1), World(web, web_1))
    assert labels(stored)[contract.LABEL_GANG] == gang_label("native", "Deployment", "web", "uid-of-web")
    assert counts(stored) == ("2", "3", "owner")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (parallel("o", replicas=3), ("3", "3", "owner")),
        (workload("StatefulSet", "o", replicas=3), ("1", "3", "owner")),
        (workload("Job", "o", parallelism=4, completions=2), ("2", "2", "owner")),
        (workload("Job", "o", parallelism=4), ("4", "4", "owner")),
        (workload("Deployment", "o", replicas=3), (None, None, None)),
    ],
)
async def test_in_an_enabled_namespace_plain_owners_are_gangs(
    owner: Json, expected: tuple[str | None, str | None, str | None]
) -> None:
    stored = await admit(pod(owner), World(owner, ENABLED))
    assert counts(stored) == expected
    assert gates(stored) == ([contract.GATE] if expected[0] else [])
    assert stored["spec"]["schedulerName"] == "allaboard"


async def test_in_an_enabled_namespace_pods_without_accelerators_are_left_as_they_are() -> None:
    web = parallel("web")
    assert await operations(pod(web, gpus=0), World(web, ENABLED)) == []


async def test_a_claim_counts_as_an_accelerator() -> None:
    llm = parallel("llm")
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    stored = await admit(pod(llm, gpus=0, resourceClaims=claims), World(llm, ENABLED))
    assert gates(stored) == [contract.GATE]


async def test_a_user_may_not_write_plan_and_notes() -> None:
    forged = {contract.ANNOTATION_PLAN: "{}", contract.ANNOTATION_NOTES: "[]", "mine": "x"}
    assert annotations(await admit(pod(annotations=forged))) == {"mine": "x"}
    member = await admit(pod(None, {**forged, MIN: "2"}, {contract.LABEL_GANG: "g"}))
    assert contract.ANNOTATION_PLAN not in annotations(member)
    assert contract.ANNOTATION_NOTES not in annotations(member)


async def test_subgroups_that_a_user_writes_stay_as_they_are() -> None:
    keys = {
        contract.ANNOTATION_MIN_MEMBER: "4",
        contract.ANNOTATION_SUBGROUPS: '[{"name": "workers", "minMember": 3, "required": "rack"}]',
        contract.ANNOTATION_MIN_SUBGROUP: "2",
        contract.ANNOTATION_AFTER: "base",
    }
    stored = await admit(pod(annotations=keys, labels={contract.LABEL_GANG: "mine"}))
    assert keys.items() <= annotations(stored).items()
