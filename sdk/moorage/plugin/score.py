"""Score plugins: they rank nodes."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from moorage.models import Pod
from moorage.plugin.base import Plugin
from moorage.plugin.errors import WrongTypeError, refuse
from moorage.plugin.normalization import Normalization, Scores
from moorage.snapshot import Node, Nodes

MAX_WEIGHT = 2**31 - 1
"""The largest weight of a score plugin."""

_USUAL = (float, int)


class ScorePlugin(Plugin, abstract=True):
    """Ranks nodes. Override `score_node` or `score`.

    Attributes:
        normalization: How scores become 0..100, unless `normalize` is overridden.
        weight: How much its scores count beside those of other score plugins, where the policy
            gives no weight.
    """

    normalization: ClassVar[Normalization] = Normalization.NONE
    weight: ClassVar[int] = 1

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        declared: object = cls.normalization
        if not isinstance(declared, Normalization):
            refuse(
                f"{cls.__name__}.normalization must be a Normalization, not {declared!r}",
                statement=r"\s*normalization\b",
            )
        weight: object = cls.weight
        if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
            refuse(
                f"{cls.__name__}.weight must be an int from 1 to {MAX_WEIGHT}, not {weight!r}",
                statement=r"\s*weight\b",
            )

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return how good *node* is for *pod*: any finite number."""
        raise NotImplementedError(f"{self.name} has neither score_node nor score")

    def score(self, pod: Pod, nodes: Nodes) -> npt.ArrayLike:
        """Return a finite number for each of *nodes*.

        Other replicas may score others: compare nodes in `prepare` or `normalize`, which see all.
        """
        scores, score_node = [], self.score_node
        for node in nodes:
            score = score_node(pod, node)
            if type(score) not in _USUAL and not _is_number(score):
                raise WrongTypeError(self.score_node, score, "a number", node=node.name)
            scores.append(score)
        return scores

    def normalize(self, scores: Scores) -> npt.ArrayLike:
        """Map the scores of all nodes of the cycle onto 0..100, by default by `normalization`."""
        return self.normalization.apply(scores)


def _is_number(score: object) -> bool:
    return isinstance(score, int | float | np.number) and not isinstance(score, bool)


def normalization_of(kind: type[ScorePlugin]) -> Normalization | None:
    """Return how a plugin's scores become 0..100; None if only its own code knows."""
    return kind.normalization if kind.normalize is ScorePlugin.normalize else None
