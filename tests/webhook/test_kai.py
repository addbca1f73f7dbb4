"""KAI's annotations, on owners and on Pods."""

from pathlib import Path

import pytest
import yaml

from gangs import contract
from gangs.identity import gang_label
from tests.webhook.world import (
    BATCH_MIN,
    CLIQUE,
    HOSTNAME,
    MNNVL,
    PREFERRED,
    PREFERRED_LEVEL,
    REQUIRED,
    REQUIRED_LEVEL,
    TOPOLOGY,
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
    notes,
    operations,
    parallel,
    pod,
    pod_terms,
    topology,
    with_gang,
    workload,
)

SEED = (Path(__file__).parents[2] / "examples" / "kai-statefulset.yaml").read_text()
IN_A_CLIQUE = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}


async def test_a_parallel_statefulset_with_a_required_level_becomes_one_gang_of_all_replicas() -> None:
    llm = parallel("llm", IN_A_CLIQUE, replicas=4)
    stored = await admit(pod(llm, labels={"app": "llm"}), World(MNNVL, llm))
    gang = gang_label("kai", "StatefulSet", "llm", "uid-of-llm")
    assert stored["metadata"]["labels"] == {
        "app": "llm",
        contract.LABEL_GANG: gang,
        contract.LABEL_QUEUE: "default-queue",
    }
    assert annotations(stored) == {
        contract.ANNOTATION_MIN_MEMBER: "4",
        contract.ANNOTATION_SIZE: "4",
        contract.ANNOTATION_SIZE_FROM: "owner",
        contract.ANNOTATION_TOPOLOGY_REQUIRED: CLIQUE,
    }
    assert stored["spec"]["schedulerName"] == "allaboard"
    assert stored["spec"]["schedulingGates"] == [{"name": contract.GATE}]
    assert pod_terms(stored) == [with_gang(gang)]
    assert node_terms(stored) == [{"matchExpressions": [exists(CLIQUE)]}]


async def test_the_seed_manifest_is_understood_as_it_is() -> None:
    llm = yaml.safe_load(SEED)
    llm["metadata"] |= {"namespace": "default", "uid": "uid-of-llm"}
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert counts(stored) == ("2", "2", "owner")
    assert gates(stored) == [contract.GATE]
    assert notes(stored) == []


async def test_an_ordered_statefulset_waits_for_no_other_pod_but_looks_for_room_for_all() -> None:
    llm = workload("StatefulSet", "llm", IN_A_CLIQUE, replicas=4)
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert counts(stored) == ("1", "4", "owner")
    assert pod_terms(stored) == [with_gang(labels(stored)[contract.LABEL_GANG])]


async def test_an_ordered_statefulset_of_one_keeps_its_floor_when_it_is_scaled() -> None:
    llm = workload("StatefulSet", "llm", IN_A_CLIQUE, replicas=1)
    assert counts(await admit(pod(llm), World(MNNVL, llm))) == ("1", "1", None)


@pytest.mark.parametrize(
    ("spec", "status", "extra", "expected"),
    [
        ({"parallelism": 8, "completions": 8}, {}, {}, ("1", "8", "owner")),
        ({"parallelism": 8, "completions": 8}, {}, {BATCH_MIN: "6"}, ("6", "8", "owner")),
        ({"parallelism": 8, "completions": 8}, {}, {BATCH_MIN: "8"}, ("8", "8", None)),
        ({"parallelism": 8, "completions": 10}, {"succeeded": 7}, {BATCH_MIN: "8"}, ("3", "3", None)),
        ({"parallelism": 8}, {}, {BATCH_MIN: "2"}, ("2", "8", "owner")),
        ({}, {}, {BATCH_MIN: "1"}, ("1", "1", None)),
    ],
)
async def test_a_job_boards_as_many_as_its_min_member_says_else_one(
    spec: Json, status: Json, extra: dict[str, str], expected: tuple[str, str, str | None]
) -> None:
    train = workload("Job", "train", {**IN_A_CLIQUE, **extra}, status=status, **spec)
    stored = await admit(pod(train), World(MNNVL, train))
    assert counts(stored) == expected
    assert notes(stored) == []


async def test_a_job_with_a_min_member_needs_no_topology_to_be_a_gang() -> None:
    train = workload("Job", "train", {BATCH_MIN: "4"}, parallelism=4, completions=4)
    stored = await admit(pod(train), World(train))
    assert counts(stored) == ("4", "4", None)
    assert gates(stored) == [contract.GATE]
    assert "affinity" not in stored["spec"]


