"""The extender, put together: watches in, planning rounds, kube-scheduler's verbs out.

informers ──► Pods, Nodes, owners ──► registry, room ──► round ──► grants ──► API server
                                             ▲             │
kube-scheduler ──► guard (reads) ────────────┘             ▼
              └──► barrier (waits) ◄───────────────── permit store
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
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
from extender.boardings import Boardings
from extender.claims import RESOURCE_CLAIMS, TEMPLATES, Claims
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
from extender.keeper import Keeper
from extender.leadership import Leadership
from extender.leases import Election, elector
from extender.live import Live
from extender.metrics import Gauges, Meters, endpoint
from extender.mirror import Mirror
from extender.news import Announcement, News
from extender.owners import Owners
from extender.page import Page
from extender.podgangs import PATH as PODGANGS
from extender.podgangs import PodGangs
from extender.preemption import Preemption, Rules
from extender.queue_status import QueueStatus
from extender.queues import PATH as QUEUES
from extender.queues import Queues
from extender.registry import Registry
from extender.rounds import Rounds
from extender.scaleup import ScaleUp
from extender.shapes import Shapes
from extender.slices import CLASSES, SLICES, Devices
from extender.slipped import Slipped
from extender.stale import Stale
from extender.store import PermitStore
from extender.topologies import Topologies
from extender.torn import Torn
from extender.unprotected import HeedlessKeeper, OpenGuard, scatter
from extender.views import Views
from extender.volumes import CLAIMS, VOLUMES, Volumes
from gangs.planner import place
from gangs.room import Room

PROTECTIONS: Final = frozenset({"barrier", "guard", "domain", "limits", "order", "preconditions"})

_DEBOUNCE_SECONDS: Final = 0.005  # one round for a burst of watch events
_IDLE_SECONDS: Final = 0.5  # clocks of boardings and back-offs are looked at this often
_BACKLOG: Final = 4096  # a large gang's bind calls arrive on as many new connections at once

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. kubeconfig None: in the cluster. port 0: any free one. probe_port None: no such port.

    rules: who may be evicted.

    profiles: names of the schedulers that we serve. unprotected: protections switched off, a subset of
    PROTECTIONS; only for proving that whoever judges our promises would notice.
    scale_up_after: see extender/scaleup.py, None for never.
    """

    kubeconfig: Path | None
    host: str
    port: int
    profiles: tuple[str, ...]
    unprotected: frozenset[str] = frozenset()
    election: Election = field(default_factory=Election)
    scale_up_after: float | None = None
    probe_port: int | None = None
    rules: Rules = field(default_factory=Rules)


class Extender:
    """All parts of one running extender."""

    def __init__(self, api: Api, options: Options) -> None:
        self.wake = asyncio.Event()
        self.synced = False
        self._api = api
        self._clock = clock = steady_clock()
        self._began = clock()
        off = options.unprotected
        self.owners = Owners()
        self.registry = Registry(self.owners)
        self.room = Room()
        self.volumes = Volumes(self._claim_changed)
        self.devices = Devices(self._devices_changed)
        self.claims = Claims(self.devices, self.room, self._claim_changed)
        shapes = Shapes(self.volumes, self.claims)
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
        self.absentees = Absentees(api, clock)
        self.news = News(self.registry, self.room, self.store, self.rounds, self.absentees.why)
        views = Views(self.registry, self.room, self.store, self.rounds, self.news)
        self.mirror = Mirror(api, self.registry, self.rounds, views, clock, lambda: self.leads)
        consolidation = Consolidation(self.registry, self.room, self.rounds, shapes)
        self.debug = Debug(views, self.registry, self.room, self.store, self.rounds, consolidation)
        self.page = Page(Live(views, self.registry, self.room, self.store, clock, lambda: self.leads))
        self.gauges = Gauges(self.store, self.rounds, self.freshness, views, lambda: self.leads, clock)
        self.store.journal.listeners.append(self.meters.follow)
        self.podgangs = PodGangs(api, self.registry, self.room, self.news.standing, clock)
        self.torn = Torn(api, self.rounds, clock)
        self.stale = Stale(api, self.registry, clock)
        self.scale_up = ScaleUp(api, self.rounds, clock, options.scale_up_after)
        self.boardings = Boardings(self.registry, self.store)
        self.events = EventWriter(
            api,
            clock,
            lambda reason: self.meters.events.labels(reason.value).inc(),
            self.meters.events_lost.inc,
        )
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

    async def announce(self) -> None:
        """Say once a second what there is to say, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if not self.leads:
                self.registry.noted.clear()  # the leader tells people
                self.registry.stirred.clear()
                continue
            if self._awaits_topology() and await self.topologies.refresh():
                self.wake.set()
            await self.absentees.look(self.rounds.pending)
            said = self.boardings.heard(await self._news())
            self.rounds.moved.update(row.pod.key for row in said)
            self.events.put(said)
            self.events.put(self.boardings.due(self._clock()))
            self.events.put(await self.torn.mend())
            self.events.put(await self.stale.end())
            self.events.put(await self.scale_up.release())
            self.events.put(await self.slipped.tell())
            await self.podgangs.write(self.rounds.pending.keys())

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

    async def follow_podgangs(self) -> None:
        """Watch Grove's PodGangs once there are any to watch; nothing waits for that."""
        await self.podgangs.installed()
        await Informer(self._api, PODGANGS, self.podgangs).run()

    async def _news(self) -> list[Announcement]:
        """What waiting gangs are to be told; in between kube-scheduler's calls get their turn."""
        said: list[Announcement] = []
        for step in self.news.steps(self._clock()):
            said += step
            await asyncio.sleep(0)
        return said

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
            self.gauges.rebuilt = self._clock() - self._began
            log.info("caches are synced", nodes=len(self.room.nodes), pods=len(self.room.seats))
            for work in (
                self.leadership.run,
                self.plan,
                self.announce,
                self.events.run,
                self.mirror.run,
                self.follow_podgangs,
                self.evict,
                self.account,
            ):
                tasks.create_task(work())
            on_synced()

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
        self.podgangs.recheck()
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
    metrics = endpoint(extender.gauges, extender.meters)
    app = verbs.application(extender.guard, extender.barrier, lambda: extender.synced, lambda: extender.leads)
    app.middlewares.append(extender.meters.timed)
    app.router.add_get("/metrics", metrics)
    extender.page.add_to(app)
    app.add_subapp("/debug", extender.debug.application())
    runner = verbs.runner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, options.host, options.port, backlog=_BACKLOG)
    await site.start()
    if options.probe_port is not None:
        await _serve_probes(extender, metrics, options.probe_port, stack)
    return int(runner.addresses[0][1])


async def _serve_probes(
    extender: Extender,
    metrics: Callable[[web.Request], Awaitable[web.StreamResponse]],
    port: int,
    stack: AsyncExitStack,
) -> None:
    """For the kubelet and Prometheus, who can't reach loopback: no verb, nothing of what we know of Pods."""
    app = verbs.probes(lambda: extender.synced, lambda: extender.leads)
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, port=port).start()
