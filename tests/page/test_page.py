"""The live page in a headless Chromium, over an extender's parts in this process."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Page as Window

from extender.consolidation import Consolidation
from extender.debug import Debug
from extender.live import Live
from extender.news import SETTLED_SECONDS
from extender.page import Page
from extender.views import Views
from gangs.pods import Pod
from tests.builders import make_loose, make_pod
from tests.extender.world import World, gang
from tests.page.browser import browser, drawn, needs_chromium, opened, soon

pytestmark = needs_chromium


@dataclass
class Served:
    """A world and the page on it."""

    world: World
    url: str

    def told(self) -> None:
        """A round, and what is told once states have settled."""
        self.world.round()
        list(self.world.news.due(self.world.clock()))
        self.world.round(SETTLED_SECONDS)
        list(self.world.news.due(self.world.clock()))


@asynccontextmanager
async def serving(cliques: Mapping[str, int]) -> AsyncIterator[Served]:
    world = World(cliques)
    views = Views(world.registry, world.room, world.store, world.rounds, world.news)
    live = Live(views, world.registry, world.room, world.store, world.clock, lambda: True)
    app = web.Application()
    Page(live).add_to(app)
    consolidation = Consolidation(world.registry, world.room, world.rounds, world.shapes)
    pages = Debug(views, world.registry, world.room, world.store, world.rounds, consolidation)
    app.add_subapp("/debug", pages.application())
    async with TestServer(app) as server:
        yield Served(world, str(server.make_url("/ui")))


@asynccontextmanager
async def watching(cliques: Mapping[str, int]) -> AsyncIterator[tuple[Served, Window]]:
    async with serving(cliques) as served, browser() as started, opened(started, served.url) as window:
        yield served, window


async def test_it_follows_a_gang_from_waiting_to_aboard_without_being_loaded_again() -> None:
    async with watching({"a": 3, "b": 2}) as (served, window):
        world, pods = served.world, gang(3)
        squatter = make_loose("squatter", gpus=3, node="a0")
        world.update(squatter, *pods)
        served.told()
        await soon(window, "document.querySelectorAll('#waiting .gang').length === 1")
        text = await window.inner_text("#waiting .gang")
        assert "Closest: a has 2 (1 taken by squatter)." in text
        assert "3 of 3 here, 0 bound" in text
        assert (await drawn(window))["a0"] == {"clique": "a", "used": 3, "promised": 0, "lit": False}
        world.pods.drop(squatter.uid)
        world.round()
        await soon(window, "document.querySelector('#moving .facts')?.textContent.startsWith('Granted in a')")
        assert [row["promised"] for row in (await drawn(window)).values() if row["clique"] == "a"] == [4] * 3
        world.bind(*pods)
        await soon(window, "document.querySelector('#moving .facts')?.textContent.startsWith('Aboard')")
        assert await window.inner_text("#waiting") == "no gang waits"
        lines = await window.locator("#timeline li").all_inner_texts()
        assert ["is aboard in a: 3 members" in lines[0], "has its places in a" in lines[1]] == [True, True]
        assert [await window.inner_text(f"#total-{part}") for part in ("used", "promised", "free")] == [
            "12",
            "0",
            "8",
        ]


async def test_a_click_on_a_gang_lights_its_nodes_and_escape_ends_it() -> None:
    async with watching({"a": 4, "b": 4}) as (served, window):
        pods = gang(3)
        served.world.board(*pods)
        served.world.bind(*pods)
        served.world.board(*gang(2, "other"))
        await soon(window, "document.querySelectorAll('#moving .gang').length === 2")
        await window.click("#moving li[data-gang='default/llm'] button")
        seats = {pod.node for pod in served.world.registry.members(("default", "llm"))}
        assert {name for name, row in (await drawn(window)).items() if row["lit"]} == seats
        assert (
            await window.get_attribute("#moving li[data-gang='default/llm'] button", "aria-pressed") == "true"
        )
        assert await window.inner_text("#details-title") == "default/llm"
        await window.keyboard.press("Escape")
        assert not any(row["lit"] for row in (await drawn(window)).values())
        assert await window.is_hidden("#details")


async def test_a_waiting_gang_shows_what_each_domain_lacks_and_which_is_nearest() -> None:
    async with watching({"a": 4, "b": 2}) as (served, window):
        served.world.update(*gang(5))
        served.told()
        await window.click("#waiting .gang")
        await soon(window, "document.querySelectorAll('#details-table tbody tr').length === 2")
        rows = [
            (await row.inner_text()).split("\t")
            for row in await window.locator("#details-table tbody tr").all()
        ]
        assert [row[:3] for row in rows] == [["a", "4", "5"], ["b", "2", "5"]]
        near = await window.locator(".rack.near").all()
        assert [await rack.get_attribute("data-clique") for rack in near] == ["a"]


async def test_everything_can_be_reached_by_keyboard() -> None:
    async with watching({f"c{i:02d}": 2 for i in range(40)}) as (served, window):
        served.world.update(*gang(3))
        served.told()
        await soon(window, "document.querySelectorAll('#waiting .gang').length === 1")
        focused = "document.activeElement.dataset.clique ?? document.activeElement.className"
        await window.keyboard.press("Tab")
        assert await window.evaluate(focused) == "c00"
        for key, clique in (("ArrowRight", "c01"), ("End", "c39"), ("ArrowRight", "c39"), ("Home", "c00")):
            await window.keyboard.press(key)
            assert await window.evaluate(focused) == clique
        await window.keyboard.press("ArrowDown")
        below = await window.evaluate(focused)
        await window.keyboard.press("ArrowUp")
        assert below != "c00"
        assert await window.evaluate(focused) == "c00"
        await window.keyboard.press("Enter")
        assert await window.inner_text("#details-title") == "c00"
        await window.keyboard.press("Tab")
        await window.keyboard.press("Tab")
        assert await window.evaluate(focused) == "gang"
        await window.keyboard.press("Enter")
        assert await window.inner_text("#details-title") == "default/llm"
        assert await window.evaluate(focused) == "gang"


async def test_names_are_shown_as_text_whatever_they_are() -> None:
    evil = "<img src=x onerror=alert(1)>"
    async with watching({evil: 1, "a": 1}) as (served, window):
        served.world.update(*gang(2, evil))
        served.told()
        await soon(window, "document.querySelectorAll('#waiting .gang').length === 1")
        assert evil in await window.inner_text("#waiting")
        assert await window.locator("img").count() == 0


async def test_a_node_that_is_gone_or_cordoned_is_seen() -> None:
    async with watching({"a": 2, "b": 1}) as (served, window):
        room = served.world.room
        served.world.nodes.update(replace(room.nodes["a1"], cordoned=True))
        room.drop_node("b0")
        await soon(window, "document.querySelectorAll('.rack').length === 1")
        await soon(window, "document.querySelector('[data-node=a1]').dataset.state === 'cordoned'")


async def test_a_page_whose_extender_went_says_so_and_goes_on_when_it_is_back() -> None:
    async with browser() as started, serving({"a": 1}) as served, opened(started, served.url) as window:
        await window.context.set_offline(True)
        await window.evaluate("window.stop()")
        await soon(window, "document.getElementById('status').classList.contains('lost')")
        assert "what is shown is old" in await window.inner_text("#status")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_is_readable_in_light_and_dark(scheme: str) -> None:
    async with (
        serving({"a": 4}) as served,
        browser() as started,
        opened(started, served.url, color_scheme=scheme) as window,
    ):
        served.world.update(*gang(5))
        served.told()
        await soon(window, "document.querySelectorAll('#waiting .gang').length === 1")
        pairs: list[tuple[str, str]] = await window.evaluate(
            """() => ['body', 'h2', '.hint', '.gang .message', '.gang .facts', '#status'].map(what => {
                const element = document.querySelector(what);
                let at = element;
                while (getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)') at = at.parentElement;
                return [getComputedStyle(element).color, getComputedStyle(at).backgroundColor];
            })"""
        )
        assert min(contrast(*pair) for pair in pairs) >= 4.5
        assert (luminance(pairs[0][1]) > 0.5) == (scheme == "light")


BRIGHTNESS = """async (picture) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + picture;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    const {data} = canvas.getImageData(0, 0, image.width, image.height);
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) {
        sum += .2126 * data[i] + .7152 * data[i + 1] + .0722 * data[i + 2];
    }
    return sum / (data.length / 4);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", ["achromatopsia", "deuteranopia", "protanopia", "tritanopia"])
