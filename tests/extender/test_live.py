"""What the live page is told: everything once, then only changes, and nobody looks while nobody watches."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from extender import page as pages
from extender.live import Live, Snapshot, changes
from extender.page import Page
from extender.views import Views
from tests.builders import make_loose
from tests.extender.world import World, gang
from tests.waiting import eventually

Client = TestClient[web.Request, web.Application]


class Watched(Live):
    """Counts how often everything is looked at."""

    looks = 0

    async def look(self) -> Snapshot:
        self.looks += 1
        return await super().look()


def live_of(world: World) -> Watched:
    views = Views(world.registry, world.room, world.store, world.rounds, world.news)
    return Watched(views, world.registry, world.room, world.store, world.clock, lambda: True)


async def test_an_empty_page_is_told_everything() -> None:
    world = World({"a": 2})
    world.board(*gang(2))
    told = changes(None, await live_of(world).look())
    assert told["whole"]
    assert told["nodes"]["a0"] == {
        "clique": "a",
        "gpus": 4,
        "used": 0,
        "promised": 4,
        "state": "",
        "gangs": ["default/llm"],
    }
    assert told["gangs"]["default/llm"]["phase"] == "Granted"
    assert [row["outcome"] for row in told["entries"]] == ["granted"]


async def test_a_page_is_told_only_what_has_changed() -> None:
    world = World({"a": 200})
    live, pods = live_of(world), gang(2)
    world.board(*pods)
    before = await live.look()
    assert changes(before, await live.look()) == {}
    world.bind(*pods)
    world.update(make_loose("job", gpus=1, node="a99"))
    world.room.drop_node("a150")
    told = changes(before, await live.look())
    assert not told["whole"]
    assert sorted(told["nodes"]) == sorted(
        {"a99", *(pod.node for pod in world.registry.members(pods[0].key))}
    )
    assert told["nodesGone"] == ["a150"]
    assert [row["outcome"] for row in told["entries"]] == ["boarded"]
    for pod in pods:
        world.pods.drop(pod.uid)
    assert changes(before, await live.look())["gangsGone"] == ["default/llm"]


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[World, Watched, Client]]:
    monkeypatch.setattr(pages, "LOOK_SECONDS", 0.02)
    world = World({"a": 2})
    live, app = live_of(world), web.Application()
    Page(live).add_to(app)
    async with TestClient(TestServer(app)) as client:
        yield world, live, client


async def message(answer: ClientResponse) -> Any:
    """The next message of the stream that is no comment."""
    async with asyncio.timeout(5):
        while not (line := await answer.content.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
        return orjson.loads(line.removeprefix(b"data: "))


async def test_a_browser_that_comes_later_is_told_everything_too(
    served: tuple[World, Watched, Client],
) -> None:
    world, _, client = served
    async with client.get("/ui/events") as first:
        assert (await message(first))["whole"]
        world.board(*gang(2))
        assert list((await message(first))["gangs"]) == ["default/llm"]
        async with client.get("/ui/events") as second:
            told = await message(second)
            assert told["whole"]
            assert list(told["gangs"]) == ["default/llm"]


async def test_nobody_looks_while_nobody_watches(served: tuple[World, Watched, Client]) -> None:
    _, live, client = served
    await client.get("/ui")
    assert live.looks == 0
    async with client.get("/ui/events") as answer:
        await message(answer)
    world_looks = live.looks

    async def quiet() -> bool:
        nonlocal world_looks
        before, world_looks = world_looks, live.looks
        await asyncio.sleep(0.2)
        return before == live.looks

    await eventually(quiet, within=10)


async def test_too_many_browsers_are_told_so(
    served: tuple[World, Watched, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_BROWSERS", 1)
    _, _, client = served
    async with client.get("/ui/events") as first:
        await message(first)
        async with client.get("/ui/events") as second:
            assert (second.status, await second.text()) == (503, "1 browsers watch already\n")


async def test_a_browser_is_let_go_when_the_extender_stops(served: tuple[World, Watched, Client]) -> None:
    _, _, client = served
    async with client.get("/ui/events") as answer:
        await message(answer)
        assert client.server is not None
        async with asyncio.timeout(5):
            await client.server.close()
            assert b"data" not in await answer.content.read()


async def test_nothing_on_the_page_comes_from_elsewhere(served: tuple[World, Watched, Client]) -> None:
    _, _, client = served
    for path in ("/ui", "/ui/page.js", "/ui/page.css"):
        async with client.get(path) as answer:
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert "http" not in (await answer.text()).replace("http-equiv", "")
