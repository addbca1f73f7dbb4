"""What is too old is noticed by resource, and told to Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from extender.api import Api
from extender.app import Extender, Options
from extender.freshness import LIMIT_SECONDS, Freshness
from extender.informer import Informer
from gangs import contract
from tests.builders import make_room
from tests.extender.test_informer import Heard, Script, page, thing
from tests.extender.world import Clock, FakeApi, gang
from tests.waiting import eventually

PODS = "/api/v1/pods"


async def test_lists_events_and_bookmarks_are_signs_of_life() -> None:
    told: list[str] = []
    script = Script([page("a")], [[("ADDED", thing("b")), ("BOOKMARK", thing("", 7))]])

    async def pause(_: float) -> None:
        pass

    with pytest.raises(asyncio.CancelledError):  # with which the script ends
        await Informer(cast("Api", script), PODS, Heard(), pause, told.append).run()
    assert told == [PODS] * 3


def test_a_watch_is_stale_when_nothing_came_for_too_long_and_fresh_with_the_next_sign() -> None:
    clock = Clock()
    freshness = Freshness(clock)
    freshness.heard(PODS)
    freshness.heard("/api/v1/nodes")
    clock.advance(LIMIT_SECONDS)
    assert not freshness.stale
    clock.advance(1)
    freshness.heard("/api/v1/nodes")
    assert freshness.stale == ("pods",)
    assert freshness.ages == {"pods": LIMIT_SECONDS + 1, "nodes": 0}
    freshness.heard(PODS)
    assert not freshness.stale


async def test_nothing_new_is_granted_while_a_watch_is_stale() -> None:
    options = Options(None, "127.0.0.1", 0, (contract.SCHEDULER_NAME,))
    extender = Extender(cast("Api", FakeApi()), options)
    clock = Clock()
    extender.freshness = Freshness(clock)
    extender.freshness.heard(PODS)
    clock.advance(LIMIT_SECONDS + 1)
    for node in make_room({"a": 4}).nodes.values():
        extender.room.put_node(node)
    tasks = [asyncio.create_task(work()) for work in (extender.leadership.run, extender.plan)]
    try:
        for pod in gang(3):
            extender.pods.update(pod)
        await asyncio.sleep(0.1)
        assert extender.leads
        assert not extender.store.permits
        extender.freshness.heard(PODS)
        extender.wake.set()
        await eventually(_granted(extender))
    finally:
        extender.grants.abandon()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _granted(extender: Extender) -> Callable[[], Awaitable[bool]]:
    async def granted() -> bool:
        return bool(extender.store.permits)

    return granted
