"""What is too old is noticed by resource, and told to Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from extender.api import Api
from extender.clock import steady_clock
from extender.core import Core
from extender.freshness import LIMIT_SECONDS, Freshness
from extender.informer import Informer
from extender.options import Options
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
    core = Core(cast("Api", FakeApi()), options, steady_clock())
    clock = Clock()
    core.freshness = Freshness(clock)
    core.freshness.heard(PODS)
    clock.advance(LIMIT_SECONDS + 1)
    for node in make_room({"a": 4}).nodes.values():
        core.room.put_node(node)
    tasks = [asyncio.create_task(work()) for work in (core.leadership.run, core.plan)]
    try:
        for pod in gang(3):
            core.pods.update(pod)
        await asyncio.sleep(0.1)
        assert core.leads
        assert not core.store.permits
        core.freshness.heard(PODS)
        core.wake.set()
        await eventually(_granted(core))
    finally:
        core.grants.abandon()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _granted(core: Core) -> Callable[[], Awaitable[bool]]:
    async def granted() -> bool:
        return bool(core.store.permits)

    return granted
