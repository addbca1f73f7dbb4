"""From API objects to values: real captured Pods, hostile annotations, equal shapes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender import wire
from gangs import contract
from gangs.nodes import Taint, Term
from gangs.notes import Note
from gangs.pods import Demand, Owner, Plan, Pod
from gangs.subgroups import Subgroup
from tests.builders import CLIQUE, FOREIGN_GATE, Json, node_object, pod_object

FIXTURES = Path(__file__).parent.parent / "fixtures" / "grove"
PLAN = Plan("a0", ("zone-1", "a"), 1234.5, "u-llm-0", "3")
TIMELESS = wire.plan_annotation(PLAN).replace("1234.5", '"soon"')
OURS = [value for name, value in vars(contract).items() if name.startswith("ANNOTATION")]


def captured(kind: str) -> list[Any]:
    """Every object of this kind in the captured files."""
    rows = []
    for path in sorted(FIXTURES.glob("*.yaml")):
        for document in filter(None, yaml.safe_load_all(path.read_text())):
            found = [obj for obj in document.get("items", [document]) if obj.get("kind") == kind]
            rows += [pytest.param(_as_json(o), id=f"{path.stem}/{o['metadata']['name']}") for o in found]
    return rows


def _as_json(obj: Any) -> Any:
    """YAML turns timestamps into dates; the API server sends text."""
    if isinstance(obj, dict):
        return {key: _as_json(value) for key, value in obj.items()}
    if isinstance(obj, list):
        return [_as_json(value) for value in obj]
    return obj.isoformat().replace("+00:00", "Z") if hasattr(obj, "isoformat") else obj


@pytest.mark.parametrize("obj", captured("Pod"))
def test_a_captured_pod_is_read(obj: Json) -> None:
    pod = wire.pod(obj)
    assert pod.uid == obj["metadata"]["uid"]
    assert pod.created > 1.6e9
    assert pod.shape.requests["pods"] == 1
    assert pod.owner is not None
    assert pod.owner.kind == "PodClique"
    assert pod.foreign_gates == tuple(g["name"] for g in obj["spec"].get("schedulingGates") or ())
    assert not pod.gated


def test_captured_pods_are_there() -> None:
    assert len(captured("Pod")) >= 3


def test_every_field_of_a_pod_that_matters_is_read() -> None:
    obj = pod_object(
        annotations={
            contract.ANNOTATION_MIN_MEMBER: "4",
            contract.ANNOTATION_SIZE: "6",
            contract.ANNOTATION_SIZE_FROM: "owner",
            contract.ANNOTATION_TOPOLOGY_REQUIRED: f"zone, {CLIQUE},",
            contract.ANNOTATION_TOPOLOGY_PREFERRED: " rack ",
            contract.ANNOTATION_SUBGROUPS: '[{"name": "workers", "minMember": 3}]',
            contract.ANNOTATION_MIN_SUBGROUP: "1",
            contract.ANNOTATION_AFTER: "base",
            contract.ANNOTATION_NOTES: '[{"message": "hello"}]',
            contract.ANNOTATION_PLAN: wire.plan_annotation(PLAN),
            contract.NVCF_INDEX: "0",
        },
        meta={
            "deletionTimestamp": "2026-01-01T00:00:09Z",
            "ownerReferences": [
                {"kind": "Node", "name": "x", "uid": "1"},
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "llm",
                    "uid": "2",
                    "controller": True,
                },
            ],
        },
        spec={
            "nodeName": "a1",
            "priority": 7,
            "schedulingGates": [{"name": contract.GATE}, {"name": FOREIGN_GATE}],
        },
        status={
            "nominatedNodeName": "a0",
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"},
            ],
        },
    )
    pod = wire.pod(obj)
    assert pod == Pod(
        uid="u-llm-0",
        namespace="default",
        name="llm-0",
        shape=pod.shape,
        scheduler=contract.SCHEDULER_NAME,
        gang="llm",
        node="a1",
        nominated="a0",
        terminating=True,
        gates=(contract.GATE, FOREIGN_GATE),
        created=wire.epoch("2026-01-01T00:00:00Z"),
        bound_at=wire.epoch("2026-01-01T00:00:05Z"),
        priority=7,
        owner=Owner("apps/v1", "StatefulSet", "llm", "2"),
        demand=Demand(
            min_member=4,
            size=6,
            size_from="owner",
            required=("zone", CLIQUE),
            preferred="rack",
            subgroups=(Subgroup("workers", 3),),
            min_subgroup=1,
            after="base",
            notes=(Note("hello"),),
        ),
        plan=PLAN,
        partition_index="0",
        ready=True,
        queue="default-queue",
        version="1",
    )


def test_a_bare_pod_is_read_too() -> None:
    pod = wire.pod({"metadata": {"uid": "u", "name": "n", "namespace": "ns"}, "spec": {"containers": []}})
    assert (pod.gang, pod.node, pod.priority, pod.created, pod.owner) == ("", "", 0, 0.0, None)
    assert pod.demand == Demand()


@pytest.mark.parametrize(
    ("phase", "terminal"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_ends_with_its_phase(phase: str, terminal: bool) -> None:
    assert wire.pod(pod_object(status={"phase": phase})).terminal == terminal


@pytest.mark.parametrize("text", ["", "0", "-1", "four", "4.0", " 4", "1e3", "²", "٤", "9" * 5000])
def test_a_floor_that_is_no_positive_number_counts_as_none(text: str) -> None:
    assert wire.pod(pod_object(annotations={contract.ANNOTATION_MIN_MEMBER: text})).demand.min_member is None


class TestPlan:
    """The plan annotation, which anybody may copy or write."""

    @pytest.mark.parametrize("domain", [(), ("a",), ("zone-1", "rack-2", "a")])
    def test_it_comes_back_as_it_was_written(self, domain: tuple[str, ...]) -> None:
        plan = Plan("a0", domain, 99.25, "u-llm-0", "3")
        pod = wire.pod(pod_object(annotations={contract.ANNOTATION_PLAN: wire.plan_annotation(plan)}))
        assert pod.valid_plan == plan

    def test_the_plan_of_another_pod_is_ignored(self) -> None:
        obj = pod_object(uid="u-other", annotations={contract.ANNOTATION_PLAN: wire.plan_annotation(PLAN)})
        assert wire.pod(obj).valid_plan is None

    @pytest.mark.parametrize(
        "garbage",
        [
            "",
            "{",
            "7",
            "[]",
            "null",
            '"x"',
            "{}",
            '{"node": "a0"}',
            wire.plan_annotation(PLAN).replace("1234.5", '"soon"'),
        ],
    )
    def test_what_is_no_plan_is_none(self, garbage: str) -> None:
        assert wire.pod(pod_object(annotations={contract.ANNOTATION_PLAN: garbage})).plan is None


@given(
    st.dictionaries(
        st.sampled_from([v for k, v in vars(contract).items() if k.startswith("ANNOTATION")]), st.text()
    )
)
def test_no_annotation_of_ours_however_written_stops_the_reading(annotations: dict[str, str]) -> None:
    assert wire.pod(pod_object(annotations=annotations)).name == "llm-0"


class TestShapes:
    """Equal Pods share one shape, which is how shapes are compared."""

    SPEC: Json = {  # noqa: RUF012
        "nodeSelector": {"b": "2", "a": "1"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists"},
            {"key": "x", "value": "y", "effect": "NoSchedule"},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                        {},
                    ]
                }
            }
        },
    }

    def test_equal_pods_have_the_same_shape(self) -> None:
        one = wire.pod(pod_object("x", spec=self.SPEC))
        two = wire.pod(pod_object("y", spec={**self.SPEC, "nodeSelector": {"a": "1", "b": "2"}}))
        assert one.shape is two.shape

    @pytest.mark.parametrize("field", ["nodeSelector", "tolerations", "affinity"])
    def test_pods_that_differ_in_what_they_ask_of_a_node_do_not(self, field: str) -> None:
        one, two = pod_object(spec=self.SPEC), pod_object(spec={**self.SPEC, field: None})
        assert wire.pod(one).shape is not wire.pod(two).shape

    def test_pods_that_ask_for_other_amounts_do_not(self) -> None:
        assert wire.pod(pod_object(gpus=4)).shape is not wire.pod(pod_object(gpus=2)).shape

    def test_all_that_admission_needs_is_in_the_shape(self) -> None:
        shape = wire.pod(pod_object(spec=self.SPEC)).shape
        assert shape.requests == {contract.GPU: 4, "pods": 1}
        assert shape.node_selector == (("a", "1"), ("b", "2"))
        assert shape.terms is not None
        assert [len(t.labels) + len(t.fields) for t in shape.terms] == [1, 1, 0]
        assert shape.terms[2] == Term(())
        assert [t.operator for t in shape.tolerations] == ["Exists", "Equal"]


class TestNode:
    """A Node."""

    def test_it_is_read(self) -> None:
        taints = [{"key": "k", "effect": "NoSchedule"}, {"key": "l", "value": "v", "effect": "NoExecute"}]
        node = wire.node(node_object("n", "a", spec={"taints": taints, "unschedulable": True}))
        assert node.labels == {CLIQUE: "a"}
        assert node.allocatable == {contract.GPU: 4, "cpu": 64_000, "memory": 512 * 2**30, "pods": 110}
        assert node.taints == (Taint("k", "", "NoSchedule"), Taint("l", "v", "NoExecute"))
        assert node.cordoned
        assert node.ready

    @pytest.mark.parametrize("status", ["False", "Unknown"])
    def test_it_is_ready_only_when_it_says_so(self, status: str) -> None:
        obj = node_object("n")
        obj["status"]["conditions"][0]["status"] = status
        assert not wire.node(obj).ready

    def test_one_that_has_said_nothing_yet_is_not_ready_and_offers_nothing(self) -> None:
        node = wire.node({"metadata": {"name": "n", "uid": "u"}})
        assert not node.ready
        assert node.allocatable == {}


def test_a_member_of_a_native_gang_is_no_member_of_ours_and_has_not_slipped_past_the_webhook() -> None:
    pod = wire.pod(pod_object(spec={"schedulingGroup": {"podGroupName": "native"}}))
    assert pod.gang == ""
    assert pod.opted_out
    assert wire.pod(pod_object()).gang == "llm"
