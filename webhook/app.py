"""The admission server: HTTP in front of mutate.py.

    POST /mutate   AdmissionReview v1 in and out; 4xx only for what is no AdmissionReview at all, 503
                   where a Pod's owner can't be read just now
    GET /metrics   how long answers take, and until when the certificate is good
    GET /healthz   the process runs
    GET /readyz    and would answer

Stateless: any number may run side by side. The serving certificate is read anew when its file changes.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from webhook import wire
from webhook.lookup import Lookups, Reader
from webhook.metrics import ANSWER, Meters
from webhook.mutate import Mutator, UndecidedError
from webhook.pod import Pod

_MAX_BODY: Final = 4 * 2**20  # the API server itself takes 3 MiB
_CERTIFICATE_LOOK_SECONDS: Final = 1.0
_JSON: Final = "application/json"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """Where to serve, with which certificate, for which scheduler names. Port 0: any that is free."""

    host: str
    port: int
    cert_file: Path
    key_file: Path
    profiles: tuple[str, ...]


async def run(options: Options, reader: Reader, stop: asyncio.Event, on_ready: Callable[[int], None]) -> None:
    """Serve until stop is set; on_ready gets the port once requests are answered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert_file, options.key_file)
    lookups = Lookups(reader, time.monotonic)
    app = application(Mutator(lookups, options.profiles), Meters(options.cert_file))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    watcher = asyncio.create_task(_follow_certificate(context, options))
    try:
        await web.TCPSite(runner, options.host, options.port, ssl_context=context).start()
        on_ready(runner.addresses[0][1])
        await stop.wait()
    finally:
        watcher.cancel()
        await runner.cleanup()
        await lookups.close()


def application(mutator: Mutator, meters: Meters) -> web.Application:
    """The HTTP application by itself, without TLS."""
    app = web.Application(client_max_size=_MAX_BODY, middlewares=[meters.timed])
    app.router.add_post("/mutate", _mutate(mutator))
    app.router.add_get("/metrics", meters.scrape)
    app.router.add_get("/healthz", _ok)
    app.router.add_get("/readyz", _ok)
    return app


def _mutate(mutator: Mutator) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def mutate(request: web.Request) -> web.Response:
        if request.content_type != _JSON:
            return _refusal(
                415, f"Content-Type: {request.content_type!r} is not understood (allowed: {_JSON})"
            )
        try:
            admission = wire.parse(await request.read())
        except web.HTTPRequestEntityTooLarge:
            return _refusal(
                413, f"the body is larger than {_MAX_BODY} bytes, which is the most that is allowed"
            )
        except wire.MalformedReviewError as error:
            return _refusal(400, str(error))
        if admission.pod is None:
            return _json("unchanged", wire.answer(admission.uid, ()))
        return await _answer(mutator, admission.uid, admission.pod)

    return mutate


async def _answer(mutator: Mutator, uid: str, pod: Pod) -> web.Response:
    try:
        operations = await mutator.operations(pod)
        return _json("patched" if operations else "unchanged", wire.answer(uid, operations))
    except UndecidedError as error:
        # The registration's failurePolicy decides, as if we were away.
        return _refusal(503, str(error), "undecided")
    except Exception:
        # A Pod is never denied, not even for a fault of ours.
        log.exception("could not judge a Pod; it was admitted as it is", pod=pod.title)
        said = f"allaboard: {pod.title} could not be judged and was left as it is"
        return _json("failed", wire.answer(uid, (), [said]))


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _json(answer: str, body: bytes) -> web.Response:
    return _counted(web.Response(body=body, content_type=_JSON), answer)


def _refusal(status: int, message: str, answer: str = "malformed") -> web.Response:
    return _counted(web.json_response({"message": message}, status=status), answer)


def _counted(response: web.Response, answer: str) -> web.Response:
    response[ANSWER] = answer
    return response


async def _follow_certificate(context: ssl.SSLContext, options: Options) -> None:
    seen = _changed_at(options)
    while True:
        await asyncio.sleep(_CERTIFICATE_LOOK_SECONDS)
        now = _changed_at(options)
        if now == seen:
            continue
        try:
            # First elsewhere: halves that don't belong together would leave us without a certificate.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.cert_file, options.key_file)
            context.load_cert_chain(options.cert_file, options.key_file)  # for connections from now on
            seen = now
            log.info("serving certificate read anew", file=str(options.cert_file))
        except (OSError, ssl.SSLError) as error:
            log.warning("serving certificate unreadable, the old one stays", reason=str(error))


def _changed_at(options: Options) -> tuple[float, float]:
    try:
        return options.cert_file.stat().st_mtime, options.key_file.stat().st_mtime
    except OSError:
        return 0.0, 0.0
