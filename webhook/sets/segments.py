"""Segments: so many members of a set at a time have a domain of their own (KAI's kai.scheduler/segment-*).

group of 16, segments of 4 in one rack each, all of them in one block
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gangs import contract
from gangs.notes import Note
from webhook.pod import Owner, Place
from webhook.sets.common import Json, count


@dataclass(frozen=True, slots=True)
class Segments:
    """What the keys say. size: members of each, "" keys where no domain is asked for."""

    size: int
    topology: str
    required: str
    preferred: str

    @classmethod
    def read(cls, keys: Json, size: int = 0) -> "Segments | None":
        """None where no segment asks for a domain. size: where the set itself says it."""
        required, preferred = (
            str(keys.get(key) or "")
            for key in (contract.KAI_SEGMENT_REQUIRED, contract.KAI_SEGMENT_PREFERRED)
        )
        if not required and not preferred:
            return None
        topology = str(keys.get(contract.KAI_TOPOLOGY) or "")
        return cls(size or count(keys.get(contract.KAI_SEGMENT)), topology, required, preferred)

    def place(self, name: str, members: int) -> Place:
        """The segment of this name."""
        return Place(name, members, None, self.topology, self.required, self.preferred)


def segmented(
    owner: Owner, segments: Segments | None, members: int, place: Callable[[Segments], Owner]
) -> Owner:
    """The owner with the segment around the Pod, which place adds; a note where their size makes no sense."""
    if segments is None:
        return owner
    if 1 < segments.size <= members:
        return place(segments)
    message = (
        f"{owner.title}: {contract.KAI_SEGMENT}: {segments.size or 'no number'} is no size of segments "
        f"(allowed: a whole number from 2 to {members})"
    )
    return replace(owner, notes=(Note(message, blocking=True),))
