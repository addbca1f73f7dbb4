"""Which nodes admit a Pod at all: NodeUnschedulable, TaintToleration and NodeAffinity, case by case."""

import pytest

from gangs.nodes import Blocker, Requirement, Shape, Taint, Term, Toleration, blocker
from tests.builders import make_node

GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
CORDON_KEY = "node.kubernetes.io/unschedulable"


def with_terms(*terms: Term) -> Shape:
    return Shape({"pods": 1}, terms=terms)


def zone_in(*zones: str) -> Requirement:
    return Requirement("zone", "In", zones)


@pytest.mark.parametrize(
    ("operator", "values", "label", "holds"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a", "b"), "c", False),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), "b", True),
        ("NotIn", ("a",), "a", False),
        ("NotIn", ("a",), None, True),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), "ten", False),
        ("Gt", ("5",), None, False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), "5", False),
        ("Lt", (), "4", False),
        ("Near", ("a",), "a", False),
    ],
)
def test_a_requirement_holds_as_its_operator_says(
    operator: str, values: tuple[str, ...], label: str | None, holds: bool
) -> None:
    node = make_node("n", labels={} if label is None else {"zone": label})
    refused = blocker(with_terms(Term((Requirement("zone", operator, values),))), node)
    assert refused == (None if holds else Blocker.SELECTOR)


def test_all_requirements_of_a_term_must_hold() -> None:
    shape = with_terms(Term((zone_in("a"), Requirement("disk", "Exists", ()))))
    assert blocker(shape, make_node("n", labels={"zone": "a", "disk": "ssd"})) is None
    assert blocker(shape, make_node("n", labels={"zone": "a"})) is Blocker.SELECTOR


def test_one_matching_term_of_several_is_enough() -> None:
    shape = with_terms(Term((zone_in("a"),)), Term((zone_in("b"),)))
    assert blocker(shape, make_node("n", labels={"zone": "b"})) is None
    assert blocker(shape, make_node("n", labels={"zone": "c"})) is Blocker.SELECTOR


def test_an_empty_term_and_an_empty_list_of_terms_match_nothing() -> None:
    node = make_node("n")
    assert blocker(with_terms(Term(())), node) is Blocker.SELECTOR
    assert blocker(with_terms(), node) is Blocker.SELECTOR
    assert (
        blocker(with_terms(Term(()), Term((), (Requirement("metadata.name", "In", ("n",)),))), node) is None
    )


@pytest.mark.parametrize(
    ("field", "operator", "name", "admitted"),
    [
        ("metadata.name", "In", "n", True),
        ("metadata.name", "In", "other", False),
        ("metadata.name", "NotIn", "n", False),
        ("metadata.name", "NotIn", "other", True),
        ("metadata.uid", "In", "n", False),
    ],
)
def test_match_fields_know_the_name_of_the_node_only(
    field: str, operator: str, name: str, admitted: bool
) -> None:
    shape = with_terms(Term((), (Requirement(field, operator, (name,)),)))
    assert (blocker(shape, make_node("n")) is None) == admitted


def test_labels_and_fields_of_one_term_must_both_match() -> None:
    shape = with_terms(Term((zone_in("a"),), (Requirement("metadata.name", "In", ("n",)),)))
    assert blocker(shape, make_node("n", labels={"zone": "a"})) is None
    assert blocker(shape, make_node("m", labels={"zone": "a"})) is Blocker.SELECTOR


def test_a_node_selector_wants_every_label() -> None:
    shape = Shape({"pods": 1}, node_selector=(("disk", "ssd"), ("zone", "a")))
    assert blocker(shape, make_node("n", labels={"zone": "a", "disk": "ssd"})) is None
    assert blocker(shape, make_node("n", labels={"zone": "a"})) is Blocker.SELECTOR


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        (Toleration("nvidia.com/gpu", "Exists", "", ""), True),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule"), True),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoExecute"), False),
        (Toleration("nvidia.com/gpu", "Equal", "present", "NoSchedule"), True),
        (Toleration("nvidia.com/gpu", "Equal", "absent", "NoSchedule"), False),
        (Toleration("amd.com/gpu", "Exists", "", ""), False),
        (Toleration("", "Exists", "", ""), True),
    ],
)
def test_a_taint_keeps_away_whoever_does_not_tolerate_it(toleration: Toleration, admitted: bool) -> None:
    shape = Shape({"pods": 1}, tolerations=(toleration,))
    refused = blocker(shape, make_node("n", taints=[GPU_TAINT]))
    assert refused == (None if admitted else Blocker.TAINTED)


def test_every_blocking_taint_needs_a_toleration_of_its_own() -> None:
    shape = Shape({"pods": 1}, tolerations=(Toleration("nvidia.com/gpu", "Exists", "", ""),))
    node = make_node("n", taints=[GPU_TAINT, Taint("maintenance", "", "NoExecute")])
    assert blocker(shape, node) is Blocker.TAINTED


def test_a_taint_that_only_prefers_others_blocks_nobody() -> None:
    node = make_node("n", taints=[Taint("slow", "", "PreferNoSchedule")])
    assert blocker(Shape({"pods": 1}), node) is None


def test_a_cordoned_node_admits_only_who_tolerates_the_cordon() -> None:
    node = make_node("n", cordoned=True, taints=[Taint(CORDON_KEY, "", "NoSchedule")])
    assert blocker(Shape({"pods": 1}), node) is Blocker.CORDONED
    tolerant = Shape({"pods": 1}, tolerations=(Toleration(CORDON_KEY, "Exists", "", "NoSchedule"),))
    assert blocker(tolerant, node) is None


def test_a_node_that_is_not_ready_admits_nobody() -> None:
    everything = Shape({"pods": 1}, tolerations=(Toleration("", "Exists", "", ""),))
    assert blocker(everything, make_node("n", ready=False)) is Blocker.NOT_READY


@pytest.mark.parametrize("value", ["1_000", "9223372036854775808", "1.5", ""])
def test_gt_and_lt_refuse_what_go_reads_as_no_64_bit_integer(value: str) -> None:
    assert not Requirement("rank", "Gt", ("1",)).holds(value)
    assert not Requirement("rank", "Lt", ("99999",)).holds(value)


@pytest.mark.parametrize("operator", ["Gt", "Lt", "Near"])
def test_a_toleration_by_an_operator_that_kube_scheduler_has_switched_off_covers_nothing(
    operator: str,
) -> None:
    tolerations = (Toleration(GPU_TAINT.key, operator, GPU_TAINT.value, ""),)
    shape = Shape({"pods": 1}, tolerations=tolerations)
    assert blocker(shape, make_node("n", taints=[GPU_TAINT])) is Blocker.TAINTED
