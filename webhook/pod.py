"""A Pod on its way in, and what owns it, as far as the webhook has to know them.

Values only: read from the wire (webhook/wire.py) and from the API server (webhook/lookup.py), judged by
the dialects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gangs import contract
from gangs.notes import Note


@dataclass(frozen=True, slots=True)
class Controller:
    """What a Pod's ownerReference says of its controller."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A Pod being created. It may have no name yet: then name is its generateName.

    raw: the JSON that the patch must fit.
    resources: names of everything that its containers and init containers request or limit.
    """

    raw: Mapping[str, Any]
    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    controller: Controller | None
    scheduler: str
    node: str
    natively_grouped: bool
    resources: frozenset[str]
    claims: bool

    @property
    def title(self) -> str:
        return f"pod {self.namespace}/{self.name}"

    @property
    def accelerated(self) -> bool:
        """Whether it asks for an NVIDIA device, or for any device by claim."""
        return self.claims or any(name.startswith(contract.NVIDIA_PREFIX) for name in self.resources)


@dataclass(frozen=True, slots=True)
class Owner:
    """The workload that a Pod belongs to: its controller, or for a ReplicaSet the Deployment above.

    size: members that it wants now, None where that is not known.
    most: members that it may ever have at one time (a Job's parallelism, however much of it is left).
    one_by_one: it creates a member only when the one before is ready, so no gang can be waited for.
    interchangeable: a Deployment or ReplicaSet, whose Pods need not know of one another.
    floor: members that must board at once, None for all of size.
    followed: the extender can read its live size from the Pods' controller.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    size: int | None = None
    most: int | None = None
    one_by_one: bool = False
    interchangeable: bool = False
    floor: int | None = None
    followed: bool = True

    @property
    def title(self) -> str:
        return f"{self.kind.lower()} {self.namespace}/{self.name}"

    @property
    def is_job(self) -> bool:
        return self.kind == "Job"


@dataclass(frozen=True, slots=True)
class Topology:
    """A KAI Topology: its levels from the widest to the narrowest, as (node label key, alias or "")."""

    name: str
    levels: tuple[tuple[str, str], ...]


def own_names(profiles: Sequence[str]) -> tuple[str, ...]:
    """Of the scheduler names served, those that nobody is given without asking: a Pod that has one asked."""
    return tuple(name for name in profiles if name != contract.DEFAULT_SCHEDULER_NAME)


def open_names(profiles: Sequence[str]) -> tuple[str, ...]:
    """The scheduler names that a Pod may have and be ours; with any other it is somebody else's."""
    return "", contract.DEFAULT_SCHEDULER_NAME, *own_names(profiles)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was looked up for one Pod.

    owner: None for a bare Pod, or one whose controller is of a kind that we don't know.
    topologies: every Topology there is, None where that could not be read (or nobody asked).
    failures: what could not be read and why, a clause each.
    undecided: the owner is there, but the API server was too busy to show it: nothing may be guessed.
    group: the PodGroup object that the Pod names, None where it names none or none was found.
    priority_class: the existing PriorityClass that labels name, "" for none.
    notes: what was found amiss.
    """

    owner: Owner | None
    namespace_labels: Mapping[str, str]
    topologies: tuple[Topology, ...] | None
    failures: tuple[str, ...] = ()
    undecided: bool = False
    group: Mapping[str, Any] | None = None
    priority_class: str = ""
    notes: tuple[Note, ...] = ()
