"""From API objects to the domain's values: Pods, Nodes, owners.

Every wire field that the extender reads is named here, once. Objects come from the API server, which
has validated them; annotations come from people and are read with suspicion.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from gangs import contract
from gangs.apart import apart
from gangs.durations import DurationError, seconds
from gangs.nodes import Node, Requirement, Shape, Taint, Term, Toleration
from gangs.notes import decode
from gangs.pods import Demand, DeviceClaim, Owner, Plan, Pod
from gangs.quantities import amount
from gangs.queues.amounts import RESOURCES, UNLIMITED, Amounts
from gangs.queues.tree import DEFAULT_PRIORITY, Queue
from gangs.requests import pod_requests
from gangs.subgroups import decode as subgroups
from gangs.subgroups import keys

Json = Mapping[str, Any]

_NUMBER: Final = re.compile(r"[0-9]{1,9}")  # int() raises for thousands of digits
_TERMINAL: Final = ("Succeeded", "Failed")
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

_shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()


def node(obj: Json) -> Node:
    """A core/v1 Node."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    allocatable = status.get("allocatable") or {}
    return Node(
        name=meta["name"],
        labels=meta.get("labels") or {},
        allocatable={name: amount(name, text) for name, text in allocatable.items()},
        taints=taints(spec.get("taints")),
        cordoned=bool(spec.get("unschedulable")),
        ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()),
    )


def pod(obj: Json) -> Pod:
    """A core/v1 Pod."""
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    native = "schedulingGroup" in spec  # kube-scheduler's own gangs: we stand aside, whatever its labels say
    gang = "" if native else labels.get(contract.LABEL_GANG, "")
    return Pod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        shape=_shape(meta["namespace"], labels, spec),
        scheduler=spec.get("schedulerName", ""),
        gang=gang,
        node=spec.get("nodeName", ""),
        nominated=status.get("nominatedNodeName", ""),
        terminal=status.get("phase") in _TERMINAL,
        succeeded=status.get("phase") == "Succeeded",
        terminating="deletionTimestamp" in meta,
        gates=tuple(g["name"] for g in spec.get("schedulingGates") or ()),
        created=epoch(meta.get("creationTimestamp", "")),
        bound_at=_scheduled_at(status),
        priority=spec.get("priority") or 0,
        owner=_controller(meta),
        demand=_demand(annotations, grove=contract.GROVE_PODGANG in labels),
        plan=_plan(annotations.get(contract.ANNOTATION_PLAN, "")),
        partition_index=annotations.get(contract.NVCF_INDEX, ""),
        queue=labels.get(contract.LABEL_QUEUE) or (contract.DEFAULT_QUEUE if gang else ""),
        claims=tuple(_claims(meta["name"], spec)) if spec.get("volumes") else (),
        device_claims=_device_claims(spec, status),
        covered=_covered(status),
        pod_group=annotations.get(contract.KAI_POD_GROUP, ""),
        opted_out=native or labels.get(contract.LABEL_WEBHOOK) == contract.WEBHOOK_IGNORE,
        ready=_holds(status, "Ready"),
        preempts=spec.get("preemptionPolicy") != "Never",
        preemptible=labels.get(contract.KAI_PREEMPTIBILITY) != contract.KAI_NON_PREEMPTIBLE,
        evicted_for=annotations.get(contract.ANNOTATION_EVICTED_FOR, ""),
        version=meta.get("resourceVersion", ""),
    )


def queue(obj: Json) -> Queue:
    """A scheduling.run.ai/v2 Queue. What it doesn't say is 0, and less than 0 is unlimited, as in KAI."""
    spec = obj.get("spec") or {}
    rows = [(spec.get("resources") or {}).get(resource) or {} for resource in RESOURCES]
    quota, limit = ([_most(row.get(key)) for row in rows] for key in ("quota", "limit"))
    priority = spec.get("priority")
    return Queue(
        name=obj["metadata"]["name"],
        parent=spec.get("parentQueue") or "",
        priority=DEFAULT_PRIORITY if priority is None else priority,
        quota=_in_our_units(quota),
        limit=_in_our_units(limit),
        weight=Amounts(*(max(0.0, row.get("overQuotaWeight") or 0.0) for row in rows)),
        preempt_min_seconds=_seconds(spec.get("preemptMinRuntime")),
        reclaim_min_seconds=_seconds(spec.get("reclaimMinRuntime")),
    )


def _seconds(duration: str | None) -> float | None:
    """A Go duration ("1h30m"); None where there is none, or it is none."""
    parts = _DURATION.findall(duration or "")
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _most(number: float | None) -> float:
    return UNLIMITED if number is not None and number < 0 else number or 0.0


def _in_our_units(amounts: list[float]) -> Amounts:
    gpu, cpu, megabytes = amounts
    return Amounts(gpu, cpu, megabytes * 10**6)


def plan_annotation(plan: Plan) -> str:
    """The plan annotation's value: one JSON object."""
    return orjson.dumps(
        {
            "node": plan.node,
            "domain": "/".join(plan.domain),
            "deadline": plan.deadline,
            "uid": plan.uid,
            "term": plan.term,
        }
    ).decode()


