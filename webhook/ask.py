"""What a workload asks for, in words common to all dialects.

A dialect turns a Pod and its surroundings into an Ask; render.py turns the Ask into a patch. Nothing
about KAI, NVCF or any other dialect goes past this point.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gangs.notes import Note
from gangs.subgroups import Subgroup


@dataclass(frozen=True, slots=True)
class Colocation:
    """Be in one domain with the Pods that selector (a LabelSelector) names.

    required: always; else with weight 100.
    """

    level: str
    selector: Mapping[str, Any]
    required: bool


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang's name (the label's value) and how many there are of it.

    min_member: members that must board at once.
    size: members wanted in all.
    size_from: where both are read from while the gang lives, "" if they are as said here.
    required, preferred: node label keys of the levels, widest first.
    subgroups: the path from the gang down to the Pod's own subgroup, outermost first.
    min_subgroup: how many of the outermost subgroups must be whole, None for all that there are.
    after: the label of a gang that must be aboard before this one may board, "" for none.
    """

    label: str
    min_member: int = 1
    size: int = 1
    size_from: str = ""
    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    subgroups: tuple[Subgroup, ...] = ()
    min_subgroup: int | None = None
    after: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the workload asks for.

    gang: None where each Pod is placed by itself and need not wait.
    exists: labels that a node must have.
    labels: more labels for the Pod.
    priority_class: the PriorityClass that the Pod shall have, where it exists; "" leaves it as it is.
    verbatim: canonical annotations kept as their author wrote them, whether or not they are understood.
    """

    gang: Gang | None = None
    exists: tuple[str, ...] = ()
    colocations: tuple[Colocation, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    priority_class: str = ""
    verbatim: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
