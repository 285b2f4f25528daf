"""Everybody can read and use the pages: contrast, names of controls, roles, the keyboard."""

import pytest
from playwright.async_api import Page, expect

from tests.gateway.inspector.fixture import serving, shadow_report, waiting
from tests.gateway.inspector.test_page import a_cluster

PROBLEMS = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const nodes = [...element.childNodes].filter((each) => each.nodeType === 3);
    const text = nodes.map((each) => each.data).join("");
    if (text.trim()) {
      const [one, other] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
      const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      if (ratio < 4.5) found.push(`${text.trim()} has a contrast of ${ratio.toFixed(2)}`);
    }
    const name = (element.getAttribute("aria-label") || element.textContent || "").trim();
    const labelled = element.labels?.length || name;
    if (element.matches("a[href], button, input, select, summary") && !labelled)
      found.push(`without a name: ${element.outerHTML.slice(0, 100)}`);
    const scrolls = element.scrollWidth > element.clientWidth + 1
      || element.scrollHeight > element.clientHeight + 1;
    if (scrolls && element.matches(".scroll, .body") && element.tabIndex < 0)
      found.push(`scrolls without the keyboard: ${element.className}`);
    if (element.getAttribute("role") === "cell" && !element.closest("[role=row]"))
      found.push("a cell outside of a row");
  }
  return [...new Set(found)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_can_be_read_and_used_by_everybody(page: Page, scheme: str) -> None:
    cluster = a_cluster(decisions=30)
    cluster.waiting = [waiting(1, "it waits for its scheduling gates: example.com/quota")]
    cluster.shadows = [shadow_report()]
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    async with serving(cluster) as url:
        for path, wanted in (
            ("pods", ".window .row"),
            ("pod/shop/worker-0030", ".nodes .window .row"),
            ("map?pod=shop/worker-0030", ".verdicts button"),
            ("groups", ".note"),
            ("shadow", ".tiles"),
        ):
            await page.goto(f"{url}#/{path}")
            await page.reload()
            await expect(page.locator(wanted).first).to_be_visible()
            assert await page.evaluate(PROBLEMS) == [], path
            assert await page.locator("main h1").count() == 1, path
            assert await page.locator("nav[aria-label], header, main").count() >= 3, path