async def test_a_job_of_a_cronjob_is_a_gang_of_its_own() -> None:
    nightly = {"kind": "CronJob", "metadata": {"name": "nightly", "uid": "uid-of-nightly"}}
    run = workload("Job", "nightly-1", {**IN_A_CLIQUE, BATCH_MIN: "2"}, above=nightly, parallelism=2)
    stored = await admit(pod(run), World(MNNVL, run))
    assert labels(stored)[contract.LABEL_GANG] == gang_label("kai", "Job", "nightly-1", "uid-of-nightly-1")


async def test_each_pod_of_a_deployment_is_placed_by_itself_on_a_node_of_the_level() -> None:
    web = workload("Deployment", "web", IN_A_CLIQUE, labels={contract.LABEL_QUEUE: "team-a"}, replicas=3)
    web_1 = workload("ReplicaSet", "web-1", above=web, replicas=3)
    stored = await admit(pod(web_1), World(MNNVL, web, web_1))
    assert stored["metadata"]["labels"] == {contract.LABEL_QUEUE: "team-a"}
    assert "annotations" not in stored["metadata"]
    assert stored["spec"]["schedulerName"] == "allaboard"
    assert stored["spec"]["affinity"] == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [exists(CLIQUE)]}]
            }
        }
    }
    assert gates(stored) == []


async def test_a_bare_pod_with_a_level_is_placed_by_itself() -> None:
    stored = await admit(pod(annotations=IN_A_CLIQUE))
    assert node_terms(stored) == [{"matchExpressions": [exists(CLIQUE)]}]
    assert gates(stored) == []


async def test_annotations_of_the_template_count_where_the_owner_has_none() -> None:
    llm = parallel("llm", replicas=3)
    stored = await admit(pod(llm, annotations=IN_A_CLIQUE), World(MNNVL, llm))
    assert counts(stored) == ("3", "3", "owner")
    assert pod_terms(stored)


async def test_annotations_of_the_template_do_not_count_where_the_owner_has_some() -> None:
    llm = parallel("llm", {TOPOLOGY: "nvcf-mnnvl-topology", PREFERRED_LEVEL: CLIQUE})
    stored = await admit(pod(llm, annotations=IN_A_CLIQUE), World(MNNVL, llm))
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_PREFERRED] == CLIQUE
    assert contract.ANNOTATION_TOPOLOGY_REQUIRED not in annotations(stored)


async def test_a_preferred_level_pulls_with_weight_100_and_asks_no_label_of_nodes() -> None:
    llm = parallel("llm", {TOPOLOGY: "nvcf-mnnvl-topology", PREFERRED_LEVEL: CLIQUE})
    stored = await admit(pod(llm), World(MNNVL, llm))
    term = with_gang(labels(stored)[contract.LABEL_GANG])
    assert pod_terms(stored, PREFERRED) == [{"weight": 100, "podAffinityTerm": term}]
    assert "nodeAffinity" not in stored["spec"]["affinity"]


async def test_a_required_and_a_narrower_preferred_level_both_hold() -> None:
    llm = parallel("llm", {**IN_A_CLIQUE, PREFERRED_LEVEL: HOSTNAME})
    stored = await admit(pod(llm), World(MNNVL, llm))
    gang = labels(stored)[contract.LABEL_GANG]
    assert pod_terms(stored) == [with_gang(gang)]
    assert pod_terms(stored, PREFERRED) == [{"weight": 100, "podAffinityTerm": with_gang(gang, HOSTNAME)}]
    assert notes(stored) == []


async def test_a_level_may_be_named_by_its_alias() -> None:
    aliased = topology("t", (CLIQUE, "clique"), HOSTNAME)
    llm = parallel("llm", {TOPOLOGY: "t", REQUIRED_LEVEL: "clique"})
    stored = await admit(pod(llm), World(aliased, llm))
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
    assert notes(stored) == []


async def test_a_subgroup_is_kept_together_by_its_own_label_too() -> None:
    llm = parallel("llm", IN_A_CLIQUE)
    stored = await admit(pod(llm, labels={contract.LABEL_SUBGROUP: "decode"}), World(MNNVL, llm))
    [term] = pod_terms(stored)
    assert term["labelSelector"]["matchLabels"][contract.LABEL_SUBGROUP] == "decode"


async def test_a_served_scheduler_name_is_kept() -> None:
    llm = parallel("llm", IN_A_CLIQUE)
    stored = await admit(pod(llm, schedulerName="kai-scheduler"), World(MNNVL, llm))
    assert stored["spec"]["schedulerName"] == "kai-scheduler"
    assert gates(stored) == [contract.GATE]


async def test_the_default_scheduler_is_kept_where_it_is_served() -> None:
    llm = parallel("llm", IN_A_CLIQUE)
    profiles = ("default-scheduler", "allaboard")
    stored = await admit(pod(llm), World(MNNVL, llm), profiles)
    assert stored["spec"]["schedulerName"] == "default-scheduler"
    assert gates(stored) == [contract.GATE]


