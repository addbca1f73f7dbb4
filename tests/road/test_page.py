"""The live page of the running extender in a headless Chromium, against API server and /debug pages."""

import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from playwright.async_api import Page as Window

from e2e import slow
from e2e.observer import Observer
from e2e.pods import GPUS
from e2e.scene import Play, statefulset
from e2e.stage import CLIQUE_NODES, Stage
from tests.page.browser import browser, drawn, needs_chromium, opened, soon

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), needs_chromium]

_NAMESPACE: Final = "shown"
_PICTURES: Final = os.environ.get("ALLABOARD_PICTURES", "")  # a folder: screenshots are kept there


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE, "others")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as started:
        yield started


def _url(play: Play) -> str:
    ports = json.loads((play.stage.kube.kubeconfig.parent / "dev" / "ports.json").read_text())
    return f"http://127.0.0.1:{ports['extender']}"


async def _debug(play: Play, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{_url(play)}/debug/{path}") as answer:
        return await answer.json()


async def _seats(play: Play) -> Counter[str]:
    """GPUs of bound Pods by node, as the API server has it."""
    pods = await play.stage.kube.items("pods")
    bound = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
    return Counter({node: GPUS * number for node, number in Counter(bound).items()})


async def _shows(window: Window, gang: str, phase: str) -> None:
    await soon(
        window,
        f"[...document.querySelectorAll('.gangs > li')].some(row => row.dataset.phase === '{phase}'"
        f" && row.querySelector('strong').textContent === '{gang}')",
    )


async def _picture(window: Window, name: str) -> None:
    if _PICTURES:
        await window.screenshot(path=Path(_PICTURES) / f"{name}.png")


async def test_the_page_shows_what_the_api_says(play: Play, chromium: Browser) -> None:
    kube, stage = play.stage.kube, play.stage
    await stage.occupy("others", stage.nodes[0][:3])
    async with opened(chromium, f"{_url(play)}/ui") as window:
        await kube.apply(_NAMESPACE, statefulset("fits", 4))
        await play.bound(_NAMESPACE, 4)
        await kube.apply(_NAMESPACE, statefulset("wide", CLIQUE_NODES + 1))
        sentence = await play.waiting(_NAMESPACE, "GangWaiting", "wide-0")
        await _shows(window, f"{_NAMESPACE}/fits", "Aboard")
        await _shows(window, f"{_NAMESPACE}/wide", "Waiting")
        await soon(window, "document.querySelector('#waiting .message').textContent.length > 0")

        seats, shown = await _seats(play), await drawn(window)
        racks = {node: play.stage.cliques[i] for i, rack in enumerate(stage.nodes) for node in rack}
        assert {node: row["clique"] for node, row in shown.items() if row["clique"]} == racks
        assert {node: row["used"] for node, row in shown.items() if row["used"]} == dict(seats)
        assert await window.inner_text("#waiting .message") == sentence
        by_clique = {row["clique"]: row for row in await _debug(play, "cliques")}
        labels = await window.locator(".rack").evaluate_all(
            "racks => racks.map(rack => [rack.dataset.clique, rack.getAttribute('aria-label')])"
        )
        for clique, text in labels:
            row = by_clique.pop(clique)
            free = row["gpus"] - row["used"] - row["promised"]
            parts = (
                f"{row['nodes']} nodes, {row['gpus']} GPUs, {row['used']} used, {row['promised']} promised"
            )
            assert text == f"{clique or 'no clique'}: {parts}, {free} free"
        assert not by_clique
        gangs = {row["name"] for row in await _debug(play, "gangs")}
        assert set(await window.locator(".gangs strong").all_inner_texts()) == gangs
        first = await window.locator("#timeline li").first.inner_text()
        assert f"{_NAMESPACE}/fits ✓ is aboard" in first

        await window.click(f".gangs > li:has(strong:text-is('{_NAMESPACE}/fits')) button")
        pods = await kube.items("pods", _NAMESPACE, "app=fits")
        lit = {node for node, row in (await drawn(window)).items() if row["lit"]}
        assert lit == {pod["spec"]["nodeName"] for pod in pods}
        await _picture(window, "live-page")
        await window.emulate_media(color_scheme="dark")
        await window.click("#waiting .gang")
        await soon(window, "document.querySelectorAll('.rack.near').length === 1")
        await _picture(window, "live-page-dark")


async def test_what_is_promised_is_shown_while_a_gang_stands_at_the_barrier(
    play: Play, chromium: Browser
) -> None:
    kube = play.stage.kube
    async with opened(chromium, f"{_url(play)}/ui") as window:
        await kube.apply(_NAMESPACE, slow.gang(4))
        try:
            await slow.at_the_barrier(kube, _NAMESPACE)
            await _shows(window, f"{_NAMESPACE}/ranks", "Boarding")
            pods = await kube.items("pods", _NAMESPACE)
            nominated = {pod["status"]["nominatedNodeName"] for pod in pods}
            shown = {node: row for node, row in (await drawn(window)).items() if row["promised"]}
            assert {node: row["promised"] for node, row in shown.items()} == dict.fromkeys(nominated, GPUS)
            assert await window.inner_text("#total-promised") == str(4 * GPUS)
            await slow.provide(kube, _NAMESPACE)
            await play.bound(_NAMESPACE, 4)
            await soon(window, "document.getElementById('total-promised').textContent === '0'")
            assert {n: r["used"] for n, r in (await drawn(window)).items() if r["used"]} == await _seats(play)
        finally:
            await slow.clear(kube, _NAMESPACE)
