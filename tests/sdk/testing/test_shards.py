"""A plugin that compares the nodes that it is asked about is found out."""

import numpy as np
import pytest

from moorage import (
    FilterPlugin,
    Node,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    ScorePlugin,
    Scores,
    Verdicts,
)
from moorage.testing import assert_same_in_shards, make_node, make_pod

NODES = [make_node(f"n{i}", annotations={"load": str(i)}) for i in range(5)]


def loads(nodes: Nodes) -> Scores:
    numbers: Scores = nodes.annotation("load").map(lambda text: float(text or 0))
    return numbers


class BelowTheMean(FilterPlugin):
    """Compares the nodes of its part."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.mean = loads(nodes).mean()
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        return nodes.verdicts().reject(loads(nodes) > self.mean, "node is busier than most")


class BelowTheClusters(FilterPlugin):
    """Compares with all nodes of the cluster."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        mean = loads(nodes.cluster).mean()
        return nodes.verdicts().reject(loads(nodes) > mean, "node is busier than most")


class Ranked(ScorePlugin):
    """Ranks the nodes of its part."""

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        return np.arange(len(nodes), dtype=np.float64)


class Relative(ScorePlugin):
    """Compares in normalize."""

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        return loads(nodes)

    def normalize(self, scores: Scores) -> Scores:
        shares: Scores = 100 * scores / scores.max()
        return shares


class Numbered(FilterPlugin):
    """Numbers the nodes that it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.count = 0
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.count += 1
        self.annotate("example.com/number", str(self.count), node=node)
        return None


@pytest.mark.parametrize("plugin", [BelowTheClusters(), Relative()], ids=lambda each: each.name)
def test_plugins_may_compare_where_they_see_all_nodes(plugin: FilterPlugin | ScorePlugin) -> None:
    assert_same_in_shards(plugin, make_pod(), *NODES, shards=5)


@pytest.mark.parametrize(
    "plugin", [BelowTheMean(), Ranked(), Numbered()], ids=lambda each: each.name
)
def test_others_are_found_out(plugin: FilterPlugin | ScorePlugin) -> None:
    with pytest.raises(AssertionError, match="compares nodes of a shard with each other: its"):
        assert_same_in_shards(plugin, make_pod(), *NODES, shards=2)


def test_one_node_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="give more"):
        assert_same_in_shards(Relative(), make_pod(), NODES[0])
