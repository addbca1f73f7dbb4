"""The subgroups of one gang, put together from the paths that its Pods carry: who is in which, and how
many of each must board at once.

    path of each member (gangs/subgroups.py) ──► assemble() ──► Part ──► met(UIDs): may these board?
                                                                   └──► gangs/seating.py: where
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from gangs.room import Domain, Level
from gangs.subgroups import Subgroup

Path = tuple[Subgroup, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A subgroup with everyone in it, or the whole gang (name "").

    floor: how many of its members must board at once; of its parts, where it has any.
    members: UIDs of all in it, those in its parts included.
    required: node labels that its members must share; preferred: one that they should, "" for none.
    """

    name: str
    floor: int
    members: frozenset[str]
    parts: tuple["Part", ...] = ()
    required: Level = ()
    preferred: str = ""

    def met(self, uids: Set[str]) -> bool:
        """Whether these are enough to board. A part that needs nobody is no help to what encloses it."""
        if not self.parts:
            return len(self.members & uids) >= self.floor
        return sum(part.met(uids) for part in self.parts if part.floor) >= self.floor

    @property
    def least(self) -> int:
        """How many members board at once at least."""
        if not self.parts:
            return self.floor
        return sum(sorted(part.least for part in self.parts if part.floor)[: self.floor])

    @property
    def leaves(self) -> tuple["Part", ...]:
        """The innermost parts; itself where it has none."""
        return tuple(leaf for part in self.parts for leaf in part.leaves) if self.parts else (self,)

    @property
    def everything(self) -> tuple["Part", ...]:
        """Itself and all parts in it, outermost first."""
        return self, *(inner for part in self.parts for inner in part.everything)

    def relaxed(self) -> "Part":
        """The same domains, and nobody needs anybody: the barrier is behind this gang."""
        return replace(self, floor=0, parts=tuple(part.relaxed() for part in self.parts))


@dataclass(frozen=True, slots=True)
class Site:
    """Where members of a part sit already.

    anchors: domains of its required level, empty: free choice. near: values of its preferred label.
    """

    anchors: frozenset[Domain] = frozenset()
    near: frozenset[str] = frozenset()


def assemble(members: Iterable[tuple[str, Path]], min_subgroup: int | None) -> Part | None:
    """The whole gang as a Part; None where no member is in a subgroup.

    members: UID and path of each, oldest first: where they disagree on a subgroup, the newest is right.
    min_subgroup: how many of the outermost subgroups must be whole, None for all that there are.
    """
    rows = list(members)
    parts = _parts(rows, 0)
    if not parts:
        return None
    return Part("", _of_parts(min_subgroup, parts), frozenset(uid for uid, _ in rows), parts)


def _parts(rows: Iterable[tuple[str, Path]], depth: int) -> tuple[Part, ...]:
    groups: dict[str, list[tuple[str, Path]]] = {}
    for uid, path in rows:
        if len(path) > depth:
            groups.setdefault(path[depth].name, []).append((uid, path))
    return tuple(_part(groups[name], depth) for name in sorted(groups))


def _part(rows: list[tuple[str, Path]], depth: int) -> Part:
    said = rows[-1][1][depth]
    parts = _parts(rows, depth + 1)
    return Part(
        name=said.name,
        floor=_of_parts(said.min_subgroup, parts) if parts else said.min_member,
        members=frozenset(uid for uid, _ in rows),
        parts=parts,
        required=said.required,
        preferred="".join(said.preferred[-1:]),
    )


def _of_parts(asked: int | None, parts: Iterable[Part]) -> int:
    return sum(part.floor > 0 for part in parts) if asked is None else asked
