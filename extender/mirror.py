"""Keeps a PodGroup for each gang, for `kubectl describe podgroup` (rule 16 of the design).

    rounds.moved ──► what there is to say (podgroups.py) ──► create · spec · status, if it has changed

One that exists already is adopted: of it only our own conditions are written. One that we made is removed
with its gang, by us or, through its owner references, by the garbage collector. While KAI's own controllers
run, nothing is written at all. A gang of one Pod has none: it is explained on that Pod.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import structlog

from extender import podgroups
from extender.api import ApiError, Json
from extender.podgroups import Facts
from extender.registry import Registry
from extender.rounds import Rounds
from extender.views import GangView, Views
from gangs import contract
from gangs.identity import object_name
from gangs.muster import Muster
from gangs.pods import GangKey

LOOK_SECONDS: Final = 1.0
PER_LOOK: Final = 20  # gangs, each of at most four calls
LIST_SECONDS: Final = 60.0

_ALL: Final = f"/apis/{podgroups.API_VERSION}/podgroups"
_KAI: Final = "/apis/apps/v1/namespaces/kai-scheduler/deployments"
_KAI_WRITERS: Final = ("pod-grouper", "podgroup-controller")
_OURS: Final = ",".join(f"{key}={value}" for key, value in podgroups.MANAGED.items())

log = structlog.get_logger(__name__)


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """GET, None for 404."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""

    async def patch(self, path: str, body: Any) -> Json:
        """Merge patch."""

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """DELETE."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A PodGroup as we know it. told: what was written last, None if nothing by this process."""

    name: str
    uid: str
    adopted: bool
    conditions: tuple[Json, ...] = ()
    told: Facts | None = None


