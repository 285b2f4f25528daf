"""Gateways whose replicas share cycles, and what they decide."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from moorage import Node, Pod, ScorePlugin
from tools.inprocess.gateway import Gateway, Options, is_open, plane

ALWAYS = {"min_nodes_per_shard": 1, "min_shard_time": 0.0}
NODES = 40
NAMES = [f"n{i}" for i in range(NODES)]


def sharing(
    tmp_path: Path, *plugins: Any, name: str = "g", count: int = 1, **settings: Any
) -> AbstractAsyncContextManager[Gateway]:
    """Run a gateway that scatters all cycles over so many replicas of filter and scorer."""
    directory = tmp_path / name
    directory.mkdir()
    gates = (is_open,) * count
    patient = {"http_timeout": 60.0, "hedge_floor": 5.0}  # on a busy machine all are slow
    usual: Options = {"filter_gates": gates, "scorer_gates": gates, "decision_top": NODES}
    return plane(directory, *plugins, **{**ALWAYS, **patient, **usual, **settings})


async def place(running: Gateway, obj: Any, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Filter and score as kube-scheduler does; return all that was decided, by node."""
    filtered = await running.filter(obj, *names)
    left = filtered["NodeNames"]
    scores = await running.prioritize(obj, *left) if len(left) > 1 else []
    _, answer = await running.get(f"/decisions/default/{obj['metadata']['name']}")
    decision = answer["attempts"][0]
    phases = [decision[phase] for phase in ("filter", "score") if phase in decision]
    return {
        "filter": {**filtered, "NodeNames": sorted(left)},
        "scores": {each["Host"]: each["Score"] for each in scores},
        "top": {each["node"]: each for each in decision.get("score", {}).get("top", [])},
        "plugins": [
            {k: v for k, v in plugin.items() if k in ("plugin", "skipped", "failure", "rejected")}
            for phase in phases
            for plugin in phase.get("plugins", ())
        ],
        "shards": [phase.get("shards", 1) for phase in phases],
    }


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Assert that two decisions are the same, but for who made them."""
    for part in ("filter", "scores", "top", "plugins"):
        assert one[part] == other[part], part


class ByNumber(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.name[1:])
