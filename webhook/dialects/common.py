"""What several dialects say in the same way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gangs import contract
from gangs.identity import gang_label
from gangs.notes import Note
from webhook.ask import Ask, Colocation, Gang
from webhook.pod import Owner, Pod


def identity(dialect: str, pod: Pod, owner: Owner | None) -> str:
    """The gang that a Pod belongs to by its owner, or by its own name where it has none."""
    if owner is None:
        return gang_label(dialect, "Pod", pod.name)
    return gang_label(dialect, owner.kind, owner.name, owner.uid)


def colocations(
    pod: Pod, gang: str, required: Sequence[str], preferred: Sequence[str]
) -> tuple[Colocation, ...]:
    """Be with one's gang, and with one's subgroup where there is one, on each of these levels."""
    labels = {contract.LABEL_GANG: gang}
    if subgroup := pod.labels.get(contract.LABEL_SUBGROUP):
        labels[contract.LABEL_SUBGROUP] = subgroup
    selector = {"matchLabels": labels}
    return (
        *(Colocation(level, selector, required=True) for level in required),
        *(Colocation(level, selector, required=False) for level in preferred),
    )


@dataclass(frozen=True, slots=True)
class Ring:
    """The gang, or a subgroup around the Pod: the domain that it asks for, and whom that is about.

    required, preferred: node label keys. leaves: the innermost subgroups inside, () for all of the gang.
    """

    required: tuple[str, ...]
    preferred: tuple[str, ...]
    leaves: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def colocations(self, label: str) -> Iterator[Colocation]:
        """Be in one domain with the others inside."""
        selector: dict[str, Any] = {"matchLabels": {contract.LABEL_GANG: label}}
        if self.leaves:
            among = {"key": contract.LABEL_SUBGROUP, "operator": "In", "values": sorted(self.leaves)}
            selector["matchExpressions"] = [among]
        yield from (Colocation(level, selector, required=True) for level in self.required)
        yield from (Colocation(level, selector, required=False) for level in self.preferred)


def alone(dialect: str, pod: Pod, owner: Owner | None, required: Sequence[str], notes: Sequence[Note]) -> Ask:
    """A Pod that needs no other: on a node which has the labels, at once unless a note blocks it."""
    blocked = any(note.blocking for note in notes)
    # Only a gang can be held, so a blocked Pod counts as one of which one member is enough.
    label = pod.labels.get(contract.LABEL_GANG) or identity(dialect, pod, owner)
    return Ask(gang=Gang(label) if blocked else None, exists=tuple(required), notes=tuple(notes))
