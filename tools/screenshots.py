"""Takes the pictures of docs/how-to/operate/inspector.md.

    python -m tools.screenshots URL NAMESPACE/POD NODE

URL is the address of an admin port whose gateway has decided on the pod and has a shadow.
"""

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from tools.chromium import ARGUMENTS, chromium

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDE, NARROW = (1200, 720), (360, 720)


async def shoot(
    browser: Browser, name: str, url: str, *, dark: bool = False, narrow: bool = False
) -> None:
    """Write one picture."""
    width, height = NARROW if narrow else WIDE
    page = await browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    await page.goto(url)
    await page.wait_for_selector("#live[data-state=live]")
    await page.wait_for_timeout(1000)  # charts and rows are drawn
    await page.screenshot(path=IMAGES / f"inspector-{name}.png")
    await page.close()


async def main(admin: str, decision: str, node: str) -> None:
    """Write all pictures."""
    begin = f"{admin}/inspector/"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for name in ("pods", "nodes", "plugins", "replicas", "policy", "shadow"):
            await shoot(browser, name, f"{begin}#/{name}")
        await shoot(browser, "decision", f"{begin}#/pod/{decision}")
        await shoot(browser, "node", f"{begin}#/node/{node}")
        await shoot(browser, "dark", f"{begin}#/pod/{decision}", dark=True)
        await shoot(browser, "phone", begin, narrow=True)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
