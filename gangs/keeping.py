"""Which domain is kept for a gang that finds no room now, so that it boards one day (rule 14 of the design).

Of those that could hold its floor if nobody else were there, the one with the most room now: it takes the
least to come free. A gang of which only subgroups ask for domains has one kept for each of these.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from gangs.parts import Part
from gangs.planner import Boarding, eligible, holds, slots_in
from gangs.room import Domain, Level, Room


def domain_to_keep(boarding: Boarding, room: Room) -> Domain | None:
    """The domain in which a gang that doesn't fit now will board first, as far as one can tell.

    Of those that could hold the floor when empty, the one with the most room now; None if none could.
    Looks at every node of the cluster, so not for every round.
    """
    return _roomiest(boarding, room, room.emptied())


def able_domains(boarding: Boarding, room: Room) -> tuple[Domain, ...]:
    """All domains that could hold the floor if nobody else were there. Looks at every node."""
    empty = room.emptied()
    return tuple(domain for domain in sorted(eligible(boarding, room)) if holds(domain, boarding, empty))


def roomiest(able: Iterable[Domain], boarding: Boarding, room: Room) -> Domain | None:
    """Of these the one with the most room now, the first of equals."""
    return max(able, key=lambda domain: slots_in(boarding, room, domain), default=None)


def domains_to_keep(boarding: Boarding, room: Room) -> tuple[tuple[Level, Domain], ...]:
    """The same for a gang of which only subgroups ask for domains: one for each, or for as many as fit in.

    () where some subgroup could board nowhere even if nobody else were there.
    """
    empty = room.emptied()
    chosen: dict[tuple[Level, Domain], list[Part]] = {}
    for part in sorted(_in_domains(boarding.whole), key=lambda p: (-p.least, p.name)):
        shared = (
            (level, domain)
            for (level, domain), inside in chosen.items()
            if level == part.required and holds(domain, _alone(boarding, (*inside, part)), empty)
        )
        where = next(shared, None)
        if where is None:
            taken = {domain for level, domain in chosen if level == part.required}
            domain = _roomiest(_alone(boarding, (part,)), room, empty, taken)
            if domain is None:
                return ()
            where = part.required, domain
        chosen.setdefault(where, []).append(part)
    return tuple(chosen)


def _roomiest(boarding: Boarding, room: Room, empty: Room, taken: Set[Domain] = frozenset()) -> Domain | None:
    """Of the domains that could hold the floor when empty, the one with the most room now."""
    ranked = sorted(eligible(boarding, room), key=lambda d: (-slots_in(boarding, room, d), d))
    return next((d for d in ranked if d not in taken and holds(d, boarding, empty)), None)


def _in_domains(whole: Part | None) -> Iterator[Part]:
    """The outermost parts that need somebody and ask for a domain."""
    for part in whole.parts if whole else ():
        if part.required and part.floor:
            yield part
        elif not part.required:
            yield from _in_domains(part)


def _alone(boarding: Boarding, parts: Sequence[Part]) -> Boarding:
    """These parts, which share a level, as a gang by themselves."""
    uids = frozenset(uid for part in parts for uid in part.members)
    whole = Part("", len(parts), uids, tuple(replace(part, required=()) for part in parts))
    members = tuple(m for m in boarding.members if m.uid in uids)
    return Boarding(members, whole.least, parts[0].required, whole=whole, only_floor=True)