async def test_used_promised_and_free_are_told_apart_without_seeing_colours(scheme: str, sight: str) -> None:
    async with serving({"a": 3}) as served, browser() as started:
        served.world.update(make_loose("job", node="a0"))
        served.world.board(make_pod("boards", gang="g", floor=1, required=("kubernetes.io/hostname",)))
        async with opened(started, served.url, color_scheme=scheme, device_scale_factor=4) as window:
            session = await window.context.new_cdp_session(window)
            await session.send("Emulation.setEmulatedVisionDeficiency", {"type": sight})
            seen = {}
            for node in ("a0", "a1", "a2"):
                picture = await window.locator(f"[data-node={node}]").screenshot()
                seen[node] = await window.evaluate(BRIGHTNESS, base64.b64encode(picture).decode())
            shown = await drawn(window)
    assert [(shown[node]["used"], shown[node]["promised"]) for node in seen] == [(4, 0), (0, 4), (0, 0)]
    used, promised, free = seen.values()
    assert min(abs(used - promised), abs(used - free), abs(promised - free)) > 20


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two CSS colours."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


async def test_three_hundred_cliques_are_drawn_and_a_change_among_them_is_seen_soon() -> None:
    async with watching({f"c{i:04d}-": 18 for i in range(300)}) as (served, window):
        assert len(await drawn(window)) == 5400
        pods: list[Pod] = gang(18)
        served.world.board(*pods)
        served.world.bind(*pods)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await soon(window, "document.getElementById('total-used').textContent === '72'")
        assert loop.time() - began < 5
