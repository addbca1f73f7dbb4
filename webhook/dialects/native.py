"""Our own labels and annotations, on the Pod or on its owner.

A gang is asked for by the gang label on the Pod (which names it), by one of our annotations, or by the
namespace, where allaboard.dev/enabled: "true" makes a gang of every workload that wants accelerators.
How many: min-member says so; else all that a Job or a Parallel StatefulSet wants, one where members
come one by one. A Deployment's Pods are a gang only where a number or a label says so.

The webhook may see its own output again. What it wrote then reads as if a user had written it, so
everything here gives the same answer for both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.ask import Ask, Gang
from webhook.counts import Counts, all_of, floor_of, number_of_members, written
from webhook.dialects.common import alone, colocations, identity
from webhook.levels import is_label_key
from webhook.pod import Owner, Pod, Surroundings
from webhook.staleness import staleness

_DIALECT: Final = "native"
_TOPOLOGY_KEYS: Final = (contract.ANNOTATION_TOPOLOGY_REQUIRED, contract.ANNOTATION_TOPOLOGY_PREFERRED)
_KEYS: Final = (contract.ANNOTATION_MIN_MEMBER, *_TOPOLOGY_KEYS)


def recognise(pod: Pod, around: Surroundings) -> Ask | None:
    owner = around.owner
    if not _asks(pod, around):
        return None
    required, bad_required = levels(pod, owner, contract.ANNOTATION_TOPOLOGY_REQUIRED)
    preferred, bad_preferred = levels(pod, owner, contract.ANNOTATION_TOPOLOGY_PREFERRED)
    notes = (*bad_required, *bad_preferred)
    counts = _counts(pod, owner)
    if counts is None:
        return alone(_DIALECT, pod, owner, required, notes)
    label = pod.labels.get(contract.LABEL_GANG) or identity(_DIALECT, pod, owner)
    period, unreadable = staleness(pod, owner, contract.ANNOTATION_STALENESS)
    return Ask(
        gang=Gang(label, counts.min_member, counts.size, counts.size_from, required, preferred),
        exists=required,
        colocations=colocations(pod, label, required, preferred),
        verbatim=_verbatim(pod, owner, counts) | period,
        notes=(*notes, *counts.notes, *unreadable),
    )


def override(ask: Ask, pod: Pod, owner: Owner | None) -> Ask:
    """Let a min-member of ours replace the floor of another dialect's gang."""
    title, value = _written(pod, owner, contract.ANNOTATION_MIN_MEMBER)
    gang = ask.gang
    if gang is None or not value or value == str(gang.min_member):
        return ask
    one_owner = owner if gang.size_from != contract.SIZE_FROM_PARTITION else None
    counts = written(title, contract.ANNOTATION_MIN_MEMBER, value, one_owner)
    size = max(gang.size, counts.min_member)
    source = gang.size_from if size != counts.min_member else ""
    return replace(
        ask,
        gang=replace(gang, min_member=counts.min_member, size=size, size_from=source),
        verbatim={**ask.verbatim, **({contract.ANNOTATION_MIN_MEMBER: value} if counts.notes else {})},
        notes=(*ask.notes, *counts.notes),
    )


def _asks(pod: Pod, around: Surroundings) -> bool:
    if contract.LABEL_GANG in pod.labels:
        return True
    if any(_written(pod, around.owner, key)[1] for key in _KEYS):
        return True
    return around.namespace_labels.get(contract.LABEL_ENABLED) == "true" and pod.accelerated


def _counts(pod: Pod, owner: Owner | None) -> Counts | None:
    title, value = _written(pod, owner, contract.ANNOTATION_MIN_MEMBER)
    label = pod.labels.get(contract.LABEL_GANG)
    if label and label != identity(_DIALECT, pod, owner):
        return _named(title, value, pod, owner)
    if (owner is None or owner.interchangeable) and (not value or number_of_members(value) == 1):
        return None
    if owner is None:
        return _bare(title, value)
    if value:
        return written(title, contract.ANNOTATION_MIN_MEMBER, value, owner)
    return _all_that_can_wait(owner)


def _named(title: str, value: str, pod: Pod, owner: Owner | None) -> Counts:
    # Several owners may share a gang that has a name, so one owner's size is no limit.
    if value:
        counts = written(title, contract.ANNOTATION_MIN_MEMBER, value, None)
    elif owner is None:
        counts = Counts(1, 1)
    else:
        counts = _all_that_can_wait(owner)
    size = number_of_members(pod.annotations.get(contract.ANNOTATION_SIZE, "")) or counts.size
    return replace(counts, size=max(size, counts.min_member))


def _bare(title: str, value: str) -> Counts:
    counts = written(title, contract.ANNOTATION_MIN_MEMBER, value, None)
    if counts.notes:
        return counts
    message = (
        f'{title}: annotation {contract.ANNOTATION_MIN_MEMBER}: "{value}" needs the label '
        f"{contract.LABEL_GANG} to say which Pods belong together (allowed: any label value, "
        "the same on all of them)"
    )
    return replace(counts, notes=(Note(message, blocking=True),))


def _all_that_can_wait(owner: Owner) -> Counts:
    return floor_of(owner, 1) if owner.one_by_one else all_of(owner)


def levels(pod: Pod, owner: Owner | None, key: str) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """The node label keys in one of our topology annotations, and what is wrong with the others."""
    title, value = _written(pod, owner, key)
    named = [level for level in (part.strip() for part in value.split(",")) if level]
    bad = [level for level in named if not is_label_key(level)]
    return tuple(level for level in named if level not in bad), _not_keys(title, key, bad)


def _not_keys(title: str, key: str, bad: Sequence[str]) -> tuple[Note, ...]:
    message = '{}: annotation {}: "{}" is no node label key (allowed: keys such as {}, a comma between two)'
    return tuple(
        Note(message.format(title, key, level, contract.NODE_CLIQUE), blocking=True) for level in bad
    )


def _verbatim(pod: Pod, owner: Owner | None, counts: Counts) -> dict[str, str]:
    """Annotations as written: the lists of levels, and a number that a note complains of."""
    keys = _KEYS if counts.notes else _TOPOLOGY_KEYS
    found = ((key, _written(pod, owner, key)[1]) for key in keys)
    return {key: value for key, value in found if value}


def written_on(pod: Pod, owner: Owner | None, key: str) -> str:
    """The value of one of our annotations, on the Pod or its owner, "" where there is none."""
    return _written(pod, owner, key)[1]


def _written(pod: Pod, owner: Owner | None, key: str) -> tuple[str, str]:
    """The title of the object that the annotation comes from, and its value, "" where there is none."""
    on_pod = pod.annotations.get(key)
    on_owner = owner.annotations.get(key) if owner else None
    # Equal values: the Pod's is a copy of the owner's, which is where its author would look for it.
    if owner is None or on_owner is None or on_pod not in (None, on_owner):
        return pod.title, on_pod or ""
    return owner.title, on_owner
