"""List, then watch, for ever: one informer a resource.

Calls a handler for every object that is new, changed or gone. After a lost watch it goes on from the
last version seen (bookmarks keep that fresh); when that is too old (410) it lists again and reports
what vanished meanwhile. Objects are handed over as JSON and not kept; only their UIDs are.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from extender.api import Api, ApiError, Json

_PAGE: Final = 500  # objects a list call
_GONE: Final = 410
# A restarted API server serves custom resources a moment later; till then it seems as if there were none.
_ABSENT_LOOKS: Final = 5
_RETRY_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)

log = structlog.get_logger(__name__)


class Handler(Protocol):
    """What to do with an object; both are called from the event loop and must not block."""

    def put(self, obj: Json) -> None:
        """The object is new or has changed."""

    def drop(self, uid: str) -> None:
        """The object with this UID is gone."""


class Informer:
    """Keeps a handler up to date with one resource. synced is set after the first full list.

    heard: called with the path whenever a list, an event or a bookmark has come.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        handler: Handler,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        heard: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tell = heard
        self.synced = asyncio.Event()
        self._api = api
        self._path = path
        self._handler = handler
        self._pause = pause
        self._uids: set[str] = set()
        self._version = ""
        self._heard = 0  # watch events so far
        self._absent = 0  # lists in a row that found no such resource

    async def run(self) -> None:
        """List and watch until cancelled; pauses after a failure, and longer while nothing comes at all."""
        vain = 0
        while True:
            heard = self._heard
            failed = not await self._follow()
            vain = 0 if self._heard > heard else vain + 1
            if failed or vain:
                await self._pause(_RETRY_SECONDS[min(max(vain - 1, 0), len(_RETRY_SECONDS) - 1)])

    async def _follow(self) -> bool:
        """List if need be, then watch until the API server ends that; False where it failed."""
        try:
            self._version = self._version or await self._list()
            async for kind, obj in self._api.watch(self._path, self._version):
                self._version = self._apply(kind, obj)
        except ApiError as error:
            log.warning("watch interrupted", path=self._path, error=str(error))
            if error.status == _GONE:
                self._version = ""
            return False
        return True

    async def _list(self) -> str:
        seen: set[str] = set()
        params = {"limit": str(_PAGE)}
        while True:
            page = self._served(await self._api.get(self._path, params))
            for obj in page.get("items") or ():
                seen.add(obj["metadata"]["uid"])
                self._uids.add(obj["metadata"]["uid"])  # a later page may fail
                self._handler.put(obj)
            meta = page.get("metadata") or {}
            if not meta.get("continue"):
                break
            params = {"limit": str(_PAGE), "continue": meta["continue"]}
            await asyncio.sleep(0)
        for uid in self._uids - seen:
            self._handler.drop(uid)
        self._uids = seen
        self._tell(self._path)
        self.synced.set()
        return str(meta.get("resourceVersion", ""))

    def _served(self, page: Json | None) -> Json:
        """The page; nothing where there has been no such resource for a while. Raises ApiError till then."""
        if page is not None:
            self._absent = 0
            return page
        self._absent += 1
        if self._absent <= _ABSENT_LOOKS:
            raise ApiError("LIST", self._path, 404, "NotFound", "no such resource is served (yet)")
        return {}

    def _apply(self, kind: str, obj: Json) -> str:
        meta = obj["metadata"]
        self._heard += 1
        self._tell(self._path)
        if kind == "DELETED":
            self._uids.discard(meta["uid"])
            self._handler.drop(meta["uid"])
        elif kind != "BOOKMARK":
            self._uids.add(meta["uid"])
            self._handler.put(obj)
        return str(meta["resourceVersion"])
