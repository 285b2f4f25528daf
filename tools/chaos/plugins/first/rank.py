"""The first version of a score plugin: the first node is the best."""

from typing import ClassVar

from moorage import Node, Normalization, Pod, Scope, ScorePlugin

SCORES = {"ranked-0": 10.0, "ranked-1": 8.0}


class Rank(ScorePlugin):
    """Ranks nodes by their names."""

    depends_on: ClassVar[Scope] = Scope.NODE
    normalization: ClassVar[Normalization] = Normalization.MAXIMUM

    def score_node(self, pod: Pod, node: Node) -> float:
        return SCORES.get(node.name, 0.0)
