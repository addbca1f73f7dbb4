"""Pods that exclude their equals on a node: which terms count, and what they do to a plan."""

from dataclasses import replace
from typing import Any

import pytest

from gangs.apart import apart
from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.planner import Boarding, place
from tests.builders import LEVEL, make_room

LABELS = {"app": "a", "tier": "gpu"}
SELF = {"matchLabels": {"app": "a"}}


def spec(selector: Any = SELF, key: str = "kubernetes.io/hostname", **rest: Any) -> dict[str, Any]:
    term = {"labelSelector": selector, "topologyKey": key, **rest}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(
    "mutual",
    [
        spec(),
        spec({}),
        spec({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
        spec({"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]}),
        spec(namespaces=["default"]),
    ],
)
def test_a_term_that_the_pod_itself_matches_counts(mutual: dict[str, Any]) -> None:
    assert list(apart("default", LABELS, mutual).values()) == [1]


@pytest.mark.parametrize(
    "other",
    [
        {},
        spec({"matchLabels": {"app": "b"}}),
        spec({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}),
        spec(key="topology.kubernetes.io/zone"),
        spec(namespaces=["others"]),
        spec(namespaceSelector={}),
    ],
)
def test_other_terms_are_left_to_kube_scheduler(other: dict[str, Any]) -> None:
    assert apart("default", LABELS, other) == {}


def test_the_same_term_in_another_namespace_excludes_nobody_here() -> None:
    assert apart("default", LABELS, spec()).keys() != apart("others", LABELS, spec()).keys()


def test_members_that_exclude_each_other_are_planned_one_a_node() -> None:
    room = make_room({"a": 3, "b": 5})
    shape = Shape({"nvidia.com/gpu": 1, "pods": 1, **apart("default", LABELS, spec())})
    boarding = Boarding(tuple(Candidate(f"u-{i}", shape) for i in range(4)), floor=4, required=LEVEL)
    placement = place(boarding, room)
    assert placement is not None
    assert (placement.domain, len(set(placement.nodes.values()))) == (("b",), 4)
    without = replace(shape, requests={"nvidia.com/gpu": 1, "pods": 1})
    members = tuple(replace(m, shape=without) for m in boarding.members)
    assert len(set(place(replace(boarding, members=members), room).nodes.values())) == 1  # type: ignore[union-attr]
