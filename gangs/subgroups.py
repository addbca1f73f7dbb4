"""Subgroups of a gang as they travel on its Pods: each Pod carries the path from the gang down to its own.

A gang may hold subgroups (a JobSet's replicated jobs, Grove's cliques, leader and workers, segments of
so many members), and these may hold others. Every one has a floor of its own, and may ask for a domain of
its own inside the domain of what encloses it. The names are those of KAI's PodGroup
(scheduling.run.ai/v2alpha2, spec.subGroups): a leaf counts members, an inner one counts subgroups.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gangs.room import Level

_MOST: Final = 999_999_999


@dataclass(frozen=True, slots=True)
class Subgroup:
    """One subgroup, as its members describe it.

    name: unique in the gang; the innermost one's is the Pod's subgroup label.
    min_member: how many of its members must board at once; counts in a leaf only.
    min_subgroup: how many of the subgroups in it must be whole, None for all that there are.
    required, preferred: node labels (widest first) that its members must, or should, share.
    """

    name: str
    min_member: int = 0
    min_subgroup: int | None = None
    required: Level = ()
    preferred: Level = ()


def encode(path: Iterable[Subgroup]) -> str:
    """The annotation's value: a JSON list, outermost subgroup first, empty fields left out."""
    return json.dumps([_row(subgroup) for subgroup in path], separators=(", ", ": "))


@lru_cache(maxsize=4096)
def decode(value: str) -> tuple[Subgroup, ...]:
    """Read an annotation written by encode; () for anything else, since anybody may write there."""
    try:
        return tuple(_subgroup(row) for row in json.loads(value)) if value else ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()


def _row(subgroup: Subgroup) -> dict[str, Any]:
    row = {
        "name": subgroup.name,
        "minMember": subgroup.min_member or None,
        "minSubGroup": subgroup.min_subgroup,
        "required": ",".join(subgroup.required) or None,
        "preferred": ",".join(subgroup.preferred) or None,
    }
    return {key: value for key, value in row.items() if value is not None}


def _subgroup(row: dict[str, Any]) -> Subgroup:
    return Subgroup(
        name=_text(row["name"]),
        min_member=_number(row.get("minMember", 0)),
        min_subgroup=_number(row["minSubGroup"]) if "minSubGroup" in row else None,
        required=keys(_text(row.get("required", ""))),
        preferred=keys(_text(row.get("preferred", ""))),
    )


def keys(value: str) -> Level:
    """Node label keys written with commas between them."""
    return tuple(key for part in value.split(",") if (key := part.strip()))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise TypeError(value)
    return value