@lru_cache(maxsize=1024)
def epoch(timestamp: str) -> float:
    """Epoch seconds of an RFC 3339 time; 0 where there is none."""
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0


def _shape(namespace: str, labels: Mapping[str, str], spec: Json) -> Shape:
    """The Pod's shape; equal Pods get the same object, which is how shapes are compared."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    requests = pod_requests(spec) | apart(namespace, labels, spec)
    facts = (sorted(requests.items()), spec.get("nodeSelector"), required, spec.get("tolerations"))
    key = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)
    shape = _shapes.get(key)
    if shape is None:
        shape = _shapes[key] = Shape(
            requests=requests,
            node_selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=None if required is None else selector_terms(required.get("nodeSelectorTerms") or ()),
            tolerations=tolerations(spec.get("tolerations")),
        )
    return shape


def selector_terms(terms: Iterable[Json]) -> tuple[Term, ...]:
    """The terms of a core/v1 NodeSelector."""
    return tuple(
        Term(_requirements(t.get("matchExpressions") or ()), _requirements(t.get("matchFields") or ()))
        for t in terms
    )


def _requirements(rows: Iterable[Json]) -> tuple[Requirement, ...]:
    return tuple(Requirement(r["key"], r["operator"], tuple(r.get("values") or ())) for r in rows)


def taints(rows: Iterable[Json] | None) -> tuple[Taint, ...]:
    """Taints of a Node or of a device."""
    return tuple(Taint(t["key"], t.get("value", ""), t.get("effect", "")) for t in rows or ())


def tolerations(rows: Iterable[Json] | None) -> tuple[Toleration, ...]:
    """Tolerations of a Pod or of a request for devices."""
    return tuple(
        Toleration(r.get("key", ""), r.get("operator") or "Equal", r.get("value", ""), r.get("effect", ""))
        for r in rows or ()
    )


def _scheduled_at(status: Json) -> float:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return epoch(condition.get("lastTransitionTime") or "")
    return 0.0


def _holds(status: Json, kind: str) -> bool:
    return any(row["type"] == kind and row["status"] == "True" for row in status.get("conditions") or ())


def _claims(pod: str, spec: Json) -> Iterator[str]:
    """Its PersistentVolumeClaims; that of an ephemeral volume is named after Pod and volume."""
    for volume in spec["volumes"]:
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod}-{volume['name']}"


def _device_claims(spec: Json, status: Json) -> tuple[DeviceClaim, ...]:
    """Its ResourceClaims; those made from a template are named in the status once they exist."""
    made = {r["name"]: r.get("resourceClaimName", "") for r in status.get("resourceClaimStatuses") or ()}
    extended = status.get("extendedResourceClaimStatus")
    own = tuple(
        DeviceClaim(
            r.get("resourceClaimName") or made.get(r["name"], ""), r.get("resourceClaimTemplateName", "")
        )
        for r in spec.get("resourceClaims") or ()
    )
    return (*own, DeviceClaim(extended["resourceClaimName"])) if extended else own


def _covered(status: Json) -> tuple[str, ...]:
    """Extended resources for which kube-scheduler has made a claim (KEP-5004)."""
    extended = status.get("extendedResourceClaimStatus") or {}
    return tuple(sorted({r["resourceName"] for r in extended.get("requestMappings") or ()}))


def _controller(meta: Json) -> Owner | None:
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(owner["apiVersion"], owner["kind"], owner["name"], owner["uid"])
    return None


def _demand(annotations: Json, *, grove: bool) -> Demand:
    return Demand(
        min_member=_positive(annotations.get(contract.ANNOTATION_MIN_MEMBER)),
        size=_positive(annotations.get(contract.ANNOTATION_SIZE)),
        size_from=annotations.get(contract.ANNOTATION_SIZE_FROM, ""),
        required=keys(annotations.get(contract.ANNOTATION_TOPOLOGY_REQUIRED, "")),
        preferred="".join(keys(annotations.get(contract.ANNOTATION_TOPOLOGY_PREFERRED, ""))[-1:]),
        subgroups=subgroups(annotations.get(contract.ANNOTATION_SUBGROUPS, "")),
        min_subgroup=_positive(annotations.get(contract.ANNOTATION_MIN_SUBGROUP)),
        after=annotations.get(contract.ANNOTATION_AFTER, ""),
        staleness=None if grove else _period(annotations.get(contract.ANNOTATION_STALENESS, "")),
        notes=decode(annotations.get(contract.ANNOTATION_NOTES, "")),
    )


def _period(text: str) -> float | None:
    try:
        period = seconds(text) if text else -1.0
    except DurationError:
        return None
    return period if period >= 0 else None


def _positive(text: str | None) -> int | None:
    return (int(text) or None) if text and _NUMBER.fullmatch(text) else None


def _plan(value: str) -> Plan | None:
    try:
        row = orjson.loads(value) if value else None
        if row is None:
            return None
        domain = tuple(str(row["domain"]).split("/")) if row["domain"] else ()
        return Plan(str(row["node"]), domain, float(row["deadline"]), str(row["uid"]), str(row["term"]))
    except (ValueError, TypeError, KeyError):
        return None
