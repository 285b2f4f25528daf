"""A real Chromium that fails a test for each error in its console, also of the content policy."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from tools.chromium import ARGUMENTS, axe, chromium

Scheme = Literal["light", "dark"]

expect.set_options(timeout=30_000)  # milliseconds; a busy machine is no failure


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Start Chromium, once for each file: that takes longer than most tests."""
    if (program := chromium()) is None:
        pytest.skip("chromium is not installed")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        await browser.close()


@contextmanager
def noting_problems(page: Page) -> Iterator[list[str]]:
    """Give what goes wrong in a window: errors of scripts, in its console, of its policy."""
    problems: list[str] = []

    def noted(message: ConsoleMessage) -> None:
        # Where a test ends its server, or breaks a stream off, the browser notes net::ERR_...
        if message.type in {"error", "warning"} and "net::ERR_" not in message.text:
            problems.append(f"{message.text} ({message.location.get('url')})")

    page.on("console", noted)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield problems


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Open a window in which nothing may go wrong."""
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    with noting_problems(page) as problems:
        yield page
        await page.close()
    assert problems == []


async def all_can_use(page: Page) -> None:
    """Fail if axe finds anything, or if the page is wider than its window."""
    assert await page.evaluate(axe()) == [], page.url
    assert await page.evaluate("document.querySelector('main').scrollWidth <= innerWidth"), page.url


async def look(page: Page, scheme: Scheme) -> None:
    """Make the window that of a phone in daylight, or of a desk at night."""
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": 390 if scheme == "light" else 1400, "height": 844})