class Mirror:
    """Writes PodGroups at a bounded rate while we lead."""

    def __init__(
        self,
        api: Api,
        registry: Registry,
        rounds: Rounds,
        views: Views,
        clock: Callable[[], float],
        leads: Callable[[], bool],
    ) -> None:
        self._api = api
        self._registry = registry
        self._rounds = rounds
        self._views = views
        self._clock = clock
        self._leads = leads
        self._groups: dict[GangKey, _Group] = {}
        self._waiting: dict[GangKey, None] = {}
        self._listed: float | None = None
        self._wanted = False

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._leads():
                await self.look()
            else:
                self._listed = None  # a new term knows nothing of what others wrote
                self._groups.clear()

    async def look(self) -> None:
        """Write what has changed, the longest unwritten first."""
        moved, self._rounds.moved = self._rounds.moved, set()
        self._waiting |= dict.fromkeys(sorted(moved))
        try:
            if self._listed is None or self._clock() - self._listed >= LIST_SECONDS:
                await self._list()
            for key in list(self._waiting)[:PER_LOOK]:
                if self._wanted and self._leads():
                    await self._mirror(key)
                del self._waiting[key]
        except ApiError as error:  # of no use for others either: the rest waits for the next look
            log.warning("PodGroups are written later", error=str(error))

    async def _list(self) -> None:
        """Learn which of ours exist: those that lost their gang go, those that were deleted come again."""
        before = self._wanted
        kai = await self._kai_writes()
        found = None if kai else await self._api.get(_ALL, {"labelSelector": _OURS})
        self._listed, self._wanted = self._clock(), found is not None
        if found is None:  # KAI sees to it, or the kind is not installed
            return
        if not before:
            self._waiting |= dict.fromkeys(sorted(self._registry.keys))
        groups = {_key(item): _group(item) for item in found["items"]}
        lost = {key for key, group in self._groups.items() if not group.adopted and key not in groups}
        known = {key: group for key, group in self._groups.items() if key not in lost}
        self._groups = groups | known
        self._waiting |= dict.fromkeys(sorted(lost | groups.keys()))

    async def _kai_writes(self) -> bool:
        found = await self._api.get(_KAI) or {}
        return any(row["metadata"]["name"] in _KAI_WRITERS for row in found.get("items") or ())

    async def _mirror(self, key: GangKey) -> None:
        try:
            gang, view = self._registry.muster(key), self._views.gang(key)
            if gang is None or view is None:
                await self._forget(key)
            elif _is_told(gang, view):
                await self._write(key, gang, podgroups.facts(gang, view))
        except ApiError as error:
            if not error.final:
                raise
            self._groups.pop(key, None)
            if error.conflict or error.status == 404:  # changed by others, or made anew
                self._rounds.moved.add(key)
            log.warning("PodGroup not written", gang="/".join(key), error=str(error))

    async def _write(self, key: GangKey, gang: Muster, told: Facts) -> None:
        group = self._groups.get(key) or await self._make(key, gang, told)
        if group is None or group.told == told:
            return
        if not group.adopted and (group.told is None or group.told.spec != told.spec):
            await self._api.patch(_path(key[0], group.name), {"spec": dict(told.spec)})
        self._groups[key] = await self._tell(key[0], group, told)

    async def _make(self, key: GangKey, gang: Muster, told: Facts) -> _Group | None:
        """Create it or adopt it; None where its author has not created it yet."""
        name = podgroups.group_name(gang)
        if podgroups.named_by_members(gang):
            return await self._adopt(key, name)
        for candidate in dict.fromkeys((name, object_name(key[1]))):
            try:
                made = await self._api.create(_path(key[0]), podgroups.created(candidate, gang, told))
                return replace(_group(made), told=Facts(told.spec, {}, ()))
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            if found := await self._adopt(key, candidate):
                return found
        return None

    async def _adopt(self, key: GangKey, name: str) -> _Group | None:
        """That of somebody else, or one that we made ourselves; not that of another gang of ours."""
        found = await self._api.get(_path(key[0], name))
        if found is None:
            return None
        group = _group(found)
        return group if group.adopted or _key(found) == key else None

    async def _tell(self, namespace: str, group: _Group, told: Facts) -> _Group:
        path, meta = _path(namespace, group.name), {"uid": group.uid}
        if group.adopted:  # others may have written conditions of their own meanwhile
            found = await self._api.get(path) or {}
            group = replace(group, conditions=_conditions(found))
            meta["resourceVersion"] = found.get("metadata", {}).get("resourceVersion", "")
        status = podgroups.status(told, group.conditions, self._clock(), adopted=group.adopted)
        await self._api.patch(f"{path}/status", {"metadata": meta, "status": status})
        return replace(group, told=told, conditions=tuple(status["conditions"]))

    async def _forget(self, key: GangKey) -> None:
        """The gang has no member any more."""
        group = self._groups.pop(key, None)
        if group is None:
            return
        if group.adopted:
            await self._tell(key[0], group, podgroups.gone())
            return
        try:
            body = {"preconditions": {"uid": group.uid}}
            await self._api.delete(_path(key[0], group.name), body)
        except ApiError as error:
            if error.status != 404:
                raise


def _is_told(gang: Muster, view: GangView) -> bool:
    """Whether there is something to say; a state that lasts less than a moment is not worth a write."""
    return max(gang.floor, gang.size, len(gang.everyone)) > 1 and bool(view.message or not view.reason)


def _group(obj: Json) -> _Group:
    meta = obj["metadata"]
    ours = podgroups.MANAGED.items() <= (meta.get("labels") or {}).items()
    return _Group(meta["name"], meta["uid"], not ours, _conditions(obj))


def _key(obj: Json) -> GangKey:
    meta = obj["metadata"]
    return meta["namespace"], (meta.get("labels") or {}).get(contract.LABEL_GANG, "")


def _conditions(obj: Json) -> tuple[Json, ...]:
    return tuple((obj.get("status") or {}).get("conditions") or ())


def _path(namespace: str, name: str = "") -> str:
    return f"/apis/{podgroups.API_VERSION}/namespaces/{namespace}/podgroups" + (f"/{name}" if name else "")
