"""KAI Scheduler's annotations: a topology, a level, a number of members.

They are read from the top owner, as KAI does, and where that has none from the Pod, because NVCF may
strip what its users write on the owner. What they mean depends on the kind:

    StatefulSet, Parallel       all replicas are one gang (NVCF's documents promise it, KAI doesn't do it)
    StatefulSet, OrderedReady   one board at a time, in a domain with room for all
    Job                         as many as batch-min-member says, else one
    Deployment, bare Pod        each by itself, on a node of the level
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gangs import contract
from gangs.identity import subgroup_label
from gangs.notes import Note
from gangs.subgroups import Subgroup
from webhook import priorities
from webhook.ask import Ask, Colocation, Gang
from webhook.counts import Counts, all_of, floor_of, written
from webhook.dialects.common import Ring, alone, colocations, identity
from webhook.levels import Levels, Wish, resolve
from webhook.pod import Owner, Place, Pod, Surroundings, Topology
from webhook.staleness import staleness

_DIALECT: Final = "kai"
_TOPOLOGY_KEYS: Final = (
    contract.KAI_TOPOLOGY,
    contract.KAI_TOPOLOGY_REQUIRED,
    contract.KAI_TOPOLOGY_PREFERRED,
)


def asks(pod: Pod, owner: Owner | None) -> bool:
    """Whether KAI's annotations ask for anything."""
    return _asks(_source(pod, owner)[1], owner)


def needs_topologies(pod: Pod, owner: Owner | None) -> bool:
    """Whether a level is named that only a Topology can explain."""
    _, keys = _source(pod, owner)
    return any(keys.get(key) for key in _TOPOLOGY_KEYS) or bool(owner and owner.places)


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    owner = around.owner
    title, keys = _source(pod, owner)
    if not _asks(keys, owner):
        return None
    levels = resolve(_wish(title, keys, owner), around.topologies)
    if owner is None or owner.interchangeable:
        required = (levels.required,) if levels.required else ()
        ask = alone(_DIALECT, pod, owner, required, (*levels.notes, *_misplaced(title, keys)))
    else:
        ask = _together(pod, owner, _counts(title, keys, owner), levels)
        ask = _with_subgroups(ask, owner, around.topologies)
    classes = priorities.by_labels(pod, owner)
    missing = () if around.failures else priorities.missing(title, classes, around.found)
    chosen = priorities.first(classes, around.found)
    return replace(ask, priority_class=chosen, notes=(*ask.notes, *missing))


def _source(pod: Pod, owner: Owner | None) -> tuple[str, Mapping[str, str]]:
    if owner is not None and owner.places:
        return owner.title, owner.annotations  # what the Pods say is said of their subgroup
    if owner is not None and any(
        key in owner.annotations for key in (*_TOPOLOGY_KEYS, contract.KAI_BATCH_MIN_MEMBER)
    ):
        return owner.title, owner.annotations
    return pod.title, pod.annotations


def _asks(keys: Mapping[str, str], owner: Owner | None) -> bool:
    counted = owner is not None and owner.is_job and contract.KAI_BATCH_MIN_MEMBER in keys
    if owner is not None and (owner.places or owner.notes):
        return True
    return counted or any(keys.get(key) for key in _TOPOLOGY_KEYS)


def _wish(title: str, keys: Mapping[str, str], owner: Owner | None) -> Wish:
    topology, required, preferred = (keys.get(key, "") for key in _TOPOLOGY_KEYS)
    if owner is not None and (owner.places or owner.notes) and not (required or preferred):
        topology = ""  # named for the subgroups, which have levels
    return Wish(title, topology, required, preferred)


def _together(pod: Pod, owner: Owner, counts: Counts, levels: Levels) -> Ask:
    required = (levels.required,) if levels.required else ()
    preferred = (levels.preferred,) if levels.preferred else ()
    label = pod.labels.get(contract.LABEL_GANG) or identity(_DIALECT, pod, owner)
    period, unreadable = staleness(pod, owner, contract.KAI_STALENESS)
    return Ask(
        gang=Gang(label, counts.min_member, counts.size, counts.size_from, required, preferred),
        exists=required,
        colocations=_colocations(pod, owner, label, required, preferred),
        verbatim=period,
        notes=(*levels.notes, *counts.notes, *unreadable),
    )


def _colocations(
    pod: Pod, owner: Owner, label: str, required: tuple[str, ...], preferred: tuple[str, ...]
) -> tuple[Colocation, ...]:
    if owner.places:  # the subgroup's label is ours, and says nothing of the whole gang's domain
        return tuple(Ring(required, preferred).colocations(label))
    return colocations(pod, label, required, preferred)


def _with_subgroups(ask: Ask, owner: Owner, topologies: Sequence[Topology] | None) -> Ask:
    """The ask with the subgroups around the Pod, each with the domain that it asks for."""
    if ask.gang is None or not owner.places:
        return replace(ask, notes=(*ask.notes, *owner.notes))
    rings = [_ring(place, owner, topologies) for place in owner.places]
    path = tuple(
        Subgroup(place.name, place.min_member, place.min_subgroup, ring.required, ring.preferred)
        for place, ring in zip(owner.places, rings, strict=True)
    )
    # Only the innermost is a label of the Pods, and only it asks for a domain here.
    inner = replace(rings[-1], leaves=(subgroup_label(path[-1].name),))
    return replace(
        ask,
        gang=replace(ask.gang, subgroups=path, min_subgroup=owner.min_subgroup),
        exists=tuple(dict.fromkeys((*ask.exists, *(key for ring in rings for key in ring.required)))),
        colocations=(*ask.colocations, *inner.colocations(ask.gang.label)),
        notes=(*ask.notes, *(note for ring in rings for note in ring.notes), *owner.notes),
    )


def _ring(place: Place, owner: Owner, topologies: Sequence[Topology] | None) -> Ring:
    topology = place.topology or owner.annotations.get(contract.KAI_TOPOLOGY, "")
    named = topology if place.required or place.preferred else ""
    wish = Wish(f"{owner.title} subgroup {place.name}", named, place.required, place.preferred)
    levels = resolve(wish, topologies)
    wide, narrow = ((level,) if level else () for level in (levels.required, levels.preferred))
    return Ring(wide, narrow, notes=levels.notes)


def _counts(title: str, keys: Mapping[str, str], owner: Owner) -> Counts:
    number = keys.get(contract.KAI_BATCH_MIN_MEMBER)
    if owner.is_job and number is not None:
        return written(title, contract.KAI_BATCH_MIN_MEMBER, number, owner)
    if owner.is_job or owner.one_by_one:
        return floor_of(owner, 1, _misplaced(title, keys) if not owner.is_job else ())
    counts = all_of(owner)
    if owner.kind == "JobSet":
        return counts  # there it counts replicated Jobs (webhook/sets/jobset.py)
    return Counts(counts.min_member, counts.size, counts.size_from, _misplaced(title, keys))


def _misplaced(title: str, keys: Mapping[str, str]) -> tuple[Note, ...]:
    if contract.KAI_BATCH_MIN_MEMBER not in keys:
        return ()
    message = (
        f"{title}: annotation {contract.KAI_BATCH_MIN_MEMBER} is read on Jobs only and is ignored here "
        f"(allowed: {contract.ANNOTATION_MIN_MEMBER})"
    )
    return (Note(message),)
