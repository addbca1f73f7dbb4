"""Over HTTP: kube-scheduler's verbs and whatever else is asked of us, on loopback; probes for everybody."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import web

from extender import verbs
from extender.core import Core
from extender.metrics import endpoint
from extender.options import Options
from extender.telling import Telling

_BACKLOG: Final = 4096  # a large gang's bind calls arrive on as many new connections at once


async def serve(
    core: Core, telling: Telling, synced: Callable[[], bool], options: Options, stack: AsyncExitStack
) -> int:
    """Serve verbs, probes, metrics and what we know of gangs; the port. Raises OSError where it is taken."""
    metrics = endpoint(telling.gauges, core.meters)
    app = verbs.application(core.guard, core.barrier, synced, lambda: core.leads)
    app.middlewares.append(core.meters.timed)
    app.router.add_get("/metrics", metrics)
    telling.page.add_to(app)
    app.add_subapp("/debug", telling.debug.application())
    runner = verbs.runner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, options.host, options.port, backlog=_BACKLOG)
    await site.start()
    if options.probe_port is not None:
        probes = verbs.probes(synced, lambda: core.leads)
        probes.router.add_get("/metrics", metrics)
        await _serve_probes(probes, options.probe_port, stack)
    return int(runner.addresses[0][1])


async def _serve_probes(app: web.Application, port: int, stack: AsyncExitStack) -> None:
    """For the kubelet and Prometheus, who can't reach loopback: no verb, nothing of what we know of Pods."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, port=port).start()
