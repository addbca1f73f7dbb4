"""The extender: what decides (core.py), what tells others (telling.py), and HTTP around them (serving.py)."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import structlog

from extender.api import Api, connect
from extender.clock import steady_clock
from extender.core import Core
from extender.options import Options
from extender.serving import serve
from extender.telling import Telling

log = structlog.get_logger(__name__)


class Extender:
    """All parts of one running extender. synced: whether the caches have been filled once."""

    def __init__(self, api: Api, options: Options) -> None:
        self.synced = False
        self._clock = clock = steady_clock()
        self._began = clock()
        self.core = Core(api, options, clock)
        self.telling = Telling(api, options, self.core, clock)

    async def work(self, on_synced: Callable[[], None]) -> None:
        """Watch, plan and tell until cancelled."""
        core = self.core
        async with asyncio.TaskGroup() as tasks:
            informers = core.informers()
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.synced.wait()
            await core.topologies.refresh()
            self.synced = True
            self.telling.gauges.rebuilt = self._clock() - self._began
            log.info("caches are synced", nodes=len(core.room.nodes), pods=len(core.room.seats))
            for work in (core.leadership.run, core.plan, self.telling.run):
                tasks.create_task(work())
            on_synced()


async def run(options: Options, stop: asyncio.Event, on_ready: Callable[[int], None]) -> None:
    """Serve until stop is set. on_ready gets the bound port once the caches are synced.

    Raises KubeconfigError, and OSError where the port is taken.
    """
    async with AsyncExitStack() as stack:
        api = await connect(options.kubeconfig)
        stack.push_async_callback(api.close)
        extender = Extender(api, options)
        port = await serve(extender.core, extender.telling, lambda: extender.synced, options, stack)
        working = asyncio.create_task(extender.work(lambda: on_ready(port)))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
