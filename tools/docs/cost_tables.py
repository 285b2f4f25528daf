"""The table of what an extender costs, from the figures of the page of benchmarks."""

import re

from tools.docs.markdown import table
from tools.docs.pages import DOCS

CLUSTERS = ("heavy", "light")

ROWS = {
    "no extender": "no extender",
    "go nothing": "an extender in Go that does nothing",
    "moorage": "Moorage, equal pods",
    "moorage, unlike pods": "Moorage, pods unlike any before",
    "go nothing, bindVerb": "an extender in Go that only binds",
    "moorage, bindVerb": "Moorage with `bindVerb`",
}
"""The rows of the page of benchmarks by the names that they have in the table."""


def cost(_: str) -> str:
    """Return pods a second with each extender, and the share that is left of those without any."""
    columns = [pods_per_second(cluster) for cluster in CLUSTERS]
    return table(
        ("extender", "heavy nodes: pods/s", "left", "light nodes: pods/s", "left"),
        (
            (text, *(cell for each in columns for cell in _cells(each, row)))
            for row, text in ROWS.items()
        ),
    )


def pods_per_second(cluster: str) -> dict[str, int]:
    """Return the pods a second of each row of a cluster."""
    page = (DOCS / "reference" / "benchmarks.md").read_text()
    section = page.partition(f"#### Pods/s, {cluster} cluster, 5,000 nodes")[2]
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \|", section.partition("\n\npods/s")[0], re.M)
    return {name: int(pods) for name, pods in rows}


def _cells(pods: dict[str, int], row: str) -> tuple[str, str]:
    return str(pods[row]), f"{100 * pods[row] / pods['no extender']:.0f} %"
