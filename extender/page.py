"""The live page over HTTP: read-only, on the private port, which is loopback's.

/ui          the page; /ui/page.js and /ui/page.css belong to it, nothing is fetched from elsewhere
/ui/events   server-sent events: everything once, then each second what has changed (live.py)

One look a second serves all browsers, and none is made while nobody watches. A browser that is too slow is
let go; it connects again by itself and gets everything anew.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

from extender.live import Live, Snapshot, changes

LOOK_SECONDS: Final = 1.0
MOST_BROWSERS: Final = 50
_BACKLOG: Final = 8  # messages that a browser may be behind
_SILENT_LOOKS: Final = 15  # then a comment is sent, so that a dead connection is noticed

_FOLDER: Final = Path(__file__).parent / "ui"
_FILES: Final = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Queue = asyncio.Queue[bytes | None]


class Page:
    """The page and its feed. Mount with add_to()."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._queues: set[Queue] = set()
        self._last: Snapshot | None = None
        self._feeding: asyncio.Task[None] | None = None

    def add_to(self, app: web.Application) -> None:
        """Serve /ui."""
        app.router.add_get("/ui", _file("page.html"))
        for name in ("page.js", "page.css"):
            app.router.add_get(f"/ui/{name}", _file(name))
        app.router.add_get("/ui/events", self.events)
        app.on_shutdown.append(self._end)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """GET /ui/events, until the browser goes or is too slow."""
        if len(self._queues) >= MOST_BROWSERS:
            return web.Response(status=503, text=f"{MOST_BROWSERS} browsers watch already\n")
        answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        async with self._subscribed() as queue:
            with suppress(ConnectionError):
                while (message := await queue.get()) is not None:
                    await answer.write(message)
        return answer

    @asynccontextmanager
    async def _subscribed(self) -> AsyncIterator[Queue]:
        queue: Queue = asyncio.Queue(_BACKLOG)
        if self._last:
            queue.put_nowait(_message(changes(None, self._last)))
        self._queues.add(queue)
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.create_task(self._feed())
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    async def _feed(self) -> None:
        """Look once a second while somebody watches."""
        silent = 0
        while self._queues:
            after = await self._live.look()
            told = changes(self._last, after)
            self._last = after
            silent = 0 if told else silent + 1
            if told or silent % _SILENT_LOOKS == 0:
                self._send(_message(told) if told else b": still here\n\n")
            await asyncio.sleep(LOOK_SECONDS)
        self._last = None

    def _send(self, message: bytes) -> None:
        for queue in list(self._queues):
            if queue.full():
                self._queues.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    async def _end(self, _: web.Application) -> None:
        """We stop: let everybody go at once."""
        if self._feeding:
            self._feeding.cancel()
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


def _message(told: object) -> bytes:
    return b"data: " + orjson.dumps(told) + b"\n\n"


def _file(name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    body = (_FOLDER / name).read_bytes()

    async def serve(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=_FILES[name], charset="utf-8", headers=_HEADERS)

    return serve