async def test_a_min_member_of_ours_overrides_the_floor() -> None:
    llm = parallel("llm", {**IN_A_CLIQUE, contract.ANNOTATION_MIN_MEMBER: "3"}, replicas=4)
    assert counts(await admit(pod(llm), World(MNNVL, llm))) == ("3", "4", "owner")


async def test_gates_and_affinity_that_a_pod_brings_along_stay() -> None:
    llm = parallel("llm", IN_A_CLIQUE)
    zone_a = {"key": "zone", "operator": "In", "values": ["a"]}
    zone_b = {"key": "zone", "operator": "In", "values": ["b"]}
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    apart = {REQUIRED: [{"labelSelector": {}, "topologyKey": HOSTNAME}]}
    own = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "zone"}
    affinity = {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [{"matchExpressions": [zone_a]}, {"matchExpressions": [zone_b]}, by_name]
            }
        },
        "podAffinity": {REQUIRED: [own]},
        "podAntiAffinity": apart,
    }
    member = pod(llm, affinity=affinity, schedulingGates=[{"name": "example.com/mine"}])
    stored = await admit(member, World(MNNVL, llm))
    assert gates(stored) == ["example.com/mine", contract.GATE]
    assert node_terms(stored) == [
        {"matchExpressions": [zone_a, exists(CLIQUE)]},
        {"matchExpressions": [zone_b, exists(CLIQUE)]},
        {**by_name, "matchExpressions": [exists(CLIQUE)]},
    ]
    assert pod_terms(stored) == [own, with_gang(labels(stored)[contract.LABEL_GANG])]
    assert stored["spec"]["affinity"]["podAntiAffinity"] == apart


async def test_a_node_selector_term_that_matches_nothing_goes_on_matching_nothing() -> None:
    llm = parallel("llm", IN_A_CLIQUE)
    affinity: Json = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}
    assert node_terms(await admit(pod(llm, affinity=affinity), World(MNNVL, llm))) == [{}]


@pytest.mark.parametrize(
    ("of_pod", "of_owner", "of_namespace", "expected"),
    [
        ("p", "o", "n", "p"),
        ("", "o", "n", "o"),
        ("", "", "n", "n"),
        ("", "", "", "default-queue"),
    ],
)
async def test_the_queue_is_the_pods_else_the_owners_else_the_namespaces_else_the_default(
    of_pod: str, of_owner: str, of_namespace: str, expected: str
) -> None:
    def queue(name: str) -> dict[str, str]:
        return {contract.LABEL_QUEUE: name} if name else {}

    llm = parallel("llm", IN_A_CLIQUE, labels=queue(of_owner))
    world = World(MNNVL, llm, namespace(**queue(of_namespace)))
    assert labels(await admit(pod(llm, labels=queue(of_pod)), world))[contract.LABEL_QUEUE] == expected


async def test_what_kai_schedules_without_topology_or_min_member_is_left_as_it_is() -> None:
    plain = parallel("plain", {"kai.scheduler/preemption-delay": "10s"})
    assert await operations(pod(plain, schedulerName="kai-scheduler"), World(MNNVL, plain)) == []


async def test_replicas_of_one_owner_share_a_gang_and_namesakes_do_not() -> None:
    first = parallel("llm", IN_A_CLIQUE)
    again = parallel("llm", IN_A_CLIQUE)
    again["metadata"]["uid"] = "uid-of-a-later-llm"
    one = labels(await admit(pod(first), World(MNNVL, first)))[contract.LABEL_GANG]
    two = labels(await admit(pod(first), World(MNNVL, first)))[contract.LABEL_GANG]
    other = labels(await admit(pod(again), World(MNNVL, again)))[contract.LABEL_GANG]
    assert one == two != other


async def test_a_staleness_period_is_handed_on() -> None:
    llm = parallel("llm", {**IN_A_CLIQUE, contract.KAI_STALENESS: "90s"}, replicas=4)
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert annotations(stored)[contract.ANNOTATION_STALENESS] == "90s"


async def test_a_staleness_period_that_is_no_duration_is_ignored_as_kai_does_and_noted() -> None:
    llm = parallel("llm", {**IN_A_CLIQUE, contract.KAI_STALENESS: "soon"}, replicas=4)
    stored = await admit(pod(llm), World(MNNVL, llm))
    assert contract.ANNOTATION_STALENESS not in annotations(stored)
    ((message, blocking),) = notes(stored)
    assert message.startswith(
        f'statefulset default/llm: annotation {contract.KAI_STALENESS}: "soon" is no duration'
    )
    assert not blocking
