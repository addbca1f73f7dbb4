"""What the PodGroup (scheduling.run.ai/v2alpha2) of a gang says: pure, a gang in, objects out.

The names are KAI's where KAI would make one per owner (pg-OWNER-UID), so that what people have written down
still finds it. status.conditions is what every version of the kind keeps; phase and counts are fields that
only our own definition has, and the API server drops them silently elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from extender.views import GangView, Phase
from gangs import contract, sentences
from gangs.identity import object_name
from gangs.muster import Muster
from gangs.pods import Pod
from gangs.ports import port_of
from gangs.reasons import Reason

Json = dict[str, Any]

API_VERSION: Final = "scheduling.run.ai/v2alpha2"
KIND: Final = "PodGroup"
MANAGED: Final = {"app.kubernetes.io/managed-by": "allaboard"}

GATHERED: Final = "Gathered"
BOARDED: Final = "Boarded"

_MOST_OWNERS: Final = 10  # bare Pods that are named as owners of their group
_MAX_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class Facts:
    """What is written of a gang; equal facts need no write.

    spec: of a PodGroup that we made. conditions: (type, status, reason, message).
    """

    spec: Mapping[str, Any]
    counts: Mapping[str, Any]
    conditions: tuple[tuple[str, str, str, str], ...]


def group_name(gang: Muster) -> str:
    """Of the PodGroup that all members name, else as KAI would name it, else after the gang label."""
    named = {pod.pod_group for pod in gang.everyone}
    if len(named) == 1 and (name := named.pop()):
        return name
    if gang.owner and len(name := f"pg-{gang.owner.name}-{gang.owner.uid}") <= _MAX_NAME:
        return name
    return object_name(gang.key[1])


def gone() -> Facts:
    """What there is to say of a group whose gang has no member any more."""
    nobody = ("False", "MembersMissing", "No member is here.")
    return Facts({}, {}, ((GATHERED, *nobody), (BOARDED, *nobody)))


def named_by_members(gang: Muster) -> bool:
    """Whether the members name a PodGroup themselves: then only its author may create it."""
    return any(pod.pod_group for pod in gang.everyone)


def facts(gang: Muster, view: GangView) -> Facts:
    """What there is to say of the gang now."""
    spec = {"minMember": gang.floor, "queue": _queue(gang.everyone), "topologyConstraint": _constraint(gang)}
    counts = {
        "phase": view.phase.value,
        "members": view.here,
        "bound": view.bound,
        "domain": "/".join(view.domain),
        "resourcesStatus": {"requested": _sum(gang.everyone), "allocated": _sum(gang.bound)},
    }
    return Facts({k: v for k, v in spec.items() if v}, counts, _conditions(gang, view))


def created(name: str, gang: Muster, told: Facts) -> Json:
    """The PodGroup of a gang that has none yet."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": gang.key[0],
            "labels": {**MANAGED, contract.LABEL_GANG: gang.key[1]},
            "ownerReferences": _owners(gang),
        },
        "spec": dict(told.spec),
    }


def status(told: Facts, before: Iterable[Json], now: float, *, adopted: bool) -> Json:
    """The status after this. before: its conditions so far; those of other types stay as they are.

    adopted: somebody else has made it, so that conditions are all that we write.
    """
    old = {row.get("type"): row for row in before}
    ours = {row[0]: _condition(row, old.get(row[0]), now) for row in told.conditions}
    conditions = [*(row for kind, row in old.items() if kind not in ours), *ours.values()]
    return {"conditions": conditions} if adopted else {**told.counts, "conditions": conditions}


def _conditions(gang: Muster, view: GangView) -> tuple[tuple[str, str, str, str], ...]:
    here = len(gang.ready) + len(gang.bound)
    gathered = here >= gang.floor
    count = f"{here} of {gang.floor} members are here."
    reason, message = _standing(gang, view)
    aboard = view.phase is Phase.ABOARD
    return (
        (GATHERED, str(gathered), "MembersHere" if gathered else "MembersMissing", count),
        (BOARDED, str(aboard), reason, message),
    )


def _standing(gang: Muster, view: GangView) -> tuple[str, str]:
    if view.reason:
        return view.reason, view.message
    if view.phase is Phase.ABOARD:
        return Reason.BOARDED, sentences.boarded(gang, view.domain)
    return Reason.GRANTED, sentences.granted(gang, view.domain, len(gang.ready))


def _condition(row: tuple[str, str, str, str], before: Json | None, now: float) -> Json:
    kind, state, reason, message = row
    since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if before and before.get("status") == state:
        since = before.get("lastTransitionTime") or since
    return {
        "type": kind,
        "status": state,
        "reason": str(reason),
        "message": message,
        "lastTransitionTime": since,
    }


def _owners(gang: Muster) -> list[Json]:
    """The common controller, else members: when the last of them is gone, so is the group."""
    if gang.owner:
        owner = gang.owner
        return [_reference(owner.api_version, owner.kind, owner.name, owner.uid)]
    return [_reference("v1", "Pod", pod.name, pod.uid) for pod in gang.everyone[:_MOST_OWNERS]]


def _reference(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def _queue(pods: Iterable[Pod]) -> str:
    return next((pod.queue for pod in pods if pod.queue), "")


def _constraint(gang: Muster) -> Json:
    levels = {
        "requiredTopologyLevel": gang.required[-1] if gang.required else "",
        "preferredTopologyLevel": gang.preferred,
    }
    return {key: level for key, level in levels.items() if level}


def _sum(pods: Iterable[Pod]) -> dict[str, str]:
    """What these Pods request, as Kubernetes quantities."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, value in pod.shape.requests.items():
            total[name] = total.get(name, 0) + value
    shown = (name for name in sorted(total) if name != "pods" and not port_of(name))
    return {name: f"{total[name]}m" if name == "cpu" else str(total[name]) for name in shown}
