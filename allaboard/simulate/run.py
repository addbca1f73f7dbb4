"""What would become of a gang on a cluster, both read from files.

cluster.yaml ──► Room          gang.yaml ──► Pods ──► gangs ──► place(), shortages()
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allaboard.errors import UserError
from allaboard.manifests import Manifest, load
from allaboard.simulate.members import KINDS, members
from allaboard.simulate.models import parsed
from extender import wire
from gangs.muster import Muster, muster
from gangs.packing import Candidate
from gangs.planner import Boarding, Placement, place, shortages
from gangs.pods import GangKey, Pod
from gangs.room import Room, Seat
from gangs.sentences import held
from gangs.shortage import Shortage
from webhook import read
from webhook.pod import Topology


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a gang boards (None: nowhere), which domains can't take it, and what stops it anywhere."""

    gang: Muster
    placement: Placement | None
    rejected: list[Shortage]
    held: str = ""


def simulate(cluster: Path, gang: Path) -> list[Outcome]:
    """Place the gangs of one file, in the order of their names, on the cluster of the other."""
    here, wanted = load([cluster]), load([gang])
    room, topologies = _room(here), _topologies([*here, *wanted])
    pods = [pod for m in wanted if m.kind != "Topology" for pod in _pods(m, topologies)]
    if not pods:
        raise UserError(f"{gang}: no workload in it (allowed: {', '.join(KINDS)})")
    return [_board(found, room) for found in _gangs(pods)]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """For -o json."""
    found = outcome.placement
    names = {p.uid: p.name for p in outcome.gang.ready}
    return {
        "gang": outcome.gang.name,
        "floor": outcome.gang.floor,
        "placed": found is not None,
        "domain": list(found.domain) if found else None,
        "nodes": {names[uid]: node for uid, node in found.nodes.items()} if found else {},
        "held": outcome.held,
        "rejected": [
            {"domain": list(s.domain), "have": s.have, "need": s.need, "blockers": dict(s.blockers)}
            for s in outcome.rejected
        ],
    }


def as_text(outcome: Outcome) -> str:
    """The plan and each rejected domain, a line each."""
    told = as_json(outcome)
    where = "/".join(told["domain"] or ()) or "the whole cluster"
    lines = [
        f"Gang {told['gang']} boards {where}:" if told["placed"] else f"Gang {told['gang']} finds no room."
    ]
    lines = [outcome.held] if outcome.held else lines
    lines += [f"  {pod} -> {node}" for pod, node in told["nodes"].items()]
    return "\n".join([*lines, *(_rejection(s) for s in outcome.rejected)])


def _rejection(found: Shortage) -> str:
    why = (
        ", ".join(f"{number} {words}" for words, number in found.blockers) or "mixed sizes don't fit together"
    )
    return f"  not {'/'.join(found.domain) or 'the whole cluster'}: has {found.have} of {found.need} ({why})"


def _room(manifests: Iterable[Manifest]) -> Room:
    room = Room()
    for manifest in manifests:
        if manifest.kind == "Node":
            room.put_node(parsed(manifest, wire.node))
        elif manifest.kind == "Pod":
            pod = parsed(manifest, lambda body: wire.pod(_complete(body)))
            if pod.node and not pod.terminal:
                room.take(pod.uid, Seat(pod.node, pod.shape.requests, pod.name))
    return room


def _pods(manifest: Manifest, topologies: tuple[Topology, ...]) -> list[Pod]:
    return [wire.pod(_complete(pod)) for pod in members(manifest, topologies)]


def _complete(body: Mapping[str, Any]) -> dict[str, Any]:
    """Written by hand, a Pod has neither UID nor namespace."""
    meta = body["metadata"]
    placed = {"namespace": "default", "uid": f"{meta.get('namespace', 'default')}/{meta['name']}"}
    return {**body, "metadata": {**placed, **meta}}


def _topologies(manifests: Iterable[Manifest]) -> tuple[Topology, ...]:
    found = (
        parsed(m, lambda body: read.topologies({"items": [body]})) for m in manifests if m.kind == "Topology"
    )
    return tuple(topology for one in found for topology in one)


def _gangs(pods: Iterable[Pod]) -> list[Muster]:
    groups: dict[GangKey, list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[(pod.namespace, pod.gang or pod.name)].append(pod)
    return [found for key in sorted(groups) if (found := muster(key, groups[key]))]


def _board(gang: Muster, room: Room) -> Outcome:
    if any(note.blocking for note in gang.notes):
        return Outcome(gang, None, [], held(gang))
    ready = tuple(Candidate(p.uid, p.shape) for p in gang.ready)
    if not gang.whole:
        return Outcome(gang, None, [], f"Gang {gang.name}: {len(ready)} of {gang.floor} members are here.")
    boarding = Boarding(
        ready, gang.floor, gang.required, gang.preferred, outlook=gang.size, whole=gang.subgroups
    )
    outcome = Outcome(gang, place(boarding, room), shortages(boarding, room))
    for pod in gang.ready:
        if outcome.placement and (node := outcome.placement.nodes.get(pod.uid)):
            room.take(pod.uid, Seat(node, pod.shape.requests, pod.name))
    return outcome
