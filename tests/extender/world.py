"""The extender's parts put together without HTTP: time, the API server and the grant writer are fakes.

World().update(pods) ──► round() ──► writer.grants · barrier.bind() ──► api.calls
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from extender.absentees import Absentees
from extender.api import ApiError
from extender.barrier import Barrier
from extender.binder import Binder
from extender.claims import Claims
from extender.cluster import Nodes, Pods
from extender.guard import Guard
from extender.news import News
from extender.owners import Owners
from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import GrantWriter, Rounds
from extender.shapes import Shapes
from extender.slices import Devices
from extender.standing import Standing
from extender.store import PermitStore
from extender.volumes import Volumes
from gangs import contract
from gangs.muster import Muster
from gangs.notes import Note
from gangs.pods import GangKey, Pod
from gangs.room import Domain
from tests.builders import KEY, LEVEL, Json, make_members, make_room

START = 10_000.0


@dataclass
class Clock:
    """Time that a test moves."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Call:
    """One call of the API client."""

    method: str
    path: str
    body: Any = None


@dataclass
class FakeApi:
    """Remembers calls. errors: raised one after another by calls whose path contains the key.
    objects: answers of get. versions: of the objects after each patch. delay: how long each write takes.
    """

    calls: list[Call] = field(default_factory=list)
    errors: dict[str, list[ApiError]] = field(default_factory=dict)
    objects: dict[str, Json] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    delay: float = 0.0

    async def create(self, path: str, body: Json, params: Mapping[str, str] | None = None) -> Json:
        return await self._answer("POST" if params is None else "DRY", path, body)

    async def patch(self, path: str, body: Any) -> Json:
        await self._answer("PATCH", path, body)
        return {"metadata": {"resourceVersion": self.versions.pop(0) if self.versions else ""}}

    async def delete(self, path: str, body: Json | None = None) -> Json:
        return await self._answer("DELETE", path, body)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        await self._answer("GET", path, None)
        return self.objects.get(path)

    def fail(self, path: str, *statuses: int, message: str = "no") -> None:
        """Let the next calls of paths that contain this one fail, 0 meaning unreachable."""
        self.errors[path] = [ApiError("CALL", path, status, "", message) for status in statuses]

    def paths(self, method: str = "POST") -> list[str]:
        """Where calls of this method went, in order."""
        return [call.path for call in self.calls if call.method == method]

    async def _answer(self, method: str, path: str, body: Any) -> Json:
        await asyncio.sleep(self.delay)
        self.calls.append(Call(method, path, body))
        for key, errors in self.errors.items():
            if key in path and errors:
                raise errors.pop(0)
        return {}


@dataclass
class Grant:
    """What the grant writer was told."""

    gang: GangKey
    seats: dict[str, str]
    domain: Domain
    deadline: float


class FakeWriter:
    """Remembers grants."""

    def __init__(self) -> None:
        self.grants: list[Grant] = []

    def grant(self, gang: Muster, seats: Iterable[tuple[Pod, str]], domain: Domain, deadline: float) -> None:
        """Nothing is written."""
        self.grants.append(Grant(gang.key, {p.name: node for p, node in seats}, domain, deadline))


class World:
    """Cliques by name with so many nodes each, and everything that watches them."""

    def __init__(
        self,
        cliques: Mapping[str, int] | None = None,
        clock: Callable[[], float] | None = None,
        writer: GrantWriter | None = None,
    ) -> None:
        self.clock = Clock()
        time = clock or self.clock
        self.api = FakeApi()
        self.written = FakeWriter()
        self.woken = 0
        self.lifted: set[str] = set()
        self.owners = Owners()
        self.registry = Registry(self.owners)
        self.room = make_room({"a": 4} if cliques is None else cliques)
        self.term = "7"
        binder = Binder(self.api, lambda: self.term)
        self.queues = Queues(self.room, self._wake)
        self.barrier = Barrier(binder, self.registry, self.room, self.queues)
        self.volumes = Volumes(self._claim_changed)
        self.devices = Devices(self._devices_changed)
        self.claims = Claims(self.devices, self.room, self._claim_changed)
        self.shapes = shapes = Shapes(self.volumes, self.claims)
        self.store = PermitStore(
            self.registry, self.room, self.barrier, time, lambda: 0.0, self._wake, shapes
        )
        profiles = frozenset({contract.SCHEDULER_NAME})
        self.pods = Pods(
            profiles,
            self.registry,
            self.room,
            self.store,
            lambda: self.term,
            time,
            self._wake,
            shape=shapes,
        )
        self.nodes = Nodes(self.registry, self.room, self.store, self._wake, self.devices.equip)
        for node in list(self.room.nodes.values()):
            self.nodes.update(node)
        self.barrier.connect(self.pods, self.store)
        self.rounds = Rounds(
            self.registry,
            self.room,
            self.store,
            self.queues,
            writer or self.written,
            time,
            self._is_lifted,
            shape=shapes,
        )
        self.guard = Guard(self.registry, self.room, self.store, self.rounds, self.queues, shapes)
        self.absentees = Absentees(self.api, time)
        self.news = News(self.registry, self.room, self.store, self.rounds, self.absentees.why)

    def update(self, *pods: Pod) -> None:
        """What the Pod watch says."""
        for pod in pods:
            self.pods.update(pod)

    def round(self, after: float = 0.0) -> None:
        """One planning round, so many seconds later."""
        self.clock.advance(after)
        self.store.tick()
        self.rounds.run()

    def board(self, *pods: Pod) -> None:
        """These members come and get their seats."""
        self.update(*pods)
        self.round()

    def bind(self, *pods: Pod) -> None:
        """The watch says that these members are bound to their seats."""
        for pod in pods:
            self.update(replace(pod, node=self.seat(pod), gates=()))

    def seat(self, pod: Pod) -> str:
        """The node that the Pod was granted, "" for none."""
        return self.store.seat(self.registry.pods[pod.uid]) or ""

    def seats(self, *pods: Pod) -> list[str]:
        """The nodes that these Pods were granted."""
        return [self.seat(pod) for pod in pods]

    def standing(self, key: GangKey = KEY) -> Standing | None:
        """Why the gang has unseated members, None where it has none."""
        row = self.rounds.pending.get(key)
        return row.standing if row else None

    def _claim_changed(self, namespace: str, name: str) -> None:
        for pod in self.registry.claim_changed(namespace, name):
            self.pods.reseat(pod)

    def _devices_changed(self, nodes: Iterable[str]) -> None:
        self.nodes.refresh(nodes)
        self.claims.devices_changed(nodes)

    def _wake(self) -> None:
        self.woken += 1

    def _is_lifted(self, note: Note) -> bool:
        return note.topology in self.lifted


async def settle() -> None:
    """Let everything that can run now do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def gang(number: int, name: str = "llm", **rest: object) -> list[Pod]:
    """So many members that board one clique together."""
    return make_members(number, name=name, required=LEVEL, **rest)  # type: ignore[arg-type]
