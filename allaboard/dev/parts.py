"""What each command runs: the webhook, the extender, or both with a kube-scheduler.

    serve_all: install ──► keep(webhook, extender, kube-scheduler) ──► register ──► a Pod is mutated ──► ready

Every function serves until stop is set and leaves no registration behind that it has made.
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp

import certs
import extender.app
import webhook.app
from allaboard.dev import scheduler
from allaboard.dev.install import install
from allaboard.dev.registration import mutates, register, unregister
from allaboard.dev.settings import LOOPBACK, Settings
from allaboard.dev.supervisor import Part, keep
from allaboard.errors import UserError
from allaboard.local.binaries import provide
from extender.api import Api, connect
from extender.options import Options
from gangs.contract import KAI_SCHEDULER_NAME

Say = Callable[[str], None]

READY: Final = "ready"
_POLL_SECONDS: Final = 0.1
_KAI_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/kai-scheduler/deployments"


async def serve_webhook(
    settings: Settings, *, registered: bool, stop: asyncio.Event, say: Say, ready: Say
) -> None:
    """Answer admission reviews. registered: also install what is missing and register with the API server."""
    async with _connected(settings) as api:
        serving = _certificate(settings)
        options = webhook.app.Options(
            host=_bind_address(settings.webhook_host),
            port=settings.webhook_port,
            cert_file=serving.cert_file,
            key_file=serving.key_file,
            profiles=settings.profiles,
        )
        if not registered:
            await webhook.app.run(options, api, stop, lambda _: ready(READY))
            return
        await install(api)
        async with _beside(webhook.app.run(options, api, stop, lambda _: None), stop):
            await _admit(api, settings, stop, say, ready)


async def serve_extender(
    settings: Settings, *, stop: asyncio.Event, ready: Say, probe_port: int | None = None
) -> None:
    """Answer kube-scheduler; probe_port: where others may ask how it is."""
    options = Options(
        kubeconfig=settings.kubeconfig,
        host=LOOPBACK,
        port=settings.extender_port,
        profiles=settings.profiles,
        unprotected=settings.unprotected,
        election=settings.election,
        scale_up_after=settings.scale_up_after,
        probe_port=probe_port,
        rules=settings.rules,
    )
    await extender.app.run(options, stop, lambda _: ready(READY))


async def serve_all(
    settings: Settings, *, with_scheduler: bool, stop: asyncio.Event, say: Say, ready: Say
) -> None:
    """Run everything. Raises UserError where a real KAI serves one of the names."""
    async with _connected(settings) as api:
        await _refuse_beside_kai(api, settings)
        await install(api)
        parts = _parts(settings, with_scheduler, say)
        say(f"logs: {', '.join(str(part.log) for part in parts)}")
        async with _beside(_keep_all(parts, say), stop):
            await _until(stop, _answers(f"{settings.extender_url}/readyz"))
            if with_scheduler:
                await _until(stop, _answers(f"https://{LOOPBACK}:{settings.scheduler_port}/healthz"))
            say(f"live page: {settings.extender_url}/ui")
            await _admit(api, settings, stop, say, ready)


async def put_in_place(settings: Settings) -> None:
    """Create CRDs and default objects that are missing. Raises UserError where a real KAI serves a name."""
    async with _connected(settings) as api:
        await _refuse_beside_kai(api, settings)
        await install(api)


async def clean_up(settings: Settings) -> bool:
    """Remove the registration; whether there was one."""
    async with _connected(settings) as api:
        return await unregister(api)


async def _admit(api: Api, settings: Settings, stop: asyncio.Event, say: Say, ready: Say) -> None:
    """Register, say ready once a Pod came back mutated, wait for stop, take the registration back."""
    try:
        await register(api, settings, _certificate(settings).ca_bundle)
        await _until(stop, mutates(api, settings, say))
        if not stop.is_set():
            ready(READY)
        await stop.wait()
    finally:
        await unregister(api)


def _parts(settings: Settings, with_scheduler: bool, say: Say) -> list[Part]:
    own = [sys.executable, "-m", "allaboard"]
    common = [
        *([f"--kubeconfig={settings.kubeconfig}"] if settings.kubeconfig else []),
        f"--profiles={','.join(settings.profiles)}",
        f"--webhook-host={settings.webhook_host}",
        f"--webhook-port={settings.webhook_port}",
        f"--extender-port={settings.extender_port}",
        f"--state-dir={settings.state_dir}",
    ]
    off = [f"--unprotected={','.join(sorted(settings.unprotected))}"] if settings.unprotected else []
    commands = {
        "webhook": [*own, "webhook", *common, "--no-register"],
        "extender": [*own, "extender", *common, *_evictions(settings), *_scale_up(settings), *off],
    }
    if with_scheduler:
        commands["kube-scheduler"] = _scheduler_command(settings, say)
    return [Part(name, line, settings.state_dir / f"{name}.log") for name, line in commands.items()]


def _scale_up(settings: Settings) -> list[str]:
    return [] if settings.scale_up_after is None else [f"--scale-up-after={settings.scale_up_after}"]


def _evictions(settings: Settings) -> list[str]:
    kinds, seconds = settings.rules.kinds, settings.rules.min_seconds
    return [f"--evict={','.join(sorted(kinds))}", f"--min-runtime={seconds}"] if kinds else []


def _scheduler_command(settings: Settings, say: Say) -> list[str]:
    settings.scheduler_config.write_text(scheduler.rendered(settings))
    binary = provide(["kube-scheduler"], say)["kube-scheduler"]
    return [
        str(binary),
        f"--config={settings.scheduler_config}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={settings.scheduler_port}",
        f"--cert-dir={settings.state_dir / 'kube-scheduler-certs'}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    ]


async def _keep_all(parts: list[Part], say: Say) -> None:
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(keep(part, say))


async def _refuse_beside_kai(api: Api, settings: Settings) -> None:
    if KAI_SCHEDULER_NAME not in settings.profiles:
        return
    found = await api.get(_KAI_DEPLOYMENTS) or {}
    names = [d["metadata"]["name"] for d in found.get("items", ())]
    if any(name.startswith(KAI_SCHEDULER_NAME) for name in names):
        rest = ",".join(p for p in settings.profiles if p != KAI_SCHEDULER_NAME) or "allaboard"
        raise UserError(
            f"--profiles: a KAI Scheduler runs in this cluster (namespace kai-scheduler) and serves "
            f"{KAI_SCHEDULER_NAME} itself; leave it to it: --profiles {rest}"
        )


def _certificate(settings: Settings) -> certs.Serving:
    hosts = dict.fromkeys((LOOPBACK, "localhost", settings.webhook_host))
    return certs.ensure(settings.state_dir / "certs", tuple(hosts), datetime.now(UTC))


def _bind_address(host: str) -> str:
    """Loopback where that is what the API server was told; else every address, as behind it may be NAT."""
    if host in (LOOPBACK, "localhost", "::1"):
        return host
    return "::" if ":" in host else "0.0.0.0"


@asynccontextmanager
async def _connected(settings: Settings) -> AsyncIterator[Api]:
    api = await connect(settings.kubeconfig)
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> AsyncIterator[None]:
    """Run work beside the body; when it fails, stop is set and its error is raised."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        stop.set()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, or leave it when stop is set first."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if task.done():
        task.result()
    task.cancel()


async def _answers(url: str) -> None:
    """Return once the URL answers 200. Health only: the certificate is one nobody has signed."""
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError, OSError):
                async with session.get(url, ssl=unverified) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(_POLL_SECONDS)
