"""Does what the annotations of the pod say, so that a scenario is one file."""

import asyncio
import json

from moorage import FilterPlugin, Node, Nodes, Pod, Preparation, Rejection, ScorePlugin

PREFIX = "steered/"


class Steered(FilterPlugin, ScorePlugin):
    """Steered by annotations.

    steered/reject: a JSON object, reason by node. steered/preemptible: the same, but removing other
    pods could help. steered/score: a JSON object, score (0..100) by node. steered/fail: fail with
    this message. steered/seconds: take so long.
    """

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        await asyncio.sleep(float(pod.annotations.get(PREFIX + "seconds", 0)))
        if message := pod.annotations.get(PREFIX + "fail"):
            raise RuntimeError(message)
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        for key, unresolvable in (("reject", True), ("preemptible", False)):
            if reason := _table(pod, key).get(node.name):
                return Rejection(str(reason), unresolvable=unresolvable)
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(_table(pod, "score").get(node.name, 0))


def _table(pod: Pod, key: str) -> dict[str, str | float]:
    table: dict[str, str | float] = json.loads(pod.annotations.get(PREFIX + key, "{}"))
    return table
