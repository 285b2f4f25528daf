"""The second version: the third node is the best, in a scale of its own."""

from typing import ClassVar

from moorage import Node, Normalization, Pod, Scope, ScorePlugin

SCORES = {"ranked-0": 0.1, "ranked-1": 0.6, "ranked-2": 1.0}


class Rank(ScorePlugin):
    """Ranks nodes by their names."""

    depends_on: ClassVar[Scope] = Scope.NODE
    normalization: ClassVar[Normalization] = Normalization.MAXIMUM

    def score_node(self, pod: Pod, node: Node) -> float:
        return SCORES.get(node.name, 0.0)
