"""What became of Grove's PodGangs, written into their status (rule 16 of the design).

Grove itself writes phase Pending and the condition Initialized, and nothing after that; once more, when
Initialized turns True, it puts the whole list of conditions back to that one. So we write only after that,
keep what we find, and look again each second: what was put back is written anew. Nothing else of a
PodGang is ours: floors and domains were read by the webhook.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import structlog

from extender.api import ApiError, Json
from extender.informer import Handler
from extender.registry import Registry
from extender.standing import Standing
from gangs.identity import podgang_label
from gangs.muster import Muster
from gangs.parts import Part
from gangs.pods import GangKey
from gangs.room import Room

PATH: Final = "/apis/scheduler.grove.io/v1alpha1/podgangs"
ABSENT_SECONDS: Final = 30.0  # between two looks for Grove where it is not installed
WRITES: Final = 50  # status writes a second at most

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""

    async def patch(self, path: str, body: Any) -> Json:
        """PATCH."""


@dataclass(frozen=True, slots=True)
class State:
    """How a PodGang stands. score: 1.0 where all that should be together is.

    reason, message: why it is not scheduled, "" where it is.
    """

    scheduled: bool
    ready: bool
    score: float
    reason: str = ""
    message: str = ""

    @property
    def phase(self) -> str:
        """As Grove's API knows it."""
        if not self.scheduled:
            return "Pending"
        return "Running" if self.ready else "Starting"


class PodGangs(Handler):
    """PodGangs as last seen; writes the status of those whose Pods are ours."""

    def __init__(
        self,
        api: Api,
        registry: Registry,
        room: Room,
        why: Callable[[GangKey], tuple[Standing | None, str]],
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._registry = registry
        self._room = room
        self._why = why
        self._clock = clock
        self._seen: dict[GangKey, Json] = {}
        self._keys: dict[str, GangKey] = {}
        self._due: set[GangKey] = set()

    def put(self, obj: Json) -> None:
        """A PodGang is new or has changed."""
        meta = obj["metadata"]
        key = meta["namespace"], podgang_label(meta["name"])
        self._seen[key], self._keys[meta["uid"]] = obj, key
        self._due.add(key)

    def drop(self, uid: str) -> None:
        """A PodGang is gone."""
        key = self._keys.pop(uid, None)
        if key and self._seen[key]["metadata"]["uid"] == uid:
            del self._seen[key]

    def recheck(self) -> None:
        """Look at every PodGang again: another instance may have written meanwhile."""
        self._due |= self._seen.keys()

    async def installed(self) -> None:
        """Return once the API server knows PodGangs."""
        while True:
            try:
                if await self._api.get(PATH) is not None:
                    return
            except ApiError as error:
                log.warning("PodGangs can't be read: their status is not written", error=str(error))
            await asyncio.sleep(ABSENT_SECONDS)

    async def write(self, waiting: Iterable[GangKey] = ()) -> None:
        """Bring every status up to date, at most so many at a time. waiting: gangs of which members wait."""
        self._due |= self._registry.stirred | set(waiting)
        self._registry.stirred.clear()
        self._due &= self._seen.keys()
        left = WRITES
        for key in sorted(self._due):
            if not left:
                return
            obj = self._seen.get(key)
            body = self._patch(key, obj) if obj else None
            self._due.discard(key)
            if obj and body:
                left -= 1
                await self._send(key, obj["metadata"]["name"], body)

    async def _send(self, key: GangKey, name: str, body: Json) -> None:
        path = f"{PATH.rpartition('/')[0]}/namespaces/{key[0]}/podgangs/{name}/status"
        try:
            await self._api.patch(path, body)
        except ApiError as error:
            self._due.add(key)
            if not error.conflict:  # else somebody was quicker, and the watch will tell
                log.warning("status of a PodGang not written", podgang=f"{key[0]}/{name}", error=str(error))

    def _patch(self, key: GangKey, obj: Json) -> Json | None:
        """What the PodGang's status needs, None where it says what it should."""
        status = obj.get("status") or {}
        gang = self._registry.muster(key)
        if gang is None or not _initialized(status):
            return None
        wanted = wanted_status(status, self._state(gang), self._clock())
        if wanted == {field: status.get(field) for field in wanted}:
            return None
        # A merge patch replaces the list: only on top of the version that it was made from.
        return {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "status": wanted}

    def _state(self, gang: Muster) -> State:
        score = closeness(gang, self._room)
        if gang.complete:
            ready = gang.enough({pod.uid for pod in gang.bound if pod.ready})
            return State(True, ready, score)
        standing, message = self._why(gang.key)
        return State(False, False, score, standing.value if standing else "GangBoarding", message)


def wanted_status(status: Json, state: State, now: float) -> Json:
    """phase, placementScore and all conditions, those of others as they are."""
    ours = (
        _condition("Scheduled", state.scheduled, "GangAboard", state.reason, state.message),
        _condition("Ready", state.ready, "FloorReady", "FloorNotReady", ""),
    )
    present = {row["type"]: row for row in status.get("conditions") or ()}
    rows = {**present, **{row["type"]: _since(row, present.get(row["type"]), now) for row in ours}}
    return {"phase": state.phase, "placementScore": state.score, "conditions": list(rows.values())}


def closeness(gang: Muster, room: Room) -> float:
    """1.0 where each part that prefers one domain sits in one, less the more domains it is spread over."""
    whole = gang.subgroups or Part("", gang.floor, frozenset(pod.uid for pod in gang.everyone))
    nodes = {pod.uid: pod.node for pod in gang.bound}
    wishes = [(gang.preferred, whole.members), *((p.preferred, p.members) for p in whole.everything[1:])]
    scores = [
        1 / spread
        for label, members in wishes
        if label and (spread := _spread(label, (nodes[uid] for uid in members & nodes.keys()), room))
    ]
    return round(sum(scores) / len(scores), 3) if scores else 1.0


def _spread(label: str, nodes: Iterable[str], room: Room) -> int:
    return len({room.nodes[name].labels.get(label, name) for name in nodes if name in room.nodes})


def _initialized(status: Json) -> bool:
    return any(
        row.get("type") == "Initialized" and row.get("status") == "True"
        for row in status.get("conditions") or ()
    )


def _condition(kind: str, holds: bool, good: str, bad: str, message: str) -> Json:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": good if holds else bad,
        "message": message,
    }


def _since(row: Json, before: Json | None, now: float) -> Json:
    """The condition with the time of its last change."""
    if before and before.get("status") == row["status"]:
        return {**row, "lastTransitionTime": before.get("lastTransitionTime")}
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**row, "lastTransitionTime": stamp}
