"""Grove's Pods: what the real operator made is understood as it is, and what it may make is, too."""

import copy
from typing import Any

import orjson
import pytest

from gangs import contract
from gangs.identity import gang_label
from tests.grove import GATE, Json, podgangs, pods
from tests.webhook.world import (
    CLIQUE,
    HOSTNAME,
    PREFERRED,
    World,
    admit,
    annotations,
    gates,
    labels,
    namespace,
    node_terms,
    notes,
    operations,
    pod_terms,
)

GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/grove-demo/podgangs/{}"
BINDING = "/apis/grove.io/v1alpha1/clustertopologybindings/mnnvl"
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses/{}"


def world(name: str) -> World:
    made = World(namespace("grove-demo"))
    for gang in podgangs(name):
        made.objects[GANGS.format(gang["metadata"]["name"])] = gang
    return made


def member(name: str, clique: str) -> Json:
    return next(p for p in pods(name) if p["metadata"]["labels"]["grove.io/podclique"] == clique)


def of(podgang: str) -> str:
    return gang_label("grove", "PodGang", podgang)


def subgroups(stored: Json) -> list[Json]:
    found: list[Json] = orjson.loads(annotations(stored)[contract.ANNOTATION_SUBGROUPS])
    return found


def facts(stored: Json) -> Json:
    """What the webhook decided on, without names."""
    keys = {
        "min": contract.ANNOTATION_MIN_MEMBER,
        "required": contract.ANNOTATION_TOPOLOGY_REQUIRED,
        "of": contract.ANNOTATION_MIN_SUBGROUP,
        "after": contract.ANNOTATION_AFTER,
    }
    found = {name: annotations(stored)[key] for name, key in keys.items() if key in annotations(stored)}
    return {"gang": labels(stored)[contract.LABEL_GANG], **found, "path": subgroups(stored)}


WORKERS = {"name": "pcsg-kai-0-wrk-0", "minSubGroup": 2, "required": CLIQUE}
# Per capture and PodClique. Scaled gang "wrk-0" holds replica 1: never infer membership from names.
GOLDEN: dict[tuple[str, str], Json] = {
    ("default", "pcs-default-0-prefill"): {
        "gang": of("pcs-default-0"),
        "min": "6",
        "required": CLIQUE,
        "of": "2",
        "path": [{"name": "pcs-default-0-prefill", "minMember": 4}],
    },
    ("default", "pcs-default-0-decode"): {
        "gang": of("pcs-default-0"),
        "min": "6",
        "required": CLIQUE,
        "of": "2",
        "path": [{"name": "pcs-default-0-decode", "minMember": 2}],
    },
    ("kai", "pcs-kai-0-decode"): {
        "gang": of("pcs-kai-0"),
        "min": "6",
        "required": CLIQUE,
        "of": "2",
        "path": [{"name": "pcs-kai-0-decode", "minMember": 2}],
    },
    ("pcsg", "pcsg-kai-0-router"): {
        "gang": of("pcsg-kai-0"),
        "min": "5",
        "of": "2",
        "path": [{"name": "pcsg-kai-0-router", "minMember": 1}],
    },
    ("pcsg", "pcsg-kai-0-wrk-0-leader"): {
        "gang": of("pcsg-kai-0"),
        "min": "5",
        "of": "2",
        "path": [WORKERS, {"name": "pcsg-kai-0-wrk-0-leader", "minMember": 1}],
    },
    ("pcsg", "pcsg-kai-0-wrk-0-worker"): {
        "gang": of("pcsg-kai-0"),
        "min": "5",
        "of": "2",
        "path": [WORKERS, {"name": "pcsg-kai-0-wrk-0-worker", "minMember": 3}],
    },
    ("pcsg", "pcsg-kai-0-wrk-1-worker"): {
        "gang": of("pcsg-kai-0-wrk-0"),
        "min": "4",
        "required": CLIQUE,
        "of": "2",
        "after": of("pcsg-kai-0"),
        "path": [{"name": "pcsg-kai-0-wrk-1-worker", "minMember": 3}],
    },
    ("pcsg", "pcsg-kai-0-wrk-2-leader"): {
        "gang": of("pcsg-kai-0-wrk-1"),
        "min": "4",
        "required": CLIQUE,
        "of": "2",
        "after": of("pcsg-kai-0"),
        "path": [{"name": "pcsg-kai-0-wrk-2-leader", "minMember": 1}],
    },
}


