"""Who leads, on virtual time and against an API server that keeps one Lease."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.api import ApiError, Json
from extender.leadership import SURE_SECONDS, Alone, Elector, Leadership
from extender.leases import LEASE_SECONDS, RETRY_SECONDS, BesideScheduler, LeaseName, OwnLease

pytestmark = pytest.mark.looptime

LEASE = LeaseName("allaboard-system", "allaboard-scheduler")


class LeaseServer:
    """Keeps one Lease with its version. away: cannot be reached."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.away = False
        self.writes = 0

    async def get(self, path: str) -> Json | None:
        self._reach(path)
        return self.lease

    async def create(self, path: str, body: Json) -> Json:
        self._reach(path)
        if self.lease:
            raise ApiError("POST", path, 409, "AlreadyExists", "")
        return self._store(body)

    async def replace(self, path: str, body: Json) -> Json:
        self._reach(path)
        if not self.lease or body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError("PUT", path, 409, "Conflict", "")
        return self._store(body)

    def hold(self, holder: str, transitions: int = 0) -> None:
        """Somebody else writes the Lease."""
        self._store({"metadata": {}, "spec": {"holderIdentity": holder, "leaseTransitions": transitions}})

    @property
    def spec(self) -> Json:
        assert self.lease
        spec: Json = self.lease["spec"]
        return spec

    def _store(self, body: Json) -> Json:
        self.writes += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.writes)}}
        return self.lease

    def _reach(self, path: str) -> None:
        if self.away:
            raise ApiError("CALL", path, 0, "Unreachable", "")


class Candidate:
    """An extender that takes part. terms: each that it has led in, "" for standing by; at: since when."""

    def __init__(self, elector: Elector) -> None:
        self.terms: list[str] = []
        self.at: list[float] = []
        self.leadership = Leadership(elector, _time(), self._note)
        self.task = asyncio.create_task(self.leadership.run())

    def leads(self) -> bool:
        return bool(self.leadership.term)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def _note(self) -> None:
        self.terms.append(self.leadership.term)
        self.at.append(_time()())


def _time() -> Callable[[], float]:
    return asyncio.get_running_loop().time


def own(server: Any, identity: str) -> Candidate:
    return Candidate(OwnLease(server, LEASE, identity, _time()))


def beside(server: Any, identity: str) -> Candidate:
    return Candidate(BesideScheduler(server, LEASE, identity))


async def test_the_only_one_leads_at_once_and_for_ever() -> None:
    only = Candidate(Alone())
    await asyncio.sleep(1e6)
    assert len(only.terms) == 1
    assert only.leads()
    await only.stop()
    assert not only.leads()


class TestOwnLease:
    """Two extenders and one Lease."""

    async def test_of_two_one_leads_for_as_long_as_it_renews(self) -> None:
        server = LeaseServer()
        first, second = own(server, "a"), own(server, "b")
        for _ in range(60):
            await asyncio.sleep(1)
            assert first.leads()
            assert not second.leads()
        await asyncio.gather(first.stop(), second.stop())

    async def test_a_leader_that_stops_hands_over_at_once(self) -> None:
        server = LeaseServer()
        first, second = own(server, "a"), own(server, "b")
        await asyncio.sleep(5)
        await first.stop()
        await asyncio.sleep(RETRY_SECONDS)
        assert second.leads()
        assert server.spec["leaseTransitions"] == 1
        await second.stop()

    async def test_a_silent_leader_is_replaced_once_its_lease_is_over(self) -> None:
        server = LeaseServer()
        server.hold("gone_1", transitions=4)
        heir = own(server, "b")
        await asyncio.sleep(LEASE_SECONDS - 1)
        assert not heir.leads()
        await asyncio.sleep(1 + RETRY_SECONDS)
        assert heir.leads()
        assert server.spec["leaseTransitions"] == 5
        await heir.stop()

    async def test_a_leader_without_an_api_server_stands_by_before_anybody_else_may_lead(self) -> None:
        server = LeaseServer()
        leader, renewed = own(server, "a"), _time()()
        await asyncio.sleep(1)
        server.away = True
        await asyncio.sleep(30)
        first, lost = leader.at
        assert first == renewed
        assert SURE_SECONDS <= lost - renewed < LEASE_SECONDS
        server.away = False
        await asyncio.sleep(2 * RETRY_SECONDS)
        assert leader.leads()
        await leader.stop()

    async def test_to_lead_lose_and_lead_again_are_two_terms(self) -> None:
        server = LeaseServer()
        leader = own(server, "a")
        await asyncio.sleep(1)
        server.hold("b", transitions=1)
        await asyncio.sleep(RETRY_SECONDS)
        assert not leader.leads()
        server.hold("", transitions=1)
        await asyncio.sleep(RETRY_SECONDS)
        first, lost, second = leader.terms
        assert lost == ""
        assert first != second
        await leader.stop()

    async def test_who_comes_late_to_a_free_lease_stands_by(self) -> None:
        server = LeaseServer()
        candidates = [own(server, name) for name in "abcde"]
        await asyncio.sleep(1)
        assert sum(c.leads() for c in candidates) == 1
        await asyncio.gather(*(c.stop() for c in candidates))


class TestBesideScheduler:
    """The kube-scheduler in our Pod decides."""

    async def test_it_leads_while_its_own_kube_scheduler_holds_the_lease(self) -> None:
        server = LeaseServer()
        server.hold("pod-a_1234")
        one, other = beside(server, "pod-a"), beside(server, "pod-b")
        await asyncio.sleep(1)
        assert (one.leads(), other.leads()) == (True, False)
        server.hold("pod-b_5678", transitions=1)
        await asyncio.sleep(1)
        assert (one.leads(), other.leads()) == (False, True)
        await asyncio.gather(one.stop(), other.stop())
        assert server.writes == 2, "the Lease is kube-scheduler's to write"

    async def test_a_name_that_only_begins_alike_is_somebody_else(self) -> None:
        server = LeaseServer()
        server.hold("pod-ab_1234")
        one = beside(server, "pod-a")
        await asyncio.sleep(1)
        assert not one.leads()
        await one.stop()

    async def test_a_kube_scheduler_that_leads_lost_and_leads_again_begins_a_new_term(self) -> None:
        server = LeaseServer()
        server.hold("pod-a_1", transitions=0)
        one = beside(server, "pod-a")
        await asyncio.sleep(1)
        server.hold("pod-a_1", transitions=2)  # B's time was over between two looks
        await asyncio.sleep(1)
        assert len(one.terms) == 2
        assert one.leads()
        await one.stop()

    async def test_without_a_lease_nobody_leads(self) -> None:
        one = beside(LeaseServer(), "pod-a")
        await asyncio.sleep(10)
        assert not one.leads()
        await one.stop()
