"""Look-ups: each thing asked once in a while, failures bounded in time and never kept."""

import asyncio
from collections.abc import Mapping

import pytest

from tests.webhook.world import Json, World, namespace, parallel, parsed, pod
from webhook.lookup import Lookups
from webhook.pod import Surroundings

LLM = parallel("llm", replicas=3)
PATH = "/apis/apps/v1/namespaces/default/statefulsets/llm"


class Hanging(World):
    """Answers nothing for a minute."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        await asyncio.sleep(60)
        return await super().get(path, params)


async def gather(lookups: Lookups) -> Surroundings:
    return await lookups.gather(parsed(pod(LLM)), lambda *_: True)


async def test_an_answer_is_kept_for_two_seconds() -> None:
    world = World(LLM, namespace(a="b"))
    clock = [0.0]
    lookups = Lookups(world, lambda: clock[0])
    for clock[0], calls in ((0.0, 1), (1.9, 1), (2.1, 2)):
        around = await gather(lookups)
        assert around.owner is not None
        assert around.owner.size == 3
        assert world.calls.count(PATH) == calls


async def test_a_failure_is_not_kept() -> None:
    world = World(LLM)
    world.broken = ("statefulsets",)
    lookups = Lookups(world, lambda: 0.0)
    assert (await gather(lookups)).failures == (
        "statefulset default/llm could not be read (connection refused)",
    )
    world.broken = ()
    assert (await gather(lookups)).failures == ()


async def test_an_owner_that_is_gone_is_a_failure() -> None:
    around = await gather(Lookups(World(), lambda: 0.0))
    assert around.failures == ("statefulset default/llm could not be read (it is gone)",)
    assert around.owner is not None
    assert around.owner.size is None


@pytest.mark.looptime
async def test_an_owner_that_is_read_slowly_is_still_read() -> None:
    class Slow(World):
        async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
            await asyncio.sleep(0.8)
            return await super().get(path, params)

    around = await gather(Lookups(Slow(LLM), asyncio.get_running_loop().time))
    assert around.owner is not None
    assert around.owner.size == 3


@pytest.mark.looptime
async def test_an_api_server_that_hangs_costs_less_than_a_second_and_a_half() -> None:
    loop = asyncio.get_running_loop()
    lookups = Lookups(Hanging(LLM), loop.time)
    before = loop.time()
    around = await gather(lookups)
    assert len(around.failures) == 3
    assert 0.4 < loop.time() - before < 1.5
    await lookups.close()


async def test_what_was_not_there_is_asked_for_again_soon() -> None:
    world, clock = World(LLM), [0.0]
    path = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs/g"
    lookups = Lookups(world, lambda: clock[0])

    async def group() -> object:
        return (await lookups.gather(parsed(pod(LLM)), lambda *_: False, path)).group

    assert await group() is None
    world.objects[path] = {"kind": "PodGang"}
    assert await group() is None
    clock[0] = 0.3
    assert await group() == {"kind": "PodGang"}
