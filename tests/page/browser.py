"""A headless Chromium, Debian's, driven by Playwright."""

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.waiting import eventually

CHROMIUM: Final = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Running, until the end."""
    async with async_playwright() as playwright:
        # As root Chromium starts only without its sandbox; it sees nothing but our page.
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            await started.close()


@asynccontextmanager
async def opened(started: Browser, url: str, **context: Any) -> AsyncIterator[Page]:
    """The page in a window of its own. Whatever went wrong in it fails the test at the end."""
    window = await started.new_context(**{"viewport": {"width": 1440, "height": 900}, **context})
    page = await window.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith(url[:-3]) else faults.append(asked.url))
    try:
        await page.goto(url)
        await soon(page, "document.getElementById('status').textContent.startsWith('live')")
        await page.wait_for_selector(".node[data-node]")
        yield page
    finally:
        await window.close()
    assert faults == []


async def soon(page: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds (wait_for_function needs eval, which the page forbids)."""

    async def holds() -> bool:
        return bool(await page.evaluate(condition))

    try:
        await eventually(holds, within=15)
    except TimeoutError:
        raise AssertionError(f"not within 15 s: {condition}") from None


async def drawn(page: Page) -> Mapping[str, Mapping[str, Any]]:
    """What the map shows, by node: clique, used, promised, lit."""
    found: dict[str, dict[str, Any]] = await page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.node[data-node]')].map(node => [
            node.dataset.node,
            {clique: node.closest('.rack').dataset.clique, used: Number(node.dataset.used),
             promised: Number(node.dataset.promised), lit: node.classList.contains('lit')}]))"""
    )
    return found
