"""Grove: a Pod names its PodGang, and the PodGang says everything else (scheduler.grove.io/v1alpha1).

Grove makes the PodGang before the Pods and labels each Pod with it, so one look-up by name is enough, and
names are never taken apart: they changed, and the gang wrk-0 holds replica 1.

    spec.podgroups                        a subgroup per PodClique, minReplicas of it board at once
    spec.topologyConstraintGroupConfigs   an outer subgroup around the PodCliques of one scaling-group replica
    topologyConstraint                    on the gang, on either of these: keys of node labels
    label grove.io/base-podgang           a scaled gang boards once its base is aboard

Grove's own gate stays; it falls one Pod at a time, and only who has lost it counts as here.
"""

from collections.abc import Mapping
from typing import Any, Final

from gangs import contract
from gangs.identity import podgang_label
from gangs.notes import Note
from gangs.subgroups import Subgroup
from webhook import priorities
from webhook.ask import Ask, Gang
from webhook.dialects.common import Ring
from webhook.levels import is_label_key
from webhook.pod import Pod, Surroundings
from webhook.sets.common import count, is_name, mapping, mappings

_PATH: Final = "/apis/scheduler.grove.io/v1alpha1/namespaces/{}/podgangs/{}"
BINDING_PATH: Final = "/apis/grove.io/v1alpha1/clustertopologybindings/{}"

Json = Mapping[str, Any]


def path(pod: Pod) -> str:
    """Where the API server has the PodGang that this Pod names, "" if it names none."""
    name = pod.labels.get(contract.GROVE_PODGANG, "")
    return podgang_path(pod.namespace, name) if is_name(name) else ""


def podgang_path(namespace: str, name: str) -> str:
    """Where the API server has this PodGang."""
    return _PATH.format(namespace, name)


def binding(podgang: Json | None) -> str:
    """Where the ClusterTopologyBinding is by which words of the PodGang are to be read, "" if none is needed.

    Grove itself writes node label keys; only a word without a prefix may be a domain of the binding.
    """
    name = str(mapping(mapping(podgang or {}, "metadata"), "annotations").get(contract.GROVE_TOPOLOGY, ""))
    words = (word for constraint in _constraints(podgang or {}) for word in _pack(constraint).values())
    return BINDING_PATH.format(name) if is_name(name) and any("/" not in str(word) for word in words) else ""


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    if not path(pod):
        return None
    name = pod.labels[contract.GROVE_PODGANG]
    label = podgang_label(name)
    if around.group is None:
        return Ask(gang=Gang(label), notes=(_missing(pod, name),))
    return _PodGang(pod, name, label, around).ask()


