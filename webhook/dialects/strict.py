"""Two dialects on one Pod: the first decides who belongs together; where they disagree, the stricter wins.

    floor    the higher number, as far as the gang can ever reach it
    level    all of them: a domain is what has the same value for each

Whatever is taken or left is said in a note that names both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gangs import contract
from gangs.notes import Note
from webhook.ask import Ask, Gang
from webhook.dialects import native
from webhook.dialects.common import Ring
from webhook.pod import Owner, Pod


@dataclass(frozen=True, slots=True)
class Beside:
    """What another dialect says of the same Pod. what: its key and value. floor: 0 where it is not known."""

    what: str
    floor: int = 0


def stricter(ask: Ask, other: Beside | None, who: str, pod: Pod, owner: Owner | None) -> Ask:
    """The ask with the other's floor if that is higher. who: whose keys decide, as a note says it."""
    if other is None:
        return ask
    gang, outcome = _raised(ask.gang, other.floor, owner)
    message = (
        f"{pod.title}: {other.what} stands beside the keys of {who}, which say who belongs to the gang; "
        f"the group's name is not used{outcome}"
    )
    return replace(ask, gang=gang, notes=(*ask.notes, Note(message)))


def _raised(gang: Gang | None, floor: int, owner: Owner | None) -> tuple[Gang | None, str]:
    if gang is None or floor <= gang.min_member:
        return gang, ""
    if owner is None or owner.size is None or gang.subgroups:
        return gang, f", nor its minMember {floor}: how many the gang can have is not known"
    if owner.one_by_one:
        return gang, f", nor its minMember {floor}: {owner.title} makes its Pods one after another"
    if floor > gang.size:
        return gang, f", nor its minMember {floor}, since {owner.title} wants {gang.size}"
    source = gang.size_from if floor != gang.size else ""
    raised = replace(gang, min_member=floor, size_from=source)
    return raised, f", but its minMember {floor} is, being stricter than {gang.min_member}"


def with_own_levels(ask: Ask, who: str, pod: Pod, owner: Owner | None) -> Ask:
    """The ask with the levels of our own annotations, too."""
    required, bad = native.levels(pod, owner, contract.ANNOTATION_TOPOLOGY_REQUIRED)
    known = ask.gang.required if ask.gang else ask.exists
    more = tuple(level for level in required if level not in known)
    notes = (*bad, *_both(more, known, who, pod))
    # A note blocks: what it complains of has to be seen again as it was written.
    key = contract.ANNOTATION_TOPOLOGY_REQUIRED
    verbatim = {**ask.verbatim, key: native.written_on(pod, owner, key)} if bad else ask.verbatim
    if not more:
        return replace(ask, verbatim=verbatim, notes=(*ask.notes, *notes))
    gang = replace(ask.gang, required=(*ask.gang.required, *more)) if ask.gang else None
    return replace(
        ask,
        gang=gang,
        verbatim=verbatim,
        exists=tuple(dict.fromkeys((*ask.exists, *more))),
        colocations=(*ask.colocations, *(Ring(more, ()).colocations(gang.label) if gang else ())),
        notes=(*ask.notes, *notes),
    )


def _both(more: Sequence[str], known: Sequence[str], who: str, pod: Pod) -> tuple[Note, ...]:
    if not more:
        return ()
    others = f" {', '.join(known)}" if known else " no level"
    message = (
        f"{pod.title}: annotation {contract.ANNOTATION_TOPOLOGY_REQUIRED} asks for {', '.join(more)}, the "
        f"keys of {who} for{others}: the gang shares all of them"
    )
    return (Note(message),)
