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
from gangs.nodes import Node, Requirement, Shape, Taint, Term, Toleration
from gangs.notes import decode
from gangs.pods import Demand, Owner, Plan, Pod
from gangs.quantities import amount
from gangs.requests import pod_requests
from gangs.subgroups import decode as subgroups
from gangs.subgroups import keys

Json = Mapping[str, Any]

_NUMBER: Final = re.compile(r"[0-9]{1,9}")  # int() raises for thousands of digits
_TERMINAL: Final = ("Succeeded", "Failed")

_shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()


def node(obj: Json) -> Node:
    """A core/v1 Node."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    allocatable = status.get("allocatable") or {}
    return Node(
        name=meta["name"],
        labels=meta.get("labels") or {},
        allocatable={name: amount(name, text) for name, text in allocatable.items()},
        taints=tuple(
            Taint(t["key"], t.get("value", ""), t.get("effect", "")) for t in spec.get("taints") or ()
        ),
        cordoned=bool(spec.get("unschedulable")),
        ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()),
    )


def pod(obj: Json) -> Pod:
    """A core/v1 Pod."""
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    native = "schedulingGroup" in spec  # kube-scheduler's own gangs: we stand aside, whatever its labels say
    return Pod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        shape=_shape(spec),
        scheduler=spec.get("schedulerName", ""),
        gang="" if native else labels.get(contract.LABEL_GANG, ""),
        node=spec.get("nodeName", ""),
        nominated=status.get("nominatedNodeName", ""),
        terminal=status.get("phase") in _TERMINAL,
        terminating="deletionTimestamp" in meta,
        gates=tuple(g["name"] for g in spec.get("schedulingGates") or ()),
        created=epoch(meta.get("creationTimestamp", "")),
        bound_at=_scheduled_at(status),
        priority=spec.get("priority") or 0,
        owner=_controller(meta),
        demand=_demand(annotations),
        plan=_plan(annotations.get(contract.ANNOTATION_PLAN, "")),
        partition_index=annotations.get(contract.NVCF_INDEX, ""),
        claims=tuple(_claims(meta["name"], spec)) if spec.get("volumes") else (),
        opted_out=native or labels.get(contract.LABEL_WEBHOOK) == contract.WEBHOOK_IGNORE,
        ready=_holds(status, "Ready"),
        version=meta.get("resourceVersion", ""),
    )


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


def _shape(spec: Json) -> Shape:
    """The Pod's shape; equal Pods get the same object, which is how shapes are compared."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    requests = pod_requests(spec)
    facts = (sorted(requests.items()), spec.get("nodeSelector"), required, spec.get("tolerations"))
    key = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)
    shape = _shapes.get(key)
    if shape is None:
        shape = _shapes[key] = Shape(
            requests=requests,
            node_selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=None if required is None else selector_terms(required.get("nodeSelectorTerms") or ()),
            tolerations=_tolerations(spec.get("tolerations") or ()),
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


def _tolerations(rows: Iterable[Json]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(r.get("key", ""), r.get("operator") or "Equal", r.get("value", ""), r.get("effect", ""))
        for r in rows
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


def _controller(meta: Json) -> Owner | None:
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(owner["apiVersion"], owner["kind"], owner["name"], owner["uid"])
    return None


def _demand(annotations: Json) -> Demand:
    return Demand(
        min_member=_positive(annotations.get(contract.ANNOTATION_MIN_MEMBER)),
        size=_positive(annotations.get(contract.ANNOTATION_SIZE)),
        size_from=annotations.get(contract.ANNOTATION_SIZE_FROM, ""),
        required=keys(annotations.get(contract.ANNOTATION_TOPOLOGY_REQUIRED, "")),
        preferred="".join(keys(annotations.get(contract.ANNOTATION_TOPOLOGY_PREFERRED, ""))[-1:]),
        subgroups=subgroups(annotations.get(contract.ANNOTATION_SUBGROUPS, "")),
        min_subgroup=_positive(annotations.get(contract.ANNOTATION_MIN_SUBGROUP)),
        after=annotations.get(contract.ANNOTATION_AFTER, ""),
        notes=decode(annotations.get(contract.ANNOTATION_NOTES, "")),
    )


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