@pytest.mark.parametrize(("capture", "clique"), GOLDEN, ids=[f"{a}:{b}" for a, b in GOLDEN])
async def test_pods_of_the_real_operator_get_gang_floors_and_domains_of_their_podgang(
    capture: str, clique: str
) -> None:
    created = member(capture, clique)
    stored = await admit(created, world(capture))
    assert facts(stored) == GOLDEN[capture, clique]
    assert notes(stored) == []
    assert gates(stored) == [GATE, contract.GATE]
    assert labels(stored)[contract.LABEL_SUBGROUP] == clique
    assert labels(stored)[contract.LABEL_QUEUE] == "default-queue"
    assert stored["spec"]["schedulerName"] == ("allaboard" if capture == "default" else "kai-scheduler")


@pytest.mark.parametrize("capture", ["default", "kai", "pcsg"])
async def test_every_pod_of_a_capture_is_understood_and_all_else_of_it_left_as_it_is(capture: str) -> None:
    there = world(capture)
    for created in pods(capture):
        stored = await admit(created, there)
        assert notes(stored) == []
        assert await operations(stored, there) == []
        for field in ("hostname", "subdomain", "containers"):
            assert stored["spec"][field] == created["spec"][field]
        assert created["metadata"]["labels"].items() <= labels(stored).items()


async def test_members_share_the_domain_of_their_gang_and_of_each_subgroup_around_them() -> None:
    flat = await admit(member("default", "pcs-default-0-decode"), world("default"))
    whole = {"matchLabels": {contract.LABEL_GANG: of("pcs-default-0")}}
    assert pod_terms(flat) == [{"labelSelector": whole, "topologyKey": CLIQUE}]
    nested = await admit(member("pcsg", "pcsg-kai-0-wrk-0-leader"), world("pcsg"))
    cliques = ["pcsg-kai-0-wrk-0-leader", "pcsg-kai-0-wrk-0-worker"]
    among = {"key": contract.LABEL_SUBGROUP, "operator": "In", "values": cliques}
    selector = {"matchLabels": {contract.LABEL_GANG: of("pcsg-kai-0")}, "matchExpressions": [among]}
    assert pod_terms(nested) == [{"labelSelector": selector, "topologyKey": CLIQUE}]
    assert node_terms(nested) == [{"matchExpressions": [{"key": CLIQUE, "operator": "Exists"}]}]
    router = await admit(member("pcsg", "pcsg-kai-0-router"), world("pcsg"))
    assert pod_terms(router) == []


def gang_of(**spec: Any) -> World:
    """The PodGang of the flat capture with other fields."""
    made = world("default")
    made.objects[GANGS.format("pcs-default-0")]["spec"].update(spec)
    return made


def pack(**words: str) -> Json:
    return {"packConstraint": words}


DECODE = member("default", "pcs-default-0-decode")


async def test_constraints_of_all_three_levels_are_obeyed_required_and_preferred() -> None:
    rows = copy.deepcopy(podgangs("default")[0]["spec"]["podgroups"])
    for row in rows:
        row["topologyConstraint"] = pack(required=HOSTNAME)
    config: Json = {"name": "both", "podGroupNames": [row["name"] for row in rows]}
    config["topologyConstraint"] = pack(required=CLIQUE, preferred="example.com/rack")
    there = gang_of(
        podgroups=rows,
        topologyConstraint=pack(required="topology.kubernetes.io/zone", preferred=CLIQUE),
        topologyConstraintGroupConfigs=[config],
    )
    stored = await admit(DECODE, there)
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == "topology.kubernetes.io/zone"
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_PREFERRED] == CLIQUE
    assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "1"
    assert subgroups(stored) == [
        {"name": "both", "minSubGroup": 2, "required": CLIQUE, "preferred": "example.com/rack"},
        {"name": "pcs-default-0-decode", "minMember": 2, "required": HOSTNAME},
    ]
    assert [t["topologyKey"] for t in pod_terms(stored)] == ["topology.kubernetes.io/zone", CLIQUE, HOSTNAME]
    terms = [t["podAffinityTerm"]["topologyKey"] for t in pod_terms(stored, PREFERRED)]
    assert terms == [CLIQUE, "example.com/rack"]


