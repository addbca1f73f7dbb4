"""What the planner is asked for a gang: its unseated members, and where the others sit or were to sit.

After a restart (restarted) the plans on the Pods still say where members were to go and until when; memory
says it otherwise.
"""

from collections.abc import Callable, Iterable

from extender.store import PermitStore
from gangs.muster import Muster
from gangs.nodes import Node, Shape
from gangs.packing import Candidate
from gangs.parts import Part, Site
from gangs.planner import Boarding, Placement
from gangs.pods import Pod
from gangs.room import Domain, Room, domain_of


class Asking:
    """Puts questions to the planner together."""

    def __init__(
        self, room: Room, store: PermitStore, shape: Callable[[Pod], Shape], clock: Callable[[], float]
    ) -> None:
        self.restarted = True
        self._room = room
        self._store = store
        self._shape = shape
        self._clock = clock

    def boarding(self, gang: Muster) -> Boarding:
        """What the planner is asked for the gang's unseated members."""
        permit = self._store.permit(gang.key)
        unseated = [p for p in gang.ready if p.uid not in permit.seats]
        settled = [p.node for p in gang.bound + gang.leaving] + list(permit.seats.values())
        nodes = self._known(settled)
        domains = {domain_of(n, gang.required) for n in nodes} if gang.required else set()
        domains |= _planned_domains(gang) if domains == {None} else set()
        near = {n.labels.get(gang.preferred, "") for n in nodes} if gang.preferred else set()
        parts = gang.subgroups and (gang.subgroups.relaxed() if gang.aboard else gang.subgroups)
        return Boarding(
            members=tuple(Candidate(p.uid, self._shape(p)) for p in unseated),
            floor=gang.missing or 1,
            required=gang.required,
            preferred=gang.preferred,
            anchors=frozenset(d for d in domains if d is not None),
            near=frozenset(near - {""}),
            outlook=max(len(unseated) + len(gang.gated), gang.size - len(gang.bound) - len(permit.seats)),
            avoid=self._store.avoided(gang.key),
            hints=self.hints(unseated),
            whole=parts,
            sites=self._sites(gang) if parts else {},
            only_floor=parts is not None and not gang.aboard,
        )

    def _sites(self, gang: Muster) -> dict[str, Site]:
        """Where members of each subgroup sit, or are to sit."""
        seats = self._store.permit(gang.key).seats
        seated = {p.uid: p.node for p in gang.bound + gang.leaving} | dict(seats)
        return {
            part.name: _site(part, self._known(nodes))
            for part in (gang.subgroups.everything if gang.subgroups else ())
            if (nodes := [seated[uid] for uid in part.members & seated.keys()])
        }

    def _known(self, names: Iterable[str]) -> list[Node]:
        return [node for name in names if (node := self._room.with_lost_labels(name))]

    def hints(self, pods: Iterable[Pod]) -> dict[str, str]:
        """After a restart: where an earlier plan, still in force, had put these members."""
        now = self._clock()
        plans = ((p.uid, p.valid_plan) for p in pods) if self.restarted else ()
        return {uid: plan.node for uid, plan in plans if plan and plan.deadline > now}

    def earlier_deadline(self, gang: Muster, placement: Placement) -> float | None:
        """The deadline of the same plan made before a restart; another plan begins afresh."""
        if not self.restarted:
            return None
        plans = [(p.valid_plan, placement.nodes.get(p.uid)) for p in gang.ready]
        same = [plan for plan, node in plans if plan and plan.node == node and plan.deadline > self._clock()]
        return (
            min((plan.deadline for plan in same), default=None) if len(same) == len(placement.nodes) else None
        )


def _planned_domains(gang: Muster) -> set[Domain | None]:
    """Where its plans had put it: after a restart nobody remembers labels that were lost before."""
    plans = [p.valid_plan for p in gang.bound]
    return {plan.domain for plan in plans if plan and len(plan.domain) == len(gang.required)}


def _site(part: Part, nodes: Iterable[Node]) -> Site:
    domains = {domain_of(node, part.required) for node in nodes} if part.required else set()
    near = {node.labels.get(part.preferred, "") for node in nodes} if part.preferred else set()
    return Site(frozenset(d for d in domains if d is not None), frozenset(near - {""}))
