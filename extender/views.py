"""How gangs and cliques stand now, for people: what the debug pages show and PodGroups mirror.

Reads registry, permits and room and changes nothing. A gang's sentence is the one that its events told
last; only a look at one gang works it out anew, since that looks at every node of a domain.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from extender.news import News
from extender.registry import Registry
from extender.rounds import Rounds
from extender.standing import Standing
from extender.store import PermitStore
from gangs.contract import GPU, NODE_CLIQUE
from gangs.muster import Muster
from gangs.permits import Permit
from gangs.pods import GangKey
from gangs.room import Domain, Room, domain_of

_BATCH: Final = 50  # gangs that are looked at before others get their turn


class Phase(StrEnum):
    """The states of a gang on its road."""

    GATHERING = "Gathering"
    WAITING = "Waiting"
    GRANTED = "Granted"
    BOARDING = "Boarding"
    ABOARD = "Aboard"


@dataclass(frozen=True, slots=True)
class GangView:
    """One gang. label: its gang label; name: how people know it.

    here: live members; floor of them board at once; size: how many there are to be; bound: have a node.
    domain: where they are, or are to board; () while that is open. created: epoch seconds.
    reason, message: why members wait, "" where none does.
    """

    namespace: str
    label: str
    name: str
    phase: Phase
    here: int
    floor: int
    size: int
    bound: int
    domain: Domain
    created: float
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class CliqueView:
    """GPUs of one clique: all there are, taken by bound Pods, promised to members not bound yet."""

    clique: str
    nodes: int
    gpus: int
    used: int
    promised: int


class Views:
    """Looks at everything, on request."""

    def __init__(
        self, registry: Registry, room: Room, store: PermitStore, rounds: Rounds, news: News
    ) -> None:
        self._registry = registry
        self._room = room
        self._store = store
        self._rounds = rounds
        self._news = news

    def gangs(self) -> Iterator[GangView]:
        """Every gang with a live member, in no order."""
        return (view for key in list(self._registry.keys) if (view := self.gang(key)))

    async def each(self) -> AsyncIterator[GangView]:
        """The same; in between kube-scheduler's calls get their turn."""
        for number, view in enumerate(self.gangs()):
            if number % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            yield view

    def gang(self, key: GangKey) -> GangView | None:
        """One gang, None where it has no live member."""
        gang = self._registry.muster(key)
        if gang is None:
            return None
        row = self._rounds.pending.get(key)
        return GangView(
            namespace=key[0],
            label=key[1],
            name=gang.name,
            phase=phase(gang, self._store.permit(key), row.standing if row else None),
            here=len(gang.everyone),
            floor=gang.floor,
            size=gang.size,
            bound=len(gang.bound),
            domain=self._domain(gang),
            created=gang.created,
            reason=row.standing.value if row else "",
            message=self._news.told(key) if row else "",
        )

    def find(self, namespace: str, name: str) -> GangKey | None:
        """The gang of that label or name, or of an owner or Pod of that name."""
        if (namespace, name) in self._registry.keys:
            return namespace, name
        for key in self._registry.keys:
            if key[0] == namespace and key[1].rpartition("-")[0] == name:
                return key
        for pod in self._registry.pods.values():
            if pod.namespace == namespace and pod.gang and name in (pod.name, pod.owner and pod.owner.name):
                return pod.key
        return None

    def sentence(self, key: GangKey) -> str:
        """Why the gang waits, worked out now; "" where it doesn't."""
        row = self._rounds.pending.get(key)
        return self._news.sentence(row) if row else ""

    def cliques(self) -> list[CliqueView]:
        """Every clique by name; nodes without one are "" and come first."""
        sums: dict[str, list[int]] = {}
        for node in self._room.nodes.values():
            row = sums.setdefault(node.labels.get(NODE_CLIQUE, ""), [0, 0, 0, 0])
            used, promised = self.taken(node.name)
            for i, number in enumerate((1, node.allocatable.get(GPU, 0), used, promised)):
                row[i] += number
        return [CliqueView(clique, *row) for clique, row in sorted(sums.items())]

    def taken(self, node: str) -> tuple[int, int]:
        """GPUs of a node that bound Pods use, and that members not bound yet are promised."""
        used = promised = 0
        for uid, seat in self._room.holders(node):
            pod = self._registry.pods.get(uid)
            gpus = seat.requests.get(GPU, 0)
            if pod is None or pod.node:
                used += gpus
            else:
                promised += gpus
        return used, promised

    def _domain(self, gang: Muster) -> Domain:
        return self._store.permit(gang.key).domain or shared(gang, self._room)


def phase(gang: Muster, permit: Permit, standing: Standing | None) -> Phase:
    """Where on its road the gang is."""
    if gang.complete:
        return Phase.ABOARD
    if permit.boarding:
        return Phase.BOARDING if permit.arrived or permit.binding or gang.bound else Phase.GRANTED
    return Phase.GATHERING if standing is Standing.GATHERING else Phase.WAITING


def shared(gang: Muster, room: Room) -> Domain:
    """The domain in which the bound members are, () where there is no single one."""
    domains = set(_domains(gang, room)) if gang.required else set()
    return domains.pop() if len(domains) == 1 else ()


def _domains(gang: Muster, room: Room) -> Iterable[Domain]:
    nodes = (room.nodes.get(pod.node) for pod in gang.bound)
    return (domain for node in nodes if node and (domain := domain_of(node, gang.required)))