class _PodGang:
    """One PodGang as the Pod's gang."""

    def __init__(self, pod: Pod, name: str, label: str, around: Surroundings) -> None:
        group = around.group or {}
        self._pod = pod
        self._label = label
        self._title = f"podgang {pod.namespace}/{name}"
        self._spec = mapping(group, "spec")
        self._queue = str(mapping(mapping(group, "metadata"), "labels").get(contract.LABEL_QUEUE, ""))
        self._priority = priorities.first(priorities.of_group(group), around.found)
        self._domains = _domains(around.found.get(binding(group)))
        self._rows = {str(row.get("name", "")): row for row in mappings(self._spec, "podgroups")}
        self._configs = mappings(self._spec, "topologyConstraintGroupConfigs")

    def ask(self) -> Ask:
        clique = self._pod.labels.get(contract.GROVE_CLIQUE, "")
        if clique not in self._rows:
            return Ask(gang=Gang(self._label), notes=(self._unknown(clique),))
        rings, path = self._around(clique)
        whole = rings[0]
        base = self._pod.labels.get(contract.GROVE_BASE, "")
        floor = max(1, sum(self._floor(name) for name in self._rows))
        gang = Gang(
            self._label,
            floor,
            floor,
            required=whole.required,
            preferred=whole.preferred,
            subgroups=path,
            min_subgroup=self._needed(),
            after=podgang_label(base) if base else "",
        )
        return Ask(
            gang=gang,
            exists=tuple(dict.fromkeys(key for ring in rings for key in ring.required)),
            colocations=tuple(term for ring in rings for term in ring.colocations(self._label)),
            labels=self._labels(),
            priority_class=self._priority,
            notes=tuple(note for ring in rings for note in ring.notes),
        )

    def _around(self, clique: str) -> tuple[list[Ring], tuple[Subgroup, ...]]:
        """The gang and the subgroups around a Pod of this PodClique, outermost first."""
        rings = [self._ring(self._spec, "spec", ())]
        path: list[Subgroup] = []
        for number, config in enumerate(self._configs):
            names = _names(config)
            if clique in names:
                ring = self._ring(config, f"spec.topologyConstraintGroupConfigs[{number}]", names)
                needed = sum(bool(self._floor(name)) for name in names)
                name = str(config.get("name", ""))
                path = [Subgroup(name, 0, needed, ring.required, ring.preferred)]
                rings = [rings[0], ring]
        number = list(self._rows).index(clique)
        ring = self._ring(self._rows[clique], f"spec.podgroups[{number}]", (clique,))
        path.append(Subgroup(clique, self._floor(clique), None, ring.required, ring.preferred))
        return [*rings, ring], tuple(path)

    def _floor(self, clique: str) -> int:
        return count(self._rows.get(clique, {}).get("minReplicas"))

    def _needed(self) -> int:
        """How many of the outermost subgroups need somebody, also those that nobody has come for yet."""
        inside = {name for config in self._configs for name in _names(config)}
        outer = sum(any(self._floor(name) for name in _names(config)) for config in self._configs)
        return outer + sum(bool(self._floor(name)) for name in self._rows if name not in inside)

    def _labels(self) -> dict[str, str]:
        """Grove leaves the queue's label on the PodGang."""
        own = self._pod.labels.get(contract.LABEL_QUEUE)
        return {contract.LABEL_QUEUE: self._queue} if self._queue and not own else {}

    def _ring(self, holder: Json, field: str, cliques: tuple[str, ...]) -> Ring:
        pack = _pack(mapping(holder, "topologyConstraint"))
        field = f"{field}.topologyConstraint.packConstraint"
        required, bad_required = self._key(pack, field, "required")
        preferred, bad_preferred = self._key(pack, field, "preferred")
        wished = tuple(key for key in preferred if key not in required)
        return Ring(required, wished, cliques, (*bad_required, *bad_preferred))

    def _key(self, pack: Json, field: str, name: str) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        word = str(pack.get(name) or "")
        key = self._domains.get(word, word)
        if not key or is_label_key(key):
            return ((key,) if key else ()), ()
        message = f'{self._title}: {field}.{name}: "{word}" is no node label key'
        return (), (Note(message, blocking=True),)

    def _unknown(self, clique: str) -> Note:
        message = (
            f'{self._pod.title}: label {contract.GROVE_CLIQUE}: "{clique}" is no podgroup of {self._title} '
            f"(podgroups: {', '.join(self._rows) or 'none'})"
        )
        return Note(message, blocking=True)


def _missing(pod: Pod, name: str) -> Note:
    message = (
        f'{pod.title}: label {contract.GROVE_PODGANG}: no PodGang "{name}" was found when the Pod was '
        "created, so nobody knows who boards with it (create the PodGang first, as Grove's operator does)"
    )
    return Note(message, blocking=True)


def _constraints(podgang: Json) -> list[Json]:
    spec = mapping(podgang, "spec")
    holders = [spec, *mappings(spec, "podgroups"), *mappings(spec, "topologyConstraintGroupConfigs")]
    return [mapping(holder, "topologyConstraint") for holder in holders]


def _pack(constraint: Json) -> Json:
    return {key: word for key, word in mapping(constraint, "packConstraint").items() if word}


def _names(config: Json) -> tuple[str, ...]:
    names = config.get("podGroupNames")
    return tuple(str(name) for name in names) if isinstance(names, list) else ()


def _domains(found: Json | None) -> dict[str, str]:
    """The node label key of each domain of a ClusterTopologyBinding."""
    levels = mappings(mapping(found or {}, "spec"), "levels")
    return {str(level.get("domain", "")): str(level.get("key", "")) for level in levels}
