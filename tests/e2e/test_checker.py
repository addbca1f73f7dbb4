"""The checker's judgement, snapshot by snapshot."""

from collections.abc import Mapping
from typing import Any

import pytest

from e2e.checker import Checker, Snapshot
from e2e.expected import gangs

Json = dict[str, Any]

_KAI = {"kai.scheduler/topology-required-placement": "nvidia.com/gpu.clique"}


def pod(
    uid: str,
    node: str = "",
    *,
    gang: str = "ranks",
    floor: int = 2,
    gpus: int = 4,
    nominated: str = "",
    terminating: bool = False,
    **meta: Any,
) -> Json:
    labels = {"allaboard.dev/gang": gang} if gang else {}
    annotations = {
        "allaboard.dev/min-member": str(floor),
        "allaboard.dev/topology-required": "nvidia.com/gpu.clique",
    }
    metadata = {
        "uid": uid,
        "name": uid,
        "namespace": "ns",
        "labels": labels,
        "annotations": annotations,
        **meta,
    }
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "schedulerName": "allaboard", "containers": [container]},
        "status": {"nominatedNodeName": nominated},
    }


def node(name: str, clique: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.clique": clique}},
        "status": {"allocatable": {"nvidia.com/gpu": "4"}},
    }


NODES = {name: node(name, clique) for name, clique in (("a0", "a"), ("a1", "a"), ("b0", "b"), ("b1", "b"))}


def statefulset(uid: str, replicas: int, annotations: Mapping[str, str] = _KAI, **template: Any) -> Json:
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "ns", "annotations": dict(annotations)},
        "spec": {
            "podManagementPolicy": "Parallel",
            "replicas": replicas,
            "template": {"metadata": {"annotations": template}},
        },
    }


def show(checker: Checker, at: float, *pods: Json, sets: tuple[Json, ...] = ()) -> list[str]:
    by_uid = {p["metadata"]["uid"]: p for p in pods}
    owners = {s["metadata"]["uid"]: s for s in sets}
    checker.look(Snapshot(at, by_uid, NODES, owners))
    return [violation.promise for violation in checker.violations]


def test_half_a_gang_is_partial_only_when_it_stays_so_for_five_seconds() -> None:
    checker = Checker()
    half = pod("p0", "a0"), pod("p1")
    assert show(checker, 0.0, *half) == []
    assert show(checker, 4.9, *half) == []
    assert show(checker, 5.0, *half) == ["partial"]


def test_a_gang_that_becomes_whole_in_between_is_not_partial() -> None:
    checker = Checker()
    half = pod("p0", "a0"), pod("p1")
    show(checker, 0.0, *half)
    show(checker, 3.0, pod("p0", "a0"), pod("p1", "a1"))
    show(checker, 4.0, *half)
    assert show(checker, 8.0, *half) == []


def test_nobody_bound_and_everybody_bound_are_both_fine() -> None:
    checker = Checker()
    for at in (0.0, 10.0):
        show(checker, at, pod("p0"), pod("p1"))
    for at in (20.0, 30.0):
        show(checker, at, pod("p0", "a0"), pod("p1", "a1"))
    assert checker.violations == {}


def test_a_gang_on_its_way_out_is_not_partial() -> None:
    checker = Checker()
    for at in (0.0, 10.0):
        show(checker, at, pod("p0", "a0", terminating=True), pod("p1", "a1", terminating=True))
    assert checker.violations == {}


def test_members_in_two_cliques_are_spread() -> None:
    assert show(Checker(), 0.0, pod("p0", "a0"), pod("p1", "b0")) == ["spread"]


def test_more_gpus_than_the_node_has_are_an_overcommit() -> None:
    assert show(Checker(), 0.0, pod("p0", "a0", gang=""), pod("p1", "a0", gang="")) == ["overcommit"]


def test_a_loose_pod_on_promised_room_is_a_theft_when_it_is_bound() -> None:
    checker = Checker()
    promised = pod("p0", nominated="a0"), pod("p1", nominated="a1")
    assert show(checker, 0.0, *promised, pod("loose", gang="")) == []
    assert show(checker, 1.0, *promised, pod("loose", "a0", gang="")) == ["theft"]


def test_a_loose_pod_beside_a_promise_that_still_fits_is_no_theft() -> None:
    promised = pod("p0", nominated="a0", gpus=2), pod("p1", nominated="a1")
    assert show(Checker(), 0.0, *promised, pod("loose", "a0", gang="", gpus=2)) == []


def test_one_violation_is_reported_once_however_long_it_lasts() -> None:
    checker = Checker()
    for at in range(3):
        show(checker, float(at), pod("p0", "a0"), pod("p1", "b0"))
    assert list(checker.violations.values()) == [0.0]


def test_violations_are_told_by_namespace() -> None:
    checker = Checker()
    show(checker, 0.0, pod("p0", "a0"), pod("p1", "b0"))
    assert [v.promise for v in checker.of("ns")] == ["spread"]
    assert checker.of("n") == []


def owned(uid: str, owner: str, **annotations: str) -> Json:
    return pod(uid, gang="", ownerReferences=[{"uid": owner}], annotations=annotations)


def test_a_parallel_statefulset_with_kai_annotations_is_a_gang_of_its_replicas() -> None:
    (gang,) = gangs([owned("p0", "llm"), owned("p1", "llm")], [statefulset("llm", 3)])
    assert (gang.name, gang.floor, gang.level) == ("ns/llm", 3, "nvidia.com/gpu.clique")


def test_what_the_webhook_wrote_does_not_shrink_a_gang() -> None:
    members = [owned("p0", "llm", **{"allaboard.dev/min-member": "1"})]
    assert [gang.floor for gang in gangs(members, [statefulset("llm", 3)])] == [3]


def test_ordered_and_unannotated_statefulsets_are_no_gangs() -> None:
    ordered = statefulset("ordered", 3)
    ordered["spec"]["podManagementPolicy"] = "OrderedReady"
    assert gangs([owned("p0", "ordered"), owned("p1", "plain")], [ordered, statefulset("plain", 3, {})]) == []


@pytest.mark.parametrize("namespace", ["ns", "elsewhere"])
def test_an_nvcf_partition_is_the_sum_of_its_owners_in_the_namespace(namespace: str) -> None:
    key = "dra.nvcf.nvidia.io/required-nvlink-domain-index"
    other = statefulset("other", 4, {}, **{key: "0"})
    other["metadata"]["namespace"] = namespace
    members = [owned("p0", "one", **{key: "0"})]
    (gang,) = gangs(members, [statefulset("one", 2, {}, **{key: "0"}), other])
    assert (gang.name, gang.floor) == ("ns/partition 0", 6 if namespace == "ns" else 2)
