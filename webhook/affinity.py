"""A Pod's affinity with an Ask's constraints added to it.

What the Pod brings along stays: a label that nodes must have goes into each required node selector term
(terms are alternatives, so a term of its own would loosen the others), and a Pod affinity term is added
once. Pure; the given affinity is never changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.ask import Ask, Colocation

Json = dict[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = 100  # the highest that Kubernetes allows


def constrained(affinity: Mapping[str, Any] | None, ask: Ask) -> Json | None:
    """The affinity that the Pod shall have, None where it has none and needs none."""
    result: Json = dict(affinity or {})
    if ask.exists:
        result["nodeAffinity"] = _on_labelled_nodes(result.get("nodeAffinity"), ask.exists)
    if ask.colocations:
        result["podAffinity"] = _together(result.get("podAffinity"), ask.colocations)
    return result if result or affinity is not None else None


def _on_labelled_nodes(affinity: Mapping[str, Any] | None, labels: Sequence[str]) -> Json:
    required = (affinity or {}).get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or []
    wanted = [{"key": label, "operator": "Exists"} for label in labels]
    terms = [_narrowed(term, wanted) for term in terms] or [{"matchExpressions": wanted}]
    return {**(affinity or {}), _REQUIRED: {**required, "nodeSelectorTerms": terms}}


def _narrowed(term: Mapping[str, Any], wanted: Sequence[Json]) -> Json:
    present = term.get("matchExpressions") or []
    if not present and not term.get("matchFields"):
        return dict(term)  # an empty term matches no node, and a requirement would make it match some
    missing = [requirement for requirement in wanted if requirement not in present]
    return {**term, "matchExpressions": [*present, *missing]} if missing else dict(term)


def _together(affinity: Mapping[str, Any] | None, colocations: Iterable[Colocation]) -> Json:
    result: Json = dict(affinity or {})
    for colocation in colocations:
        term: Json = {"labelSelector": dict(colocation.selector), "topologyKey": colocation.level}
        kind = _REQUIRED if colocation.required else _PREFERRED
        entry = term if colocation.required else {"weight": _WEIGHT, "podAffinityTerm": term}
        present = result.get(kind) or []
        if entry not in present:
            result[kind] = [*present, entry]
    return result
