"""From the scores of plugins to a ranking."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moorage.plugin.normalization import Scores

FEW = 16
"""So many maxima are found one by one, in less time than by sorting."""


Single = npt.NDArray[np.float32]
"""Scores in single precision."""


def compact(raw: Scores, normalized: Scores) -> tuple[Single | Scores, Single]:
    """Return scores in less room: decisions keep them, and replicas send them, for every node.

    Raw scores get single precision if that is exact; normalised ones get it anyway, and are the
    same array if they are equal.
    """
    with np.errstate(over="ignore"):
        single = raw.astype(np.float32)
    kept = single if np.array_equal(single, raw) else raw
    rounded = normalized.astype(np.float32)
    return kept, single if kept is single and np.array_equal(single, rounded) else rounded


def weighted_mean(scores: Sequence[tuple[int, Scores]]) -> Scores | None:
    """Return the mean of normalised scores by weight, 0..100; None if there are none."""
    if not scores:
        return None
    (weight, first), *rest = scores
    total: Scores = weight * first
    for more, normalized in rest:
        total += more * normalized
        weight += more
    return total / weight


def best(totals: Scores, count: int) -> list[int]:
    """Return where the largest totals stand, best first; equal ones keep their order."""
    order: list[int]
    if count > FEW:
        order = (-totals).argsort(kind="stable")[:count].tolist()
        return order
    left, order = totals.copy(), []
    for _ in range(min(count, len(totals))):
        order.append(int(left.argmax()))  # the first of equal ones
        left[order[-1]] = -1  # totals are at least 0
    return order
