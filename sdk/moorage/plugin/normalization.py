"""How raw scores become 0..100.

A score plugin that declares one of these (`ScorePlugin.normalization`) needs no code of its own for
that.
"""

from enum import Enum

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]
"""One number for each node of a selection."""

MAX_SCORE = 100
"""The score of the best node after normalisation; the worst has 0."""


class Normalization(Enum):
    """What the raw scores of all nodes of a cycle go through."""

    NONE = "none"
    """Nothing: they are 0..100 already."""

    MAXIMUM = "maximum"
    """`normalize_by_maximum`: the largest becomes 100."""

    REVERSED_MAXIMUM = "reversed maximum"
    """`normalize_by_maximum` with *reverse*: the largest becomes 0."""

    def apply(self, scores: Scores) -> Scores:
        """Return the scores of all nodes of a cycle, normalised."""
        if self is Normalization.NONE:
            return scores
        return normalize_by_maximum(scores, reverse=self is Normalization.REVERSED_MAXIMUM)


def normalize_by_maximum(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale scores so that the largest becomes 100, in whole numbers as kube-scheduler does.

    The formula is that of kube-scheduler's DefaultNormalizeScore: `100 * score / maximum`,
    truncated, and 100 minus that if *reverse*. If the maximum is 0 all nodes get 0, or 100 if
    *reverse*.

    Args:
        scores: Non-negative numbers, one for each node.
        reverse: The lowest score is the best.
    """
    maximum = scores.max(initial=0)
    scaled = np.zeros(len(scores)) if maximum == 0 else scores * MAX_SCORE // maximum
    return MAX_SCORE - scaled if reverse else scaled
