"""Look-ups of owners, namespaces and Topologies, cheap enough for 512 Pods of one Job in a second.

    gather(pod) ──► namespace          ┐
                    PodGroup, or a set ┤ at once
                    owner ─────────────┴► Deployment above ──► Topologies (only if a KAI key is there)

Every answer is kept for two seconds and asked for once, however many Pods wait for it. A look-up that
fails is a clause in Surroundings.failures, never an exception.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gangs.notes import Note
from webhook import priority, read, sets
from webhook.pod import Controller, Owner, Pod, Surroundings, Topology

Json = dict[str, Any]

_KEEP_SECONDS: Final = 2.0
_MAX_KEPT: Final = 4096
# For all rounds of one Pod: the API server waits two seconds for us. Most Pods need one round, which may
# use it up.
_GATHER_SECONDS: Final = 1.4
_LATER_SECONDS: Final = 0.05  # what a later round gets at least: its answer may be at hand
_LASTING: Final = (401, 403)  # a permission that lacks; waiting changes nothing

PATHS: Final = {
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets/{}",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/{}",
    "Job": "/apis/batch/v1/namespaces/{}/jobs/{}",
}
TOPOLOGIES: Final = "/apis/kai.scheduler/v1alpha1/topologies"


class Reader(Protocol):
    """Reads one object, or a list, of the API server. None means 404; other errors are raised."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None: ...


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    passing: bool = True


@dataclass(slots=True)
class _Gathering:
    """One Pod's look-ups. end: when they must be over; undecided: its owner couldn't be read just now."""

    end: float
    failures: list[str] = field(default_factory=list)
    undecided: bool = False
    notes: list[Note] = field(default_factory=list)


@dataclass(slots=True)
class _Entry:
    task: asyncio.Task[Json | None]
    until: float


class Lookups:
    """The cache in front of a Reader. One per process; lives in one event loop."""

    def __init__(self, reader: Reader, clock: Callable[[], float]) -> None:
        self._reader = reader
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._running: set[asyncio.Task[Json | None]] = set()  # the event loop itself holds tasks weakly

    async def close(self) -> None:
        """Give up on what is still being asked."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def gather(
        self, pod: Pod, needs_topologies: Callable[[Pod, Owner | None], bool], group_path: str = ""
    ) -> Surroundings:
        """Everything that the dialects may want to know about this Pod.

        group_path: where the PodGroup is that it names, "" if it names none.
        """
        this = _Gathering(asyncio.get_running_loop().time() + _GATHER_SECONDS)
        namespace, controller, group, found = await asyncio.gather(
            self._get(f"/api/v1/namespaces/{pod.namespace}", this),
            self._owner(pod, this),
            self._named(group_path, this),
            self._named(sets.path(pod), this),
        )
        owner = sets.group_of(pod, found) or controller
        if isinstance(namespace, _Failure):
            this.failures.append(f"namespace {pod.namespace} could not be read ({namespace.reason})")
        labels = read.labels(namespace) if isinstance(namespace, dict) else {}
        topologies = await self._topologies(this) if needs_topologies(pod, owner) else None
        priority_class = await self._priority(pod, owner, this)
        failures, notes = tuple(this.failures), tuple(this.notes)
        return Surroundings(owner, labels, topologies, failures, this.undecided, group, priority_class, notes)

    async def _owner(self, pod: Pod, this: _Gathering) -> Owner | None:
        reference = pod.controller
        if reference is None or reference.kind not in PATHS:
            return None
        found = await self._workload(pod.namespace, reference, this)
        above = read.controller(found) if found else None
        if above is not None and above.kind == "Deployment":
            reference, found = above, await self._workload(pod.namespace, above, this)
        if found is None:
            return read.unread_owner(pod.namespace, reference)
        return read.owner(reference.kind, found)

    async def _priority(self, pod: Pod, owner: Owner | None, this: _Gathering) -> str:
        """The first PriorityClass that labels name and that exists."""
        for wish in priority.wishes(pod, owner):
            answer = await self._get(priority.PATH.format(wish.name), this)
            if isinstance(answer, dict):
                return wish.name
            if isinstance(answer, _Failure):
                this.failures.append(f"PriorityClass {wish.name} could not be read ({answer.reason})")
                return ""
            this.notes.append(wish.missing)
        return ""

    async def _named(self, path: str, this: _Gathering) -> Json | None:
        answer = await self._get(path, this) if path else None
        if isinstance(answer, _Failure):
            this.undecided |= answer.passing
            *_, kind, name = path.split("/")
            this.failures.append(f"{kind.removesuffix('s')} {name} could not be read ({answer.reason})")
            return None
        return answer

    async def _workload(self, namespace: str, reference: Controller, this: _Gathering) -> Json | None:
        path = PATHS[reference.kind].format(namespace, reference.name)
        answer = await self._get(path, this, reference.uid)
        if isinstance(answer, dict) and read.uid(answer) == reference.uid:
            return answer
        this.undecided |= isinstance(answer, _Failure) and answer.passing
        why = answer.reason if isinstance(answer, _Failure) else "it is gone"
        title = f"{reference.kind.lower()} {namespace}/{reference.name}"
        this.failures.append(f"{title} could not be read ({why})")
        return None

    async def _topologies(self, this: _Gathering) -> tuple[Topology, ...] | None:
        answer = await self._get(TOPOLOGIES, this)
        if isinstance(answer, _Failure):
            this.failures.append(f"the Topologies could not be read ({answer.reason})")
            return None
        return read.topologies(answer or {})

    async def _get(self, path: str, this: _Gathering, version: str = "") -> Json | _Failure | None:
        task = self._task(path, version)
        seconds = max(this.end - asyncio.get_running_loop().time(), _LATER_SECONDS)
        try:
            # Shielded: others wait for the same answer, and a late one still serves the next Pod.
            return await asyncio.wait_for(asyncio.shield(task), seconds)
        except TimeoutError:
            return _Failure(f"no answer within {seconds:.2g} s")
        except Exception as error:
            lasting = getattr(error, "status", 0) in _LASTING
            return _Failure(str(error) or type(error).__name__, passing=not lasting)

    def _task(self, path: str, version: str) -> asyncio.Task[Json | None]:
        key, now = (path, version), self._clock()
        entry = self._entries.get(key)
        if entry is not None and entry.until > now:
            return entry.task
        task = asyncio.create_task(self._read(path))
        self._running.add(task)
        self._entries[key] = _Entry(task, now + _KEEP_SECONDS)
        self._entries.move_to_end(key)
        task.add_done_callback(lambda done: self._settle(key, done))
        while len(self._entries) > _MAX_KEPT:
            self._entries.popitem(last=False)
        return task

    async def _read(self, path: str) -> Json | None:
        return await self._reader.get(path)

    def _settle(self, key: tuple[str, str], task: asyncio.Task[Json | None]) -> None:
        self._running.discard(task)
        failed = task.cancelled() or task.exception() is not None
        entry = self._entries.get(key)
        if failed and entry is not None and entry.task is task:
            del self._entries[key]  # the next Pod asks anew
