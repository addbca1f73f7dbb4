"""Leases: by which of them an extender knows that it leads."""

import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from extender.api import ApiError, Json
from extender.leadership import Alone, Elector

MODES: Final = ("none", "own", "scheduler")
LEASE_SECONDS: Final = 15  # as in client-go's defaults: after this a silent holder is replaced
RETRY_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.5


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""

    async def replace(self, path: str, body: Json) -> Json:
        """PUT; 409 where the object's version is not the one given."""


@dataclass(frozen=True, slots=True)
class LeaseName:
    """A coordination.k8s.io/v1 Lease."""

    namespace: str
    name: str

    @property
    def collection(self) -> str:
        """Where Leases of the namespace are created."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        """Where the Lease is."""
        return f"{self.collection}/{self.name}"


OUR_LEASE: Final = LeaseName("allaboard-system", "allaboard-scheduler")


class BesideScheduler:
    """Leads while the kube-scheduler whose identity begins with ours holds its Lease.

    kube-scheduler's identity is HOSTNAME_UUID, and containers of one Pod share the host name.
    """

    pause = LOOK_SECONDS

    def __init__(self, api: Api, lease: LeaseName, identity: str) -> None:
        self._api = api
        self._lease = lease
        self._identity = identity

    async def look(self) -> str:
        """The term of the kube-scheduler beside us, "" where it doesn't lead."""
        spec = ((await self._api.get(self._lease.path)) or {}).get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        ours = holder == self._identity or holder.startswith(f"{self._identity}_")
        return _term(spec) if ours else ""

    async def resign(self) -> None:
        """kube-scheduler does that."""


class OwnLease:
    """Takes a Lease and renews it, as client-go's leader election does."""

    pause = RETRY_SECONDS

    def __init__(self, api: Api, lease: LeaseName, identity: str, clock: Callable[[], float]) -> None:
        self._api = api
        self._lease = lease
        self._identity = f"{identity}_{uuid.uuid4().hex[:8]}"
        self._clock = clock
        self._seen: tuple[str, float] = ("", 0.0)  # the Lease's version, and since when it is that

    async def look(self) -> str:
        """Renew our Lease, or take one that is free or whose holder is silent."""
        found = await self._api.get(self._lease.path)
        try:
            if found is None:
                body = self._body({}, self._spec({}))
                return _term((await self._api.create(self._lease.collection, body))["spec"])
            spec = found.get("spec") or {}
            if spec.get("holderIdentity") not in (None, "", self._identity) and not self._silent(found):
                return ""
            body = self._body(found["metadata"], self._spec(spec))
            return _term((await self._api.replace(self._lease.path, body))["spec"])
        except ApiError as error:
            if error.conflict:
                return ""  # somebody else was quicker
            raise

    async def resign(self) -> None:
        """Give the Lease back, if it is ours."""
        with suppress(ApiError):
            found = await self._api.get(self._lease.path)
            if found and found["spec"].get("holderIdentity") == self._identity:
                spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._api.replace(self._lease.path, self._body(found["metadata"], spec))

    def _silent(self, found: Json) -> bool:
        """Whether the holder hasn't renewed it for as long as it said; by our clock, not by its."""
        version, now = found["metadata"]["resourceVersion"], self._clock()
        if self._seen[0] != version:
            self._seen = version, now
        return now - self._seen[1] >= (found["spec"].get("leaseDurationSeconds") or LEASE_SECONDS)

    def _spec(self, spec: Json) -> Json:
        stamp = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = spec.get("holderIdentity") == self._identity
        transitions = spec.get("leaseTransitions") or 0
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": spec.get("acquireTime") if mine else stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions if mine or not spec else transitions + 1,
        }

    def _body(self, meta: Json, spec: Json) -> Json:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**meta, "name": self._lease.name, "namespace": self._lease.namespace},
            "spec": spec,
        }


@dataclass(frozen=True, slots=True)
class Election:
    """How it is decided who leads. mode: one of MODES. identity: our name in it."""

    mode: str = "none"
    lease: LeaseName = OUR_LEASE
    identity: str = field(default_factory=socket.gethostname)


def elector(api: Api, election: Election, clock: Callable[[], float]) -> Elector:
    """Who looks whether we lead."""
    match election.mode:
        case "own":
            return OwnLease(api, election.lease, election.identity, clock)
        case "scheduler":
            return BesideScheduler(api, election.lease, election.identity)
        case _:
            return Alone()


def _term(spec: Json) -> str:
    return f"{spec.get('holderIdentity')}/{spec.get('leaseTransitions') or 0}"
