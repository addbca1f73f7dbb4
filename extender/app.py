"""The extender, put together: watches in, planning rounds, kube-scheduler's verbs out.

informers ──► Pods, Nodes, owners ──► registry, room ──► round ──► grants ──► API server
                                             ▲             │
kube-scheduler ──► guard (reads) ────────────┘             ▼
              └──► barrier (waits) ◄───────────────── permit store
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from extender import owners as owner_kinds
from extender import verbs
from extender.absentees import Absentees
from extender.api import Api, connect
from extender.barrier import Barrier
from extender.binder import Binder
from extender.clock import steady_clock
from extender.cluster import Nodes, OwnerKind, Pods
from extender.consolidation import Consolidation
from extender.debug import Debug
from extender.events import EventWriter
from extender.evictor import Evictor
from extender.freshness import Freshness
from extender.grants import Grants
from extender.guard import Guard
from extender.informer import Handler, Informer
from extender.leadership import Leadership
from extender.leases import Election, elector
from extender.metrics import Gauges, endpoint
from extender.news import News
from extender.owners import Owners
from extender.preemption import Preemption, Rules
from extender.queue_status import QueueStatus
from extender.queues import PATH as QUEUES
from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import Rounds
from extender.slipped import Slipped
from extender.store import PermitStore
from extender.topologies import Topologies
from extender.torn import Torn
from extender.unprotected import OpenGuard, scatter
from extender.views import Views
from extender.volumes import CLAIMS, VOLUMES, ClaimKey, Volumes
from gangs.planner import place
from gangs.room import Room

PROTECTIONS: Final = frozenset({"barrier", "guard", "domain", "preconditions", "limits"})

_DEBOUNCE_SECONDS: Final = 0.005  # one round for a burst of watch events
_IDLE_SECONDS: Final = 0.5  # clocks of boardings and back-offs are looked at this often
_BACKLOG: Final = 4096  # a large gang's bind calls arrive on as many new connections at once

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. kubeconfig None: in the cluster. port 0: any free one. rules: who may be evicted.

    profiles: names of the schedulers that we serve. unprotected: protections switched off, a subset of
    PROTECTIONS; only for proving that whoever judges our promises would notice.
    """

    kubeconfig: Path | None
    host: str
    port: int
    profiles: tuple[str, ...]
    unprotected: frozenset[str] = frozenset()
    election: Election = field(default_factory=Election)
    rules: Rules = field(default_factory=Rules)


