"""The PodGangs and Pods that Grove's operator makes of a PodCliqueSet, as far as the webhook reads them.

    PodCliqueSet ──► base PodGang, a scaled one per scaling group that has any ──► a Pod per PodClique

Of the first replica only, since all replicas are alike. Domains are words of a ClusterTopologyBinding here;
on a PodGang they are keys of node labels.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from allaboard.manifests import Json, Manifest
from gangs import contract

KIND: Final = "PodCliqueSet"
BINDING: Final = "ClusterTopologyBinding"
_GATE: Final = {"name": "grove.io/podgang-pending-creation"}


@dataclass(frozen=True, slots=True)
class _Clique:
    """One PodClique. field: of its template in the PodCliqueSet. needed: minReplicas. labels: of its Pods."""

    name: str
    field: str
    needed: int
    constraint: Json
    labels: Mapping[str, str]


def made_of(manifest: Manifest, bindings: Iterable[Manifest]) -> list[Manifest]:
    """PodGangs first, then Pods; raises ManifestError."""
    return list(_PodCliqueSet(manifest, {b.name: b for b in bindings}).objects())


class _PodCliqueSet:
    """One PodCliqueSet on its way to PodGangs."""

    def __init__(self, manifest: Manifest, bindings: Mapping[str, Manifest]) -> None:
        self._manifest = manifest
        self._bindings = bindings
        self._replica = f"{manifest.name}-0"
        template = self._map("spec.template")
        self._constraint = template.get("topologyConstraint") or {}
        self._priority = template.get("priorityClassName") or ""
        self._templates = self._named("spec.template.cliques")
        self._groups = self._named("spec.template.podCliqueScalingGroups") if _groups(template) else {}
        if not self._templates:
            raise manifest.wrong("spec.template.cliques", "missing (allowed: a list with at least one)")

    def objects(self) -> Iterator[Manifest]:
        base = [*self._standalone(), *(c for name in self._groups for c in self._of_group(name, first=True))]
        configs = [config for name in self._groups for config in self._configs(name)]
        where = self._packed(self._constraint, "spec.template.topologyConstraint", "")
        yield from self._gang(self._replica, base, where, configs)
        for name, (field, group) in self._groups.items():
            if self._number(field, group, "replicas", 1) > self._number(field, group, "minAvailable", 1):
                own = group.get("topologyConstraint") or {}
                own = self._packed(own, f"{field}.topologyConstraint", self._topology) or where
                yield from self._gang(f"{self._replica}-{name}-0", self._of_group(name, first=False), own, [])

    def _gang(
        self, name: str, cliques: list[_Clique], constraint: Json, configs: list[Json]
    ) -> Iterator[Manifest]:
        rows = [
            {"name": c.name, "minReplicas": c.needed, "podReferences": [], **_constrained(c.constraint)}
            for c in cliques
        ]
        meta = {"name": name, "namespace": self._manifest.namespace, "labels": self._inherited()}
        spec: Json = {"podgroups": rows, **_constrained(constraint)}
        if configs:
            spec["topologyConstraintGroupConfigs"] = configs
        if self._priority:
            spec["priorityClassName"] = self._priority
        body = {
            "apiVersion": "scheduler.grove.io/v1alpha1",
            "kind": "PodGang",
            "metadata": meta,
            "spec": spec,
        }
        yield Manifest(self._manifest.file, body, self._manifest.source)
        yield from (self._pod(name, clique) for clique in cliques)

    def _pod(self, gang: str, clique: _Clique) -> Manifest:
        template = self._map(clique.field)
        spec = {**self._map(f"{clique.field}.spec.podSpec"), "schedulingGates": [_GATE]}
        spec.setdefault("schedulerName", contract.DEFAULT_SCHEDULER_NAME)
        labels = {
            **(template.get("labels") or {}),
            **clique.labels,
            contract.GROVE_PODGANG: gang,
            contract.GROVE_CLIQUE: clique.name,
        }
        meta = {
            "name": f"{clique.name}-0",
            "namespace": self._manifest.namespace,
            "labels": labels,
            "annotations": template.get("annotations") or {},
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        return Manifest(self._manifest.file, body, self._manifest.part(clique.field))

    def _standalone(self) -> list[_Clique]:
        grouped = {name for _, group in self._groups.values() for name in group.get("cliqueNames") or ()}
        return [
            self._clique(name, f"{self._replica}-{name}", {})
            for name in self._templates
            if name not in grouped
        ]

    def _of_group(self, name: str, *, first: bool) -> list[_Clique]:
        """PodCliques of the replicas in the base gang, or of the first beyond them."""
        field, group = self._groups[name]
        least = self._number(field, group, "minAvailable", 1)
        base = {} if first else {contract.GROVE_BASE: self._replica}
        return [
            self._clique(clique, f"{self._replica}-{name}-{index}-{clique}", base)
            for index in (range(least) if first else [least])
            for clique in self._members(field, group)
        ]

    def _members(self, field: str, group: Json) -> list[str]:
        names = group.get("cliqueNames")
        if not isinstance(names, list) or not set(names) <= self._templates.keys():
            allowed = ", ".join(self._templates)
            raise self._manifest.wrong(
                f"{field}.cliqueNames", f"{names!r} are not all cliques (cliques: {allowed})"
            )
        return names

    def _configs(self, name: str) -> Iterator[Json]:
        field, group = self._groups[name]
        own = group.get("topologyConstraint") or {}
        packed = self._packed(own, f"{field}.topologyConstraint", self._topology)
        if packed:
            for index in range(self._number(field, group, "minAvailable", 1)):
                stem = f"{self._replica}-{name}-{index}"
                names = [f"{stem}-{clique}" for clique in self._members(field, group)]
                yield {"name": stem, "podGroupNames": names, **_constrained(packed)}

    def _clique(self, name: str, full: str, labels: Mapping[str, str]) -> _Clique:
        field, template = self._templates[name]
        spec = self._map(f"{field}.spec")
        replicas = self._number(f"{field}.spec", spec, "replicas", 1)
        needed = self._number(f"{field}.spec", spec, "minAvailable", replicas)
        own = self._packed(
            template.get("topologyConstraint") or {}, f"{field}.topologyConstraint", self._inherits(name)
        )
        return _Clique(full, field, needed, own, labels)

    def _inherits(self, clique: str) -> str:
        """The binding's name that a clique's constraint may leave out."""
        for _, group in self._groups.values():
            if clique in (group.get("cliqueNames") or ()):
                return str((group.get("topologyConstraint") or {}).get("topologyName") or self._topology)
        return self._topology

    @property
    def _topology(self) -> str:
        return str(self._constraint.get("topologyName") or "")

    def _packed(self, constraint: Json, field: str, inherited: str) -> Json:
        """packConstraint with node label keys, {} where nothing is asked for."""
        words = dict(constraint.get("pack") or {})
        if constraint.get("packDomain"):
            words.setdefault("required", constraint["packDomain"])
        if not words:
            return {}
        name = str(constraint.get("topologyName") or inherited)
        if name not in self._bindings:
            there = ", ".join(self._bindings) or "none in these files"
            problem = f'no {BINDING} "{name}" ({BINDING}s: {there})'
            raise self._manifest.wrong(f"{field}.topologyName", problem)
        keys = _domains(self._bindings[name])
        for key, word in words.items():
            if word not in keys:
                problem = f'"{word}" is no domain of {BINDING} {name} (domains: {", ".join(keys)})'
                raise self._manifest.wrong(f"{field}.pack.{key}", problem)
        return {key: keys[word] for key, word in words.items()}

    def _inherited(self) -> Json:
        labels = self._manifest.body["metadata"].get("labels") or {}
        return {key: value for key, value in labels.items() if not key.startswith("grove.io/")}

    def _named(self, field: str) -> dict[str, tuple[str, Json]]:
        rows = self._map(field.rpartition(".")[0]).get(field.rpartition(".")[2])
        if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("name") for row in rows):
            raise self._manifest.wrong(field, "missing (allowed: a list of maps with a name each)")
        return {str(row["name"]): (f"{field}.{i}", row) for i, row in enumerate(rows)}

    def _number(self, field: str, holder: Mapping[str, Any], key: str, default: int) -> int:
        value = holder.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._manifest.wrong(
                f"{field}.{key}", f"{value!r} is no number (allowed: a whole number from 0)"
            )
        return value

    def _map(self, field: str) -> Json:
        value: Any = self._manifest.body
        for part in field.split("."):
            value = value[int(part)] if isinstance(value, list) else value.get(part)
            if not isinstance(value, dict | list):
                raise self._manifest.wrong(field, "missing (allowed: a map)")
        return value if isinstance(value, dict) else {}


def _groups(template: Json) -> bool:
    return bool(template.get("podCliqueScalingGroups"))


def _constrained(packed: Json) -> Json:
    return {"topologyConstraint": {"packConstraint": packed}} if packed else {}


def _domains(binding: Manifest) -> dict[str, str]:
    """The node label key of each domain; raises ManifestError."""
    spec = binding.body.get("spec")
    levels = spec.get("levels") if isinstance(spec, dict) else None
    if not isinstance(levels, list) or not all(
        isinstance(r, dict) and {"domain", "key"} <= r.keys() for r in levels
    ):
        raise binding.wrong("spec.levels", "a list of maps with a domain and a key each is allowed")
    return {str(level["domain"]): str(level["key"]) for level in levels}
