"""A real Chromium that fails a test for each error in its console, also of the content policy."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    """Start Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("chromium is not installed")
    async with async_playwright() as playwright:
        # As root, and in containers, Chromium has neither a sandbox nor room in /dev/shm.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = await playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Open a window in which nothing may go wrong."""
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []

    def noted(message: ConsoleMessage) -> None:
        # Where a test ends its server, or breaks a stream off, the browser notes net::ERR_...
        if message.type in {"error", "warning"} and "net::ERR_" not in message.text:
            problems.append(f"{message.text} ({message.location.get('url')})")

    page.on("console", noted)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    await page.close()
    assert problems == []
