"""What tells others, put together: events, PodGroups, PodGangs, Queues, metrics, page; and who has to go.

core (what is known and promised) ──► views ──► news, mirror, page, debug, gauges
                                 └──► torn, stale, scale-up, preemption ──► events
"""

import asyncio
from collections.abc import Callable

from extender.absentees import Absentees
from extender.api import Api
from extender.boardings import Boardings
from extender.consolidation import Consolidation
from extender.core import Core
from extender.debug import Debug
from extender.events import EventWriter
from extender.evictor import Evictor
from extender.informer import Informer
from extender.live import Live
from extender.metrics import Gauges
from extender.mirror import Mirror
from extender.news import Announcement, News
from extender.options import Options
from extender.page import Page
from extender.podgangs import PATH as PODGANGS
from extender.podgangs import PodGangs
from extender.preemption import Preemption
from extender.queue_status import QueueStatus
from extender.scaleup import ScaleUp
from extender.stale import Stale
from extender.torn import Torn
from extender.views import Views


class Telling:
    """Everything that writes of gangs for people, and about Pods that have to go."""

    def __init__(self, api: Api, options: Options, core: Core, clock: Callable[[], float]) -> None:
        self._api = api
        self._core = core
        self._clock = clock
        self.absentees = Absentees(api, clock)
        self.news = News(core.registry, core.room, core.store, core.rounds, self.absentees.why)
        views = Views(core.registry, core.room, core.store, core.rounds, self.news)
        self.mirror = Mirror(api, core.registry, core.rounds, views, clock, lambda: core.leads)
        consolidation = Consolidation(core.registry, core.room, core.rounds, core.shapes)
        self.debug = Debug(views, core.registry, core.room, core.store, core.rounds, consolidation)
        self.page = Page(Live(views, core.registry, core.room, core.store, clock, lambda: core.leads))
        self.gauges = Gauges(core.store, core.rounds, core.freshness, views, lambda: core.leads, clock)
        core.store.journal.listeners.append(core.meters.follow)
        self.podgangs = PodGangs(api, core.registry, core.room, self.news.standing, clock)
        self.torn = Torn(api, core.rounds, clock)
        self.stale = Stale(api, core.registry, clock)
        self.scale_up = ScaleUp(api, core.rounds, clock, options.scale_up_after)
        self.boardings = Boardings(core.registry, core.store)
        self.events = EventWriter(
            api,
            clock,
            lambda reason: core.meters.events.labels(reason.value).inc(),
            core.meters.events_lost.inc,
        )
        self.queue_status = QueueStatus(api, core.queues, core.registry, clock)
        self.preemption = Preemption(
            options.rules,
            Evictor(api, clock),
            core.rounds,
            core.registry,
            core.room,
            core.store,
            core.queues,
            clock,
            lambda: core.leads,
        )
        core.handed_over += [self.podgangs.recheck, self.queue_status.forget]

    async def run(self) -> None:
        """Tell, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for work in (
                self.announce,
                self.events.run,
                self.mirror.run,
                self.follow_podgangs,
                self.evict,
                self.account,
            ):
                tasks.create_task(work())

    async def announce(self) -> None:
        """Say once a second what there is to say, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if not self._core.leads:
                self._core.registry.noted.clear()  # the leader tells people
                self._core.registry.stirred.clear()
                continue
            if self._awaits_topology() and await self._core.topologies.refresh():
                self._core.wake.set()
            await self.absentees.look(self._core.rounds.pending)
            said = self.boardings.heard(await self._news())
            self._core.rounds.moved.update(row.pod.key for row in said)
            self.events.put(said)
            self.events.put(self.boardings.due(self._clock()))
            self.events.put(await self.torn.mend())
            self.events.put(await self.stale.end())
            self.events.put(await self.scale_up.release())
            self.events.put(await self._core.slipped.tell())
            await self.podgangs.write(self._core.rounds.pending.keys())

    async def evict(self) -> None:
        """Clear domains for gangs that may have others evicted, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if self._core.leads:
                self.events.put(await self.preemption.look())

    async def account(self) -> None:
        """Keep the status of Queues, until cancelled; apart, so that a slow write holds up nothing else."""
        while True:
            await asyncio.sleep(1.0)
            if self._core.leads:
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

    def _awaits_topology(self) -> bool:
        return any(n.topology for row in self._core.rounds.pending.values() for n in row.gang.notes)
