"""Why members of a gathering gang don't come: what their controller says it could not create.

A ResourceQuota, a LimitRange or another admission plugin that refuses a Pod leaves no Pod to tell it on, only
an event FailedCreate on the controller. It is read for gangs that miss members, a few a second and each
every ten seconds, so that their sentence can say it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.standing import Pending, Standing
from gangs.pods import GangKey, Owner

AGAIN_SECONDS: Final = 10.0
PER_LOOK: Final = 5  # gangs; look() is called once a second

_FORBIDDEN: Final = " is forbidden: "  # what comes before names a Pod that was never made

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """GET, None for 404."""


class Absentees:
    """The last thing that each gang's controller failed at."""

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._why: dict[GangKey, str] = {}
        self._asked: dict[GangKey, float] = {}

    def why(self, key: GangKey) -> str:
        """What the controller says of the members that are missing, "" if nothing is known."""
        return self._why.get(key, "")

    async def look(self, pending: Mapping[GangKey, Pending]) -> None:
        """Read the events of those that were asked about longest ago."""
        short = {key: row for key, row in pending.items() if _lacks_members(row)}
        self._asked = {key: self._asked.get(key, 0.0) for key in short}
        self._why = {key: why for key, why in self._why.items() if key in short}
        now = self._clock()
        due = sorted((at, key) for key, at in self._asked.items() if now - at >= AGAIN_SECONDS)
        for _, key in due[:PER_LOOK]:
            self._asked[key] = now
            owner = _controller(short[key])
            if owner and (why := await self._failure(key[0], owner)):
                self._why[key] = why

    async def _failure(self, namespace: str, owner: Owner) -> str:
        selector = f"reason=FailedCreate,involvedObject.uid={owner.uid}"
        try:
            found = await self._api.get(f"/api/v1/namespaces/{namespace}/events", {"fieldSelector": selector})
        except ApiError as error:
            log.warning("events not read", owner=f"{namespace}/{owner.name}", error=str(error))
            return ""
        newest = max((found or {}).get("items") or (), key=_time, default=None)
        if newest is None:
            return ""
        message = str(newest.get("message") or "").strip().rstrip(".")
        return f"{owner.kind} {owner.name} can't create it: {message.rpartition(_FORBIDDEN)[2]}"


def _lacks_members(row: Pending) -> bool:
    gang = row.gang
    return row.standing is Standing.GATHERING and len(gang.everyone) < gang.floor


def _controller(row: Pending) -> Owner | None:
    owners: Iterable[Owner] = (pod.owner for pod in row.gang.everyone if pod.owner)
    return next(iter(owners), None)


def _time(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
