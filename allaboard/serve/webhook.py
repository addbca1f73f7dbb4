"""The webhook behind a Service. It answers by a certificate of its own making, or by one of others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import webhook.app
from allaboard.dev.parts import READY
from allaboard.dev.registration import CONFIGURATIONS
from allaboard.dev.settings import Settings, namespaced
from allaboard.errors import UserError
from allaboard.serve.certificates import LOOK_SECONDS, Certificates, Place
from certs.rotation import Lives
from extender.api import Api, connect
from webhook.registration import NAME

ALL_ADDRESSES: Final = ""


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve. service, secret: (namespace, name). lives: how long certificates last.

    hosts: further names in the certificate, beside those of the Service.
    """

    kubeconfig: Path | None
    profiles: tuple[str, ...]
    port: int
    state_dir: Path
    service: tuple[str, str]
    secret: tuple[str, str]
    host: str = ALL_ADDRESSES
    hosts: tuple[str, ...] = ()
    lives: Lives = field(default_factory=Lives)
    look_seconds: float = LOOK_SECONDS


def settle(settings: Settings, service: str, secret: str) -> Options:
    """The options that the command line asks for. Raises UserError."""
    return Options(
        kubeconfig=settings.kubeconfig,
        profiles=settings.profiles,
        port=settings.webhook_port,
        state_dir=settings.state_dir,
        service=namespaced("--service", "Service", service),
        hosts=(settings.webhook_host,),
        secret=namespaced("--secret", "Secret", secret or f"{service}-certificates"),
    )


async def serve(
    options: Options, cert_dir: Path | None, stop: asyncio.Event, ready: Callable[[str], None]
) -> None:
    """Answer admission reviews until stop is set. cert_dir: somebody else's certificate, None for our own.

    Raises UserError where there is no certificate to begin with.
    """
    api = await connect(options.kubeconfig)
    try:
        async with _certificate(options, cert_dir, api) as files:
            served = webhook.app.Options(options.host, options.port, *files, options.profiles)
            await webhook.app.run(served, api, stop, lambda _: ready(READY))
    finally:
        await api.close()


@asynccontextmanager
async def _certificate(options: Options, cert_dir: Path | None, api: Api) -> AsyncIterator[tuple[Path, Path]]:
    """The files to serve by: certificate and key."""
    if cert_dir is not None:
        yield _given(cert_dir)
        return
    certificates = Certificates(api, _place(options), lambda: datetime.now(UTC), options.lives)
    await certificates.settle()
    keeping = asyncio.create_task(certificates.keep(options.look_seconds))
    try:
        yield certificates.place.file, certificates.place.file
    finally:
        keeping.cancel()


def _given(folder: Path) -> tuple[Path, Path]:
    files = folder / "tls.crt", folder / "tls.key"
    for file in files:
        if not file.is_file():
            raise UserError(f"--cert-dir {folder}: no file {file.name} (allowed: tls.crt and tls.key in it)")
    return files


def _place(options: Options) -> Place:
    namespace, name = options.service
    full = f"{name}.{namespace}.svc"
    return Place(
        secret="/api/v1/namespaces/{}/secrets/{}".format(*options.secret),
        registration=f"{CONFIGURATIONS}/{NAME}",
        hosts=(full, f"{full}.cluster.local", f"{name}.{namespace}", *options.hosts),
        file=options.state_dir / "serving.pem",
    )
