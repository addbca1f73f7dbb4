"""Which node labels the topology keys of a workload stand for.

A level may be named by node label or alias, with or without its Topology, rightly or wrongly. Where the
promise can be determined we assume and say so; where it can't, a blocking note says what is allowed.

    Wish(topology, required, preferred) + the Topologies ──resolve──► Levels(required, preferred, notes)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.pod import Topology

_PREFIX: Final = r"(?=.{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
_LABEL_KEY: Final = re.compile(rf"({_PREFIX})?(?=.{{1,63}}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_label_key(text: str) -> bool:
    """Whether text may be the key of a node label."""
    return _LABEL_KEY.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Wish:
    """KAI's three topology keys as written, "" where absent. title: the object that carries them."""

    title: str
    topology: str
    required: str
    preferred: str


@dataclass(frozen=True, slots=True)
class Levels:
    """Node label keys, "" where there is none, and what has to be said about them."""

    required: str = ""
    preferred: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class _Level:
    label: str  # node label key, "" if there is no valid one
    rank: int | None  # place in its Topology, widest first; None where that is not known
    notes: tuple[Note, ...] = ()


def resolve(wish: Wish, topologies: Sequence[Topology] | None) -> Levels:
    """Find the node labels; topologies is None where they could not be read."""
    if not wish.required and not wish.preferred:
        return Levels(notes=_no_level(wish))
    required = _find(wish, contract.KAI_TOPOLOGY_REQUIRED, wish.required, topologies)
    preferred = _find(wish, contract.KAI_TOPOLOGY_PREFERRED, wish.preferred, topologies)
    notes = tuple(dict.fromkeys(required.notes + preferred.notes))
    if required.rank is not None and preferred.rank is not None and preferred.rank < required.rank:
        return Levels(required.label, "", (*notes, _wider(wish)))
    return Levels(required.label, preferred.label, notes)


def _find(wish: Wish, key: str, value: str, topologies: Sequence[Topology] | None) -> _Level:
    if not value:
        return _Level("", None)
    if topologies is None:
        return _as_written(wish, key, value)
    if not wish.topology:
        return _in_any(wish, key, value, topologies)
    for topology in topologies:
        if topology.name == wish.topology:
            return _in_one(wish, key, value, topology)
    return _unknown_topology(wish, value, topologies)


def _in_one(wish: Wish, key: str, value: str, topology: Topology) -> _Level:
    rank = _rank(topology, value)
    if rank is not None:
        return _Level(topology.levels[rank][0], rank)
    message = f'{wish.title}: annotation {key}: "{value}" is no level of Topology {_one(topology)}'
    return _blocked(value, Note(message, blocking=True, topology=topology.name, level=value))


def _in_any(wish: Wish, key: str, value: str, topologies: Sequence[Topology]) -> _Level:
    for topology in topologies:
        rank = _rank(topology, value)
        if rank is not None:
            message = (
                f'{wish.title}: annotation {contract.KAI_TOPOLOGY} is missing; level "{value}" of {key} '
                f"is taken from Topology {_one(topology)}"
            )
            return _Level(topology.levels[rank][0], rank, (Note(message),))
    message = (
        f"{wish.title}: annotation {contract.KAI_TOPOLOGY} is missing and no Topology has the level "
        f'"{value}" of {key} ({_all(topologies)})'
    )
    return _blocked(value, Note(message, blocking=True, level=value))


def _unknown_topology(wish: Wish, value: str, topologies: Sequence[Topology]) -> _Level:
    names = ", ".join(topology.name for topology in topologies) or "none"
    where = f"{wish.title}: annotation {contract.KAI_TOPOLOGY}"
    message = f'{where}: no Topology "{wish.topology}" exists (Topologies: {names})'
    return _blocked(value, Note(message, blocking=True, topology=wish.topology, level=value))


def _as_written(wish: Wish, key: str, value: str) -> _Level:
    if is_label_key(value):
        return _Level(
            value, None, (Note(f'{wish.title}: annotation {key}: "{value}" is taken as it is written'),)
        )
    return _blocked(
        value, Note(f'{wish.title}: annotation {key}: "{value}" is no node label key', blocking=True)
    )


def _blocked(value: str, note: Note) -> _Level:
    # The affinity can't be added later, so it is written now, for the day when the level exists.
    return _Level(value if is_label_key(value) else "", None, (note,))


def _no_level(wish: Wish) -> tuple[Note, ...]:
    if not wish.topology:
        return ()
    message = (
        f"{wish.title}: annotation {contract.KAI_TOPOLOGY}: {wish.topology} is named but no level of it; "
        f"nothing is constrained (name one in {contract.KAI_TOPOLOGY_REQUIRED} "
        f"or {contract.KAI_TOPOLOGY_PREFERRED})"
    )
    return (Note(message),)


def _wider(wish: Wish) -> Note:
    return Note(
        f"{wish.title}: annotation {contract.KAI_TOPOLOGY_PREFERRED}: {wish.preferred} is wider than "
        f"{contract.KAI_TOPOLOGY_REQUIRED}: {wish.required} and adds nothing, so it is dropped "
        "(allowed: the required level or a narrower one)"
    )


def _rank(topology: Topology, value: str) -> int | None:
    return next((rank for rank, names in enumerate(topology.levels) if value in names), None)


def _one(topology: Topology) -> str:
    return f"{topology.name} (levels: {', '.join(label for label, _ in topology.levels)})"


def _all(topologies: Sequence[Topology]) -> str:
    return "; ".join(f"Topology {_one(topology)}" for topology in topologies) or "there is no Topology"
