"""A node as the planner sees it, and whether it admits a Pod at all.

Admission is what does not depend on who else is there: cordon, readiness, taints, nodeSelector and
required node affinity. How much room is left is another question (gangs/room.py). The rules are those
of kube-scheduler's NodeUnschedulable, TaintToleration and NodeAffinity filters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")  # int() also reads 1_000, which Go refuses
_BLOCKING_EFFECTS: Final = ("NoSchedule", "NoExecute")


class Blocker(StrEnum):
    """Why a node does not admit a Pod; the values are words of our sentences."""

    CORDONED = "cordoned"
    NOT_READY = "not ready"
    TAINTED = "tainted"
    SELECTOR = "excluded by the Pod's nodeSelector or node affinity"
    TIED = "out of reach of the Pod's volume or claim"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node (core/v1 Taint)."""

    key: str
    value: str
    effect: str


_CORDON: Final = Taint(_UNSCHEDULABLE_TAINT, "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a Pod (core/v1 Toleration); empty key or effect match all.

    Gt and Lt cover nothing: kube-scheduler reads them only with TaintTolerationComparisonOperators, which is
    alpha and off up to v1.36.
    """

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator == "Equal" and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One node selector requirement: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, value: str | None) -> bool:
        """Whether the label's value (None: the node lacks the label) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        have, bound = _int64(value or ""), _int64(self.values[0] if self.values else "")
        if have is None or bound is None:
            return False
        return have > bound if self.operator == "Gt" else have < bound


@dataclass(frozen=True, slots=True)
class Term:
    """A node selector term: all its requirements must hold; one with none matches nothing."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...] = ()

    def matches(self, node: "Node") -> bool:
        """Whether every requirement holds for the node (the only field known is metadata.name)."""
        if not self.labels and not self.fields:
            return False
        return all(r.holds(node.labels.get(r.key)) for r in self.labels) and all(
            r.key == "metadata.name" and r.holds(node.name) for r in self.fields
        )


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Shape:
    """All that Pods of one kind ask of a node: equal Pods share one Shape, compared by identity.

    requests: by resource name, cpu in millicores, memory in bytes (gangs/requests.py).
    terms: required node affinity, any of which must match; None where there is none.
    ties: for each volume or allocated claim that can't be used everywhere, where it can: any of its terms
    must match.
    """

    requests: Mapping[str, int]
    node_selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    ties: tuple[tuple[Term, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its labels, what it offers (allocatable, same units as requests), and its state."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True


def blocker(shape: Shape, node: Node) -> Blocker | None:
    """Why the node does not admit Pods of this shape, or None where it does."""
    if node.cordoned and not _tolerated(shape, _CORDON):
        return Blocker.CORDONED
    if not node.ready:
        return Blocker.NOT_READY
    if any(t.effect in _BLOCKING_EFFECTS and not _tolerated(shape, t) for t in node.taints):
        return Blocker.TAINTED
    if any(node.labels.get(key) != value for key, value in shape.node_selector):
        return Blocker.SELECTOR
    if shape.terms is not None and not any(term.matches(node) for term in shape.terms):
        return Blocker.SELECTOR
    return None if reaches(shape, node) else Blocker.TIED


def reaches(shape: Shape, node: Node) -> bool:
    """Whether all of the Pod's volumes and allocated claims can be used on the node."""
    return all(any(term.matches(node) for term in terms) for terms in shape.ties)


def _tolerated(shape: Shape, taint: Taint) -> bool:
    return any(t.tolerates(taint) for t in shape.tolerations)


def _int64(text: str) -> int | None:
    """The number as Go's strconv.ParseInt reads it, None where that fails."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
