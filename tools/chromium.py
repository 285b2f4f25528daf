"""Where the machine has Chromium, how it is started, and what axe finds on a page in it."""

import shutil
from importlib.resources import files

NAMES = ("chromium", "chromium-browser", "google-chrome")

# As root, and in containers, Chromium has neither a sandbox nor room in /dev/shm.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]


def chromium() -> str | None:
    """Return the path of the machine's Chromium, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def axe() -> str:
    """Return a script that lists what keeps people from reading or using a page."""
    source = (files("axe_playwright_python") / "axe.min.js").read_text()
    return f"""async () => {{
        {source}
        const found = await axe.run();
        return found.violations.flatMap(({{ impact, id, nodes }}) => nodes.map((node) =>
            `${{impact}}: ${{id}}: ${{node.html.slice(0, 150)}}: ${{node.failureSummary}}`));
    }}"""