async def test_words_of_a_cluster_topology_binding_are_turned_into_its_label_keys() -> None:
    there = gang_of(topologyConstraint=pack(required="gpuclique", preferred="hostname"))
    levels = [{"domain": "gpuclique", "key": CLIQUE}, {"domain": "hostname", "key": HOSTNAME}]
    there.objects[BINDING] = {"spec": {"levels": levels}}
    stored = await admit(DECODE, there)
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_PREFERRED] == HOSTNAME


async def test_the_binding_is_not_asked_for_where_the_podgang_has_label_keys() -> None:
    there = world("default")
    await admit(DECODE, there)
    assert BINDING not in there.calls


async def test_a_podclique_that_needs_nobody_joins_and_is_not_waited_for() -> None:
    rows = copy.deepcopy(podgangs("default")[0]["spec"]["podgroups"])
    rows[1]["minReplicas"] = 0
    stored = await admit(DECODE, gang_of(podgroups=rows))
    assert facts(stored)["min"] == "4"
    assert facts(stored)["of"] == "1"
    assert facts(stored)["path"] == [{"name": "pcs-default-0-decode"}]


async def test_a_newer_grove_whose_gangs_are_named_by_epoch_is_understood() -> None:
    created = copy.deepcopy(DECODE)
    created["metadata"]["labels"]["grove.io/podgang"] = "pcs-default-0-1766000000000000000"
    there = world("default")
    there.objects[GANGS.format("pcs-default-0-1766000000000000000")] = podgangs("default")[0]
    stored = await admit(created, there)
    assert notes(stored) == []
    assert facts(stored)["gang"] == of("pcs-default-0-1766000000000000000")


async def test_a_pod_without_its_podgang_waits_and_says_why() -> None:
    stored = await admit(DECODE, World(namespace("grove-demo")))
    ((message, blocking),) = notes(stored)
    assert blocking
    assert 'label grove.io/podgang: no PodGang "pcs-default-0" was found' in message
    assert contract.GATE in gates(stored)


async def test_a_pod_of_a_clique_that_the_podgang_does_not_know_waits_and_says_which_there_are() -> None:
    created = copy.deepcopy(DECODE)
    created["metadata"]["labels"]["grove.io/podclique"] = "other"
    ((message, blocking),) = notes(await admit(created, world("default")))
    assert blocking
    assert 'label grove.io/podclique: "other" is no podgroup of podgang grove-demo/pcs-default-0' in message
    assert "(podgroups: pcs-default-0-prefill, pcs-default-0-decode)" in message


async def test_a_constraint_that_is_no_label_key_is_named_with_its_field() -> None:
    there = gang_of(topologyConstraint=pack(required="no key"))
    ((message, blocking),) = notes(await admit(DECODE, there))
    assert blocking
    assert 'spec.topologyConstraint.packConstraint.required: "no key" is no node label key' in message


@pytest.mark.parametrize(
    "spec",
    [
        {"podgroups": None},
        {"podgroups": [{"name": "pcs-default-0-decode", "minReplicas": "two"}]},
        {"topologyConstraint": "clique"},
        {"topologyConstraint": {"packConstraint": None}},
        {"topologyConstraintGroupConfigs": [{"name": "x", "podGroupNames": None}, 7]},
        {"priorityClassName": "../../pods"},
    ],
    ids=str,
)
async def test_a_podgang_that_makes_no_sense_is_no_reason_to_fail(spec: Json) -> None:
    stored = await admit(DECODE, gang_of(**spec))
    assert contract.GATE in gates(stored)


async def test_the_podgangs_priority_class_reaches_the_pod_where_it_exists() -> None:
    created = copy.deepcopy(DECODE)
    created["spec"] |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    there = gang_of(priorityClassName="urgent")
    untouched = await admit(created, there)
    assert "priorityClassName" not in untouched["spec"]
    assert untouched["spec"]["priority"] == 0
    there.objects[PRIORITY.format("urgent")] = {"metadata": {"name": "urgent"}, "value": 100}
    stored = await admit(created, there)
    assert stored["spec"]["priorityClassName"] == "urgent"
    assert not {"priority", "preemptionPolicy"} & stored["spec"].keys()
    again = {**stored, "spec": {**stored["spec"], "priority": 100}}
    assert await operations(again, there) == []


async def test_a_pod_for_a_scheduler_that_is_not_ours_is_left_alone() -> None:
    created = copy.deepcopy(DECODE)
    created["spec"]["schedulerName"] = "volcano"
    assert await operations(created, world("default")) == []