class Extender:
    """All parts of one running extender."""

    def __init__(self, api: Api, options: Options) -> None:
        self.wake = asyncio.Event()
        self.synced = False
        self._api = api
        self._clock = clock = steady_clock()
        off = options.unprotected
        self.owners = Owners()
        self.registry = Registry(self.owners)
        self.room = Room()
        self.queues = Queues(self.room, self.wake.set, limited="limits" not in off)
        self.freshness = Freshness(clock)
        self._stale: tuple[str, ...] = ()
        self.slipped = Slipped(api, self.owners, options.profiles, clock)
        self.leadership = Leadership(elector(api, options.election, clock), clock, self._changed_hands)
        binder = Binder(api, self._term, preconditions="preconditions" not in off)
        self.barrier = Barrier(
            binder,
            self.registry,
            self.room,
            self.queues,
            closed="barrier" not in off,
            guarded="guard" not in off,
        )
        self.store = PermitStore(self.registry, self.room, self.barrier, clock, random.random, self.wake.set)
        self.pods = Pods(
            frozenset(options.profiles),
            self.registry,
            self.room,
            self.store,
            self._term,
            clock,
            self.wake.set,
            self.slipped.consider,
        )
        self.barrier.connect(self.pods, self.store)
        self.topologies = Topologies(api)
        self.volumes = Volumes(self._claim_changed)
        self.grants = Grants(api, self.store, self._term, preconditions="preconditions" not in off)
        self.rounds = Rounds(
            self.registry,
            self.room,
            self.store,
            self.queues,
            self.grants,
            clock,
            self.topologies.lifted,
            scatter if "domain" in off else place,
            self.volumes.shape,
        )
        guard = OpenGuard if "guard" in off else Guard
        self.guard = guard(self.registry, self.room, self.store, self.rounds, self.queues)
        self.absentees = Absentees(api, clock)
        self.news = News(self.registry, self.room, self.store, self.rounds, self.absentees.why)
        views = Views(self.registry, self.room, self.store, self.rounds, self.news)
        consolidation = Consolidation(self.registry, self.room, self.rounds, self.volumes.shape)
        self.debug = Debug(views, self.registry, self.room, self.store, self.rounds, consolidation)
        self.gauges = Gauges(self.store, self.rounds, self.freshness, lambda: self.leads)
        self.torn = Torn(api, self.rounds, clock)
        self.queue_status = QueueStatus(api, self.queues, self.registry, clock)
        self.preemption = Preemption(
            options.rules,
            Evictor(api, clock),
            self.rounds,
            self.registry,
            self.room,
            self.store,
            self.queues,
            clock,
            lambda: self.leads,
        )
        self.events = EventWriter(api, clock)

    def informers(self) -> list[Informer]:
        """Nodes first: room for Pods is counted on them."""
        handlers: dict[str, Handler] = {
            "/api/v1/nodes": Nodes(self.registry, self.room, self.store, self.wake.set),
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
                    self.rounds.run()

    async def announce(self) -> None:
        """Say once a second what there is to say, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if not self.leads:
                self.registry.noted.clear()  # the leader tells people
                continue
            if self._awaits_topology() and await self.topologies.refresh():
                self.wake.set()
            await self.absentees.look(self.rounds.pending)
            self.events.put(self.news.due(self._clock()))
            self.events.put(await self.torn.mend())
            self.events.put(await self.slipped.tell())

    async def evict(self) -> None:
        """Clear domains for gangs that may have others evicted, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if self.leads:
                self.events.put(await self.preemption.look())

    async def account(self) -> None:
        """Keep the status of Queues, until cancelled; apart, so that a slow write holds up nothing else."""
        while True:
            await asyncio.sleep(1.0)
            if self.leads:
                await self.queue_status.write()

    async def work(self, on_synced: Callable[[], None]) -> None:
        """Watch, plan and announce until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            informers = self.informers()
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.synced.wait()
            await self.topologies.refresh()
            self.synced = True
            log.info("caches are synced", nodes=len(self.room.nodes), pods=len(self.room.seats))
            works = (self.leadership.run, self.plan, self.announce, self.events.run, self.evict, self.account)
            for work in works:
                tasks.create_task(work())
            on_synced()

    @property
    def leads(self) -> bool:
        """Whether this one plans, grants and binds now."""
        return bool(self.leadership.term)

    def _claim_changed(self, claim: ClaimKey) -> None:
        self.registry.claim_changed(*claim)
        self.wake.set()

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
        self.queue_status.forget()
        self.wake.set()

    def _awaits_topology(self) -> bool:
        return any(n.topology for row in self.rounds.pending.values() for n in row.gang.notes)


async def run(options: Options, stop: asyncio.Event, on_ready: Callable[[int], None]) -> None:
    """Serve until stop is set. on_ready gets the bound port once the caches are synced.

    Raises KubeconfigError, and OSError where the port is taken.
    """
    async with AsyncExitStack() as stack:
        api = await connect(options.kubeconfig)
        stack.push_async_callback(api.close)
        extender = Extender(api, options)
        port = await _serve(extender, options, stack)
        working = asyncio.create_task(extender.work(lambda: on_ready(port)))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _serve(extender: Extender, options: Options, stack: AsyncExitStack) -> int:
    app = verbs.application(extender.guard, extender.barrier, lambda: extender.synced, lambda: extender.leads)
    app.router.add_get("/metrics", endpoint(extender.gauges))
    app.add_subapp("/debug", extender.debug.application())
    runner = verbs.runner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, options.host, options.port, backlog=_BACKLOG)
    await site.start()
    return int(runner.addresses[0][1])
