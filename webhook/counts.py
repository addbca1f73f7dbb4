"""How many members a gang has, and how many must board at once.

The rules of every dialect come down to two: either all that the owner wants board at once and follow
its live size, or a fixed floor does (a number that somebody wrote, or 1).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.pod import Owner

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Counts:
    """min_member, size and size_from as in Gang, and what has to be said about them."""

    min_member: int
    size: int
    size_from: str = ""
    notes: tuple[Note, ...] = ()


def all_of(owner: Owner) -> Counts:
    """All that the owner wants, however many that will be, or as many of them as it can't do without."""
    size = max(1, owner.size or 1)
    return Counts(min(owner.floor or size, size), size, _source(owner))


def floor_of(owner: Owner | None, floor: int, notes: Sequence[Note] = ()) -> Counts:
    """A fixed floor, in a gang as large as the owner wants."""
    if owner is None or owner.size is None:
        return Counts(floor, floor, notes=tuple(notes))
    size = max(1, owner.size)
    floor = min(floor, size)
    # Equal figures with a live size would mean that the floor follows the size.
    return Counts(floor, size, _source(owner) if floor != size else "", tuple(notes))


def _source(owner: Owner) -> str:
    return contract.SIZE_FROM_OWNER if owner.followed else ""


def number_of_members(text: str) -> int:
    """The number that text says, 0 where it says none from 1."""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return number if 1 <= number <= _MAX else 0


def written(title: str, key: str, value: str, owner: Owner | None) -> Counts:
    """A floor that somebody wrote into the annotation key; a note blocks where it makes no sense."""
    where = f'{title}: annotation {key}: "{value}"'
    number = number_of_members(value)
    if not number:
        note = Note(f"{where} is no number of members (allowed: a whole number from 1)", blocking=True)
        return floor_of(owner, 1, [note])
    if owner is not None and owner.most is not None and number > max(1, owner.most):
        field = "parallelism" if owner.is_job else "replicas"
        message = f"{where} is more than {owner.title} ever has at one time ({field}: {owner.most})"
        note = Note(message, blocking=True)
        return floor_of(owner, number, [note])
    return floor_of(owner, number)
