"""A proxy between our parts and the API server, for faults that can't be had otherwise.

    webhook, extender, kube-scheduler ──► Proxy (plain HTTP, loopback) ──► kube-apiserver
                                            │
                                            └─ Fault: let it pass, answer an error, or act around it

Only calls of whoever uses its kubeconfig go through it; the checker looks past it.
"""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

Json = dict[str, Any]

_MAX_BODY: Final = 16 * 2**20
# About one connection each, or set anew by whoever sends.
_HOP: Final = frozenset(
    {"connection", "content-length", "content-encoding", "host", "keep-alive", "transfer-encoding", "date"}
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call. agent: the User-Agent of who makes it."""

    method: str
    path: str
    agent: str
    body: bytes

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.method not in ("GET", "HEAD")


class Fault:
    """What happens to calls; this one lets all pass."""

    async def before(self, call: Call) -> int:
        """The status to be answered in the API server's place, 0 to let the call pass."""
        return 0

    async def after(self, call: Call, status: int) -> None:
        """The API server has answered with this status; the caller doesn't know yet."""


class Proxy:
    """Passes calls on. fault may be exchanged at any time."""

    def __init__(self, server: str, session: aiohttp.ClientSession, fault: Fault) -> None:
        self.fault = fault
        self._watches: set[aiohttp.ClientResponse] = set()
        self._server = server
        self._session = session

    def cut_watches(self) -> int:
        """Drop every open watch; how many there were."""
        watches = list(self._watches)
        for answer in watches:
            answer.close()
        return len(watches)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        agent = request.headers.get("User-Agent", "")
        call = Call(request.method, request.path, agent, await request.read())
        status = await self.fault.before(call)
        return _error(status) if status else await self._forward(request, call)

    async def _forward(self, request: web.Request, call: Call) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        url = f"{self._server}{request.raw_path}"
        try:
            async with self._session.request(
                call.method, url, data=call.body or None, headers=headers
            ) as answer:
                await self.fault.after(call, answer.status)
                if "watch" in request.query:
                    self._watches.add(answer)
                try:
                    return await _stream(request, answer)
                finally:
                    self._watches.discard(answer)
        except aiohttp.ClientError:
            return _error(503)


@asynccontextmanager
async def proxied(kubeconfig: Path, folder: Path, fault: Fault) -> AsyncIterator[tuple[Proxy, Path]]:
    """A proxy at work, and the kubeconfig that leads through it."""
    known = Configuration()
    await load_kube_config(str(kubeconfig), client_configuration=known, persist_config=False)
    context = ssl.create_default_context(cafile=known.ssl_ca_cert)
    context.load_cert_chain(str(known.cert_file), str(known.key_file))
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        proxy = Proxy(str(known.host), session, fault)
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            path = folder / "through-the-proxy.kubeconfig"
            path.write_text(json.dumps(_kubeconfig(int(runner.addresses[0][1]))))
            yield proxy, path
        finally:
            await runner.cleanup()


async def _stream(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Pass the answer on as it comes: a watch has no end."""
    headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP - {"content-encoding"}}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
    except (aiohttp.ClientError, ConnectionError):
        if request.transport:
            request.transport.close()  # whoever reads must see a broken answer, not the end of one
    return response


def _error(status: int) -> web.Response:
    reasons = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reasons.get(status, "Unknown"),
        "message": "a fault on purpose",
        "code": status,
    }
    return web.json_response(body, status=status, headers={"Retry-After": "1"} if status == 429 else None)


def _kubeconfig(port: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
    }
