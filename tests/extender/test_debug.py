"""What the extender tells on its private port, seen through HTTP."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.consolidation import Consolidation
from extender.debug import Debug
from extender.views import Views
from gangs.identity import podgang_label
from gangs.pods import Owner
from tests.builders import make_owner, make_pod
from tests.extender.world import World, gang


class Page:
    """The debug pages of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        views = Views(world.registry, world.room, world.store, world.rounds, world.news)
        consolidation = Consolidation(world.registry, world.room, world.rounds, world.shapes)
        pages = Debug(views, world.registry, world.room, world.store, world.rounds, consolidation)
        app = web.Application()
        app.add_subapp("/debug", pages.application())
        self.client = TestClient(TestServer(app))

    async def get(self, path: str, status: int = 200) -> Any:
        answer = await self.client.get(f"/debug/{path}")
        assert answer.status == status
        return await answer.json()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    page = Page(World({"a": 4, "b": 2}))
    async with page.client:
        yield page


async def phase_of(page: Page) -> str:
    [row] = await page.get("gangs")
    return str(row["phase"])


async def test_a_gang_is_seen_in_every_phase_of_its_road(page: Page) -> None:
    world, pods = page.world, gang(3)
    world.board(*pods[:2])
    assert await phase_of(page) == "Gathering"
    taken = [make_pod(f"busy-{i}", gang="", scheduler="other", node=f"a{i}", gated=False) for i in range(4)]
    world.update(*taken)
    world.board(*pods)
    assert await phase_of(page) == "Waiting"
    for busy in taken:
        world.pods.drop(busy.uid)
    world.round()
    assert await phase_of(page) == "Granted"
    world.bind(*pods)
    assert await phase_of(page) == "Aboard"
    [row] = await page.get("gangs")
    assert (row["here"], row["floor"], row["bound"], row["domain"]) == (3, 3, 3, "a")


async def test_a_waiting_gang_names_every_domain_that_can_not_take_it_nearest_first(page: Page) -> None:
    page.world.board(*gang(5))
    told = await page.get("gang/default/llm")
    assert [(row["domain"], row["have"], row["need"]) for row in told["domains"]] == [
        ("a", 4, 5),
        ("b", 2, 5),
    ]
    assert told["reason"] == "GangWaiting"
    assert "Closest: a has 4" in told["message"]
    assert [member["name"] for member in told["members"]] == [f"llm-{i}" for i in range(5)]
    assert "autoscaler" in told["hints"][0]


async def test_a_gang_that_misses_members_is_not_said_to_lack_room(page: Page) -> None:
    page.world.board(*gang(3, floor=9))
    told = await page.get("gang/default/llm")
    assert (told["reason"], told["domains"]) == ("GangGathering", [])


async def test_a_gang_is_found_by_the_name_of_one_of_its_pods(page: Page) -> None:
    page.world.board(*gang(2))
    told = await page.get("gang/default/llm-1")
    assert (told["label"], told["phase"], told["domains"]) == ("llm", "Granted", [])
    assert {member["promised"] for member in told["members"]} == {"b0", "b1"}


async def test_a_gang_that_nobody_knows_is_named_in_the_error(page: Page) -> None:
    assert "default/nobody" in (await page.get("gang/default/nobody", status=404))["error"]


async def test_gpus_are_counted_as_used_or_promised(page: Page) -> None:
    page.world.board(*gang(2))
    page.world.update(make_pod("job", gang="", node="a0", scheduler="other", gated=False))
    assert await page.get("cliques") == [
        {"clique": "a", "nodes": 4, "gpus": 16, "used": 4, "promised": 0},
        {"clique": "b", "nodes": 2, "gpus": 8, "used": 0, "promised": 8},
    ]


async def test_the_state_counts_gangs_by_phase(page: Page) -> None:
    page.world.board(*gang(2), *gang(9, name="big"))
    state = await page.get("state")
    assert (state["nodes"], state["pods"], state["promised"]) == (6, 11, 2)
    assert state["gangs"] == {"Granted": 1, "Waiting": 1}


@pytest.mark.parametrize(("owner", "proposed"), [(make_owner("small"), True), (None, False)])
async def test_the_head_of_its_queue_is_told_which_gangs_would_have_to_move(
    page: Page, owner: Owner | None, proposed: bool
) -> None:
    world = page.world
    small = gang(1, "small", owner=owner)
    world.update(make_pod("busy", gang="", scheduler="other", node="b0", gated=False))
    world.update(replace(small[0], node="a0", gates=()))
    world.board(*gang(4, created=1))
    told = await page.get("gang/default/llm")
    moves = {"domain": "a", "moves": [{"gang": "default/small", "members": 1, "target": "b"}]}
    assert told["proposal"] == (moves if proposed else None)


async def test_a_podgang_is_found_by_its_name_without_the_hash(page: Page) -> None:
    world, label = page.world, podgang_label("pcs-0")
    world.board(*gang(3, label))
    told = await page.get("gang/default/pcs-0")
    assert told["label"] == label
