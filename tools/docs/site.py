"""Looks at the built site as a reader without a network does: `make docs` runs it.

Every page must load all that it needs from the site itself. A few pages, and the search, are opened
in Chromium where there is one: without errors in its console, not wider than a phone, usable by
everybody as far as axe can tell, and with the right page first for what users search, every message
that pages explain among it.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import ConsoleMessage, sync_playwright

from tools.chromium import ARGUMENTS, axe, chromium
from tools.docs.pages import DOCS, ROOT

SITE = ROOT / ".venv" / "docs" / "html"
PAGES = (
    "docs/index.html",
    "docs/tutorial/first-plugin.html",
    "docs/reference/settings.html",
    "docs/reference/services/gateway.html",
    "docs/reference/api/plugins.html",
    "404.html",
)
QUERIES = {
    "why is my pod pending": "how-to/operate/troubleshoot",
    "filter service is not available": "how-to/operate/troubleshoot",
    "Moorage's view of the cluster is too old": "how-to/operate/troubleshoot",
    "the gateway did not decide in time": "how-to/operate/troubleshoot",
    "node(s) not known to Moorage yet": "how-to/operate/troubleshoot",
    "filter service: plugin PriceCap failed in Filter: ValueError: could not convert string "
    "to float: 'cheap' for node node-0001 (price_cap.py:16)": "how-to/operate/troubleshoot",
    "uninstall": "how-to/install",
    "upgrade": "how-to/install",
    "roll back": "how-to/install",
    "helm": "how-to/install",
    "EKS": "how-to/managed-clusters",
    "kubeadm": "how-to/kubeadm",
    "several gateways": "how-to/high-availability",
    "price": "reference/plugins",
    "claim": "how-to/plugins/more",
    "bind plugin": "how-to/plugins/bind",
    "prometheus": "how-to/plugins/measurements",
    "weight": "how-to/plugins/score-weight",
    "tutorial": "tutorial/first-plugin",
    "metrics": "reference/metrics",
    "tracing": "how-to/operate/tracing",
    "dashboards": "how-to/operate/monitor",
    "performance": "explanation/performance",
    "Rejection": "reference/api/plugins",
}
"""What users type into the search, and the page that must come first."""

EXAMPLES = {
    "NAME": "MaxTemperature",
    "PLUGIN": "MaxTemperature",
    "POINT": "Filter",
    "NODE": "node-0001",
    "KIND": "racks.example.com",
    "...": "10.0.0.7:50051",
}
"""What stands in a message of a user in place of what the pages write."""

SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SERIOUS = ("serious", "critical")
PHONE = 360
"""The width of a small phone in pixels."""

FIRST = """query => {
  const [found] = Search._performSearch(...Search._parseQuery(query)).slice(-1);
  return found ? found[0] : "";
}"""
"""The page that the search finds first, without its list."""

_LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"([^\"]+)\"|<link ([^>]+)>")
_HREF = re.compile(r"href=\"([^\"]+)\"")


def messages() -> Iterator[str]:
    """Yield the messages that Troubleshooting and the binder's page explain, as users see them."""
    for page, heading, column in (
        ("how-to/operate/troubleshoot", "## Nothing is scheduled at all", 1),
        ("how-to/operate/troubleshoot", "## Messages, and what to do", 0),
        ("reference/services/binder", "## Refusals", 3),
    ):
        text = (DOCS / f"{page}.md").read_text().partition(f"\n{heading}\n")[2]
        for row in re.findall(r"^\| (.+) \|$", text.partition("\n## ")[0], re.M):
            for shown in re.findall(r"`([^`]+ [^`]+)`", row.split(" | ")[column]):
                words = "|".join(map(re.escape, EXAMPLES))
                said = re.sub(words, lambda match: EXAMPLES[match[0]], shown)
                yield said if column < 3 else f"binder service: pod default/web {said}"


def main() -> None:
    """Check the site, print what was looked at, exit with 1 if something is wrong."""
    pages = sorted(SITE.rglob("*.html"))
    problems = [f"{page.relative_to(SITE)}: {what}" for page in pages for what in missing(page)]
    seen = ""
    if chromium() is not None:
        problems += in_chromium()
        searches = len(QUERIES) + len([*messages()])
        seen = f", {len(PAGES)} of them and {searches} searches in Chromium"
    if problems:
        sys.exit("\n".join(problems))
    print(f"Looked at {len(pages)} pages{seen}: {SITE}/index.html")


def missing(page: Path) -> Iterator[str]:
    """Yield what a page loads from elsewhere, or what is not there."""
    for source, link in _LOADED.findall(page.read_text()):
        if link and not re.search(r'rel="(?:stylesheet|preload|icon)', link):
            continue
        target = source or _HREF.findall(link)[0]
        if re.match(r"(?:https?:)?//", target):
            yield f"loads {target}, which is not a part of the site"
        elif not target.startswith("data:"):
            path = re.split(r"[?#]", target)[0]
            if not (page.parent / path).exists():
                yield f"loads {target}, which does not exist"


def in_chromium() -> list[str]:
    """Open pages and the search; return what goes wrong."""
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"{message.page and message.page.url}: {message.text}")

    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": PHONE, "height": 800})
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
        for name in PAGES:
            page.goto(f"{address}/{name}")
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > PHONE:
                problems.append(f"{name}: {wide} pixels wide on a phone of {PHONE}")
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                found = page.evaluate(axe())
                problems += [f"{name}: {each}" for each in found if each.startswith(SERIOUS)]
        for query, wanted in QUERIES.items():
            page.goto(f"{address}/search.html?{urlencode({'q': query})}")
            first = page.locator("#search-results li a").first
            first.wait_for(timeout=20_000)
            page.wait_for_selector("#search-results p.search-summary", timeout=20_000)
            found = first.get_attribute("href") or ""
            if not found.partition("#")[0].partition("?")[0].endswith(f"docs/{wanted}.html"):
                problems.append(f"the search for {query!r} finds {found} before {wanted}")
        page.goto(f"{address}/search.html?{urlencode({'q': 'a message of some words'})}")
        page.wait_for_selector("#search-results p.search-summary", timeout=20_000)
        for message in messages():
            found = page.evaluate(FIRST, message)
            if not re.search(r"operate/troubleshoot$|services/binder$", found):
                problems.append(f"the search for {message!r} finds {found or 'nothing'}")
        browser.close()
    return problems


@contextmanager
def served() -> Iterator[str]:
    """Serve the site; give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    main()
