"""From the scores of plugins to a ranking."""

from collections.abc import Sequence

from moorage.plugin.normalization import Scores

FEW = 16
"""So many maxima are found one by one, in less time than by sorting."""


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
