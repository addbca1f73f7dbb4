"""Pods that want no equal beside them on a node, as a resource of which every node has one.

The common case of required Pod anti-affinity: a term with topologyKey kubernetes.io/hostname whose
selector matches the Pod itself ("one member a node"). Any two Pods that carry the same term in the same
namespace exclude each other, so the term is worth 1 of a resource named after it. What else anti-affinity
can say (other topologies, other Pods) kube-scheduler alone knows; the plan learns of it by refusal.

Semantics: core/v1 PodAffinityTerm; the API server has merged matchLabelKeys into the selector already.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import orjson

from gangs.contract import NODE_HOSTNAME
from gangs.nodes import Requirement

PREFIX: Final = "apart:"

Json = Mapping[str, Any]


def apart(namespace: str, labels: Mapping[str, str], spec: Json) -> dict[str, int]:
    """One of each resource that the Pod's own anti-affinity makes of it."""
    affinity = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return {_resource(namespace, t): 1 for t in terms if _is_mutual(t, namespace, labels)}


def is_apart(resource: str) -> bool:
    """Whether the resource is one of ours."""
    return resource.startswith(PREFIX)


def _is_mutual(term: Json, namespace: str, labels: Mapping[str, str]) -> bool:
    if term["topologyKey"] != NODE_HOSTNAME or "labelSelector" not in term:
        return False
    if term.get("namespaceSelector") is not None or (term.get("namespaces") or [namespace]) != [namespace]:
        return False
    return all(r.holds(labels.get(r.key)) for r in _requirements(term["labelSelector"]))


def _requirements(selector: Json) -> Iterator[Requirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield Requirement(key, "In", (value,))
    for row in selector.get("matchExpressions") or ():
        yield Requirement(row["key"], row["operator"], tuple(row.get("values") or ()))


def _resource(namespace: str, term: Json) -> str:
    selector = orjson.dumps(term["labelSelector"], option=orjson.OPT_SORT_KEYS)
    return f"{PREFIX}{sha256(namespace.encode() + b'/' + selector).hexdigest()[:12]}"
