"""Writes down when it runs, so that a test can see whether cycles overlap."""

import asyncio
import os
import time
from pathlib import Path

from moorage import FilterPlugin, Node, Nodes, Pod, Preparation, ScorePlugin

TRACE = Path(os.environ.get("MOORAGE_TEST_TRACE", os.devnull))
STAY = 0.05  # seconds that a step lasts: long enough to be overlapped by another caller's


class Traced(FilterPlugin, ScorePlugin):
    """Stays for a while in each half of a cycle."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Note when this step began and ended."""
        begin = time.monotonic()
        await asyncio.sleep(STAY)
        _write(f"{begin} {time.monotonic()} {pod.name}\n")
        return None

    def filter_node(self, pod: Pod, node: Node) -> None:
        """Let every node pass."""

    def score_node(self, pod: Pod, node: Node) -> float:
        """Like all nodes equally."""
        return 50.0


def _write(line: str) -> None:
    with TRACE.open("a") as trace:
        trace.write(line)
