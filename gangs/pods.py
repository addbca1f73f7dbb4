"""A Pod as the extender sees it: the facts that planning and permits need, nothing of the wire."""

from dataclasses import dataclass

from gangs.contract import GATE
from gangs.nodes import Shape
from gangs.notes import Note
from gangs.room import Level
from gangs.subgroups import Subgroup

GangKey = tuple[str, str]
"""Namespace and gang label."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of a Pod."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Demand:
    """What a Pod's canonical annotations ask for its gang (gangs/contract.py).

    min_member, size: None where the annotation is missing or no number.
    subgroups: the path from the gang down to the Pod's own, () for a gang without subgroups.
    min_subgroup: how many of the outermost subgroups must be whole, None for all that there are.
    after: the gang label of one that must be aboard before this gang may board, "" for none.
    staleness: seconds that the gang may run on below its floor, None for ever.
    """

    min_member: int | None = None
    size: int | None = None
    size_from: str = ""
    required: Level = ()
    preferred: str = ""
    subgroups: tuple[Subgroup, ...] = ()
    min_subgroup: int | None = None
    after: str = ""
    staleness: float | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan annotation: where this very Pod (uid) was to board, and until when (epoch seconds)."""

    node: str
    domain: tuple[str, ...]
    deadline: float
    uid: str
    term: str


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim of a Pod. name: "" until one is made from the template; template: "" without one."""

    name: str
    template: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A Pod at one moment.

    gang: the gang label, "" for a loose Pod. node, nominated: "" while there is none.
    created, bound_at: epoch seconds; bound_at is 0 while unbound.
    partition_index: the raw NVCF annotation, "" without one.
    claims: names of its PersistentVolumeClaims. device_claims: its ResourceClaims; one may have been made by
    kube-scheduler to stand for its extended resources, named in covered.
    queue: the queue on whose account it is, "" for none. pod_group: the PodGroup of KAI's that it names.
    opted_out: whether it tells the webhook to leave it alone.
    ready: whether its condition Ready holds.
    preempts: whether others may be evicted for it. preemptible: whether it may be evicted for others.
    evicted_for: the gang for which it is being evicted, "" for none.
    version: the API server's resourceVersion, a precondition of our writes.
    """

    uid: str
    namespace: str
    name: str
    shape: Shape
    scheduler: str = ""
    gang: str = ""
    node: str = ""
    nominated: str = ""
    terminal: bool = False
    succeeded: bool = False
    terminating: bool = False
    gates: tuple[str, ...] = ()
    created: float = 0.0
    bound_at: float = 0.0
    priority: int = 0
    owner: Owner | None = None
    demand: Demand = Demand()
    plan: Plan | None = None
    partition_index: str = ""
    claims: tuple[str, ...] = ()
    device_claims: tuple[DeviceClaim, ...] = ()
    covered: tuple[str, ...] = ()
    queue: str = ""
    pod_group: str = ""
    opted_out: bool = False
    ready: bool = False
    preempts: bool = True
    preemptible: bool = True
    evicted_for: str = ""
    version: str = ""

    @property
    def claim_names(self) -> frozenset[str]:
        """Names of all its claims, and of the templates that some of them are made from."""
        devices = (name for claim in self.device_claims for name in (claim.name, claim.template) if name)
        return frozenset((*self.claims, *devices))

    @property
    def key(self) -> GangKey:
        """The gang's key; meaningful only where gang is set."""
        return self.namespace, self.gang

    @property
    def gated(self) -> bool:
        """Whether our own gate is still on."""
        return GATE in self.gates

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """Gates of others: until they fall, the Pod isn't here yet."""
        return tuple(g for g in self.gates if g != GATE)

    @property
    def live(self) -> bool:
        """Whether the Pod counts as a member: neither finished nor on its way out.

        Who is being evicted for others is on its way out already: else whoever replaces the first of a gang
        that has to go whole would board beside the last.
        """
        return not self.terminal and not self.terminating and not self.evicted_for

    @property
    def seated(self) -> bool:
        """Whether it takes room on its node (terminating Pods do until they are gone)."""
        return bool(self.node) and not self.terminal

    @property
    def valid_plan(self) -> Plan | None:
        """The plan, where it was written for this very Pod; users can copy annotations."""
        return self.plan if self.plan and self.plan.uid == self.uid else None

    def planned_by_others(self, before: "Pod | None", term: str) -> bool:
        """Whether another instance of us has planned it since before; term: the one in which we lead.

        A plan that was there before is of a term that is over, and about to be replaced.
        """
        plan = self.valid_plan
        known = before.valid_plan if before else None
        return plan is not None and plan != known and plan.term != term
