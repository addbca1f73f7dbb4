"""What decides, put together: watches in, planning rounds, permits, kube-scheduler's verbs.

informers ──► Pods, Nodes, owners ──► registry, room ──► round ──► grants ──► API server
                                             ▲             │
kube-scheduler ──► guard (reads) ────────────┘             ▼
              └──► barrier (waits) ◄───────────────── permit store

What became of it is told by extender/telling.py.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import structlog

from extender import owners as owner_kinds
from extender.api import Api
from extender.barrier import Barrier
from extender.binder import Binder
from extender.claims import RESOURCE_CLAIMS, TEMPLATES, Claims
from extender.cluster import Nodes, OwnerKind, Pods
from extender.freshness import Freshness
from extender.grants import Grants
from extender.guard import Guard
from extender.informer import Handler, Informer
from extender.keeper import Keeper
from extender.leadership import Leadership
from extender.leases import elector
from extender.metrics import Meters
from extender.options import Options
from extender.owners import Owners
from extender.queues import PATH as QUEUES
from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import Rounds
from extender.shapes import Shapes
from extender.slices import CLASSES, SLICES, Devices
from extender.slipped import Slipped
from extender.store import PermitStore
from extender.topologies import Topologies
from extender.unprotected import HeedlessKeeper, OpenGuard, scatter
from extender.volumes import CLAIMS, VOLUMES, Volumes
from gangs.planner import place
from gangs.room import Room

_DEBOUNCE_SECONDS: Final = 0.005  # one round for a burst of watch events
_IDLE_SECONDS: Final = 0.5  # clocks of boardings and back-offs are looked at this often

log = structlog.get_logger(__name__)


class Core:
    """What is known and what is promised. handed_over: called when a term has ended."""

    def __init__(self, api: Api, options: Options, clock: Callable[[], float]) -> None:
        self.wake = asyncio.Event()
        self.handed_over: list[Callable[[], None]] = []
        self._api = api
        self._clock = clock
        off = options.unprotected
        self.owners = Owners()
        self.registry = Registry(self.owners)
        self.room = Room()
        self.volumes = Volumes(self._claim_changed)
        self.devices = Devices(self._devices_changed)
        self.claims = Claims(self.devices, self.room, self._claim_changed)
        self.shapes = shapes = Shapes(self.volumes, self.claims)
        self.queues = Queues(self.room, self.wake.set, limited="limits" not in off)
        self.freshness = Freshness(clock)
        self._stale: tuple[str, ...] = ()
        self.slipped = Slipped(api, self.owners, options.profiles, clock)
        self.leadership = Leadership(elector(api, options.election, clock), clock, self._changed_hands)
        self.meters = Meters(self.registry)
        retried = self.meters.retries.labels
        binder = Binder(
            api, self._term, preconditions="preconditions" not in off, retried=retried("binding").inc
        )
        self.barrier = Barrier(
            binder,
            self.registry,
            self.room,
            self.queues,
            closed="barrier" not in off,
            guarded="guard" not in off,
        )
        self.store = PermitStore(
            self.registry, self.room, self.barrier, clock, random.random, self.wake.set, shapes
        )
        self.nodes = Nodes(self.registry, self.room, self.store, self.wake.set, self.devices.equip)
        self.pods = Pods(
            frozenset(options.profiles),
            self.registry,
            self.room,
            self.store,
            self._term,
            clock,
            self.wake.set,
            self.slipped.consider,
            shapes,
        )
        self.barrier.connect(self.pods, self.store)
        self.topologies = Topologies(api)
        self.grants = Grants(
            api,
            self.store,
            self._term,
            preconditions="preconditions" not in off,
            retried=retried("grant").inc,
        )
        self.rounds = Rounds(
            self.registry,
            self.room,
            self.store,
            self.queues,
            self.grants,
            clock,
            self.topologies.lifted,
            scatter if "domain" in off else place,
            shapes,
            HeedlessKeeper if "order" in off else Keeper,
        )
        guard = OpenGuard if "guard" in off else Guard
        self.guard = guard(self.registry, self.room, self.store, self.rounds, self.queues, shapes)

    def informers(self) -> list[Informer]:
        """Nodes first: room for Pods is counted on them."""
        handlers: dict[str, Handler] = {
            "/api/v1/nodes": self.nodes,
            CLASSES: self.devices.classes,
            SLICES: self.devices.slices,
            TEMPLATES: self.claims.templates,
            RESOURCE_CLAIMS: self.claims.claims,
            QUEUES: self.queues,
            VOLUMES: self.volumes.volumes,
            CLAIMS: self.volumes.claims,
            "/api/v1/pods": self.pods,
        }
        for kind, path in owner_kinds.PATHS.items():
            handlers[path] = OwnerKind(kind, self.owners, self.registry, self._clock, self.wake.set)
        heard = self.freshness.heard
        return [Informer(self._api, path, handler, heard=heard) for path, handler in handlers.items()]

    async def plan(self) -> None:
        """Planning rounds, whenever something changed, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self.wake.wait()
            await asyncio.sleep(_DEBOUNCE_SECONDS)
            self.wake.clear()
            if self.leads:
                self.store.tick()
                if self._is_fresh():
                    with self.meters.round.time():
                        self.rounds.run()

    @property
    def leads(self) -> bool:
        """Whether this one plans, grants and binds now."""
        return bool(self.leadership.term)

    def _claim_changed(self, namespace: str, name: str) -> None:
        for pod in self.registry.claim_changed(namespace, name):
            self.pods.reseat(pod)

    def _devices_changed(self, nodes: Iterable[str]) -> None:
        self.nodes.refresh(nodes)
        self.claims.devices_changed(nodes)

    def _is_fresh(self) -> bool:
        """Whether plans may be made; says so when that changes."""
        stale = self.freshness.stale
        if stale != self._stale:
            log.warning("age of watches decides on new grants", too_old=stale, granting=not stale)
            self._stale = stale
        return not stale

    def _term(self) -> str:
        return self.leadership.term

    def _changed_hands(self) -> None:
        """A term has ended, and perhaps another begun: nothing of the old one goes on."""
        self.grants.abandon()
        self.store.reset()
        self.rounds.restart()
        for call in self.handed_over:
            call()
        self.wake.set()
