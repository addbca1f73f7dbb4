"""Writes announcements as Kubernetes events, one after another, at a bounded rate.

Events are a courtesy: one that can't be written is logged and dropped, and a long queue never holds up
a grant.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, Protocol
from uuid import uuid4

import structlog

from extender.api import ApiError, Json
from extender.news import Announcement
from gangs.pods import Owner
from gangs.reasons import Reason

PER_SECOND: Final = 25.0
OWNER_SECONDS: Final = 60.0
_MAX_QUEUE: Final = 20_000
_MAX_MESSAGE: Final = 1024  # characters, the API server's limit for an event's note
_MAX_STEM: Final = 236  # of 253 characters that a name may have
_COMPONENT: Final = "allaboard"

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""


class EventWriter:
    """A queue of announcements and the task that writes them."""

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float],
        written: Callable[[Reason], None] = lambda _: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._written = written
        self._lost = lost
        self._api = api
        self._clock = clock
        self._queue: asyncio.Queue[Announcement] = asyncio.Queue(_MAX_QUEUE)
        self._told: dict[tuple[str, Reason, str], float] = {}

    def put(self, announcements: Iterable[Announcement]) -> None:
        """Queue them; what exceeds the queue is dropped with a warning.

        A controller each of whose Pods is a gang by itself is told the same thing once a minute.
        """
        now = self._clock()
        self._told = {told: at for told, at in self._told.items() if now - at < OWNER_SECONDS}
        for announcement in announcements:
            if announcement.owner and self._was_told(announcement.owner, announcement):
                continue
            try:
                self._queue.put_nowait(announcement)
            except asyncio.QueueFull:
                log.warning("event dropped, too many are waiting", reason=announcement.reason)
                self._lost()
                return

    def _was_told(self, owner: Owner, announcement: Announcement) -> bool:
        told = owner.uid, announcement.reason, announcement.message
        if told in self._told:
            return True
        self._told[told] = self._clock()
        return False

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            announcement = await self._queue.get()
            try:
                namespace = announcement.pod.namespace
                body = event(announcement, self._clock())
                await self._api.create(f"/api/v1/namespaces/{namespace}/events", body)
                self._written(announcement.reason)
            except ApiError as error:
                self._lost()
                log.warning("event not written", reason=announcement.reason, error=str(error))
            await asyncio.sleep(1 / PER_SECOND)


def event(announcement: Announcement, now: float) -> Json:
    """A core/v1 Event on the Pod or its controller."""
    pod, owner = announcement.pod, announcement.owner
    about = owner or Owner("v1", "Pod", pod.name, pod.uid)
    stem = about.name[:_MAX_STEM].rstrip("-.")
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{stem}.{uuid4().hex[:16]}", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": pod.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "reason": announcement.reason,
        "message": announcement.message[:_MAX_MESSAGE],
        "type": "Warning" if announcement.reason.is_warning else "Normal",
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
