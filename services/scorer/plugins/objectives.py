"""How evenly a cluster is used, for each node on which a pod may be placed.

All take shares of nodes' capacity, 0..1: what is used of all nodes, what a pod would add on some of
them, and where those stand among all. For thousands of nodes at once, so nothing is placed for a
try: sums over all nodes are corrected for the one that changes.
"""

import numpy as np
import numpy.typing as npt

from moorage import Scores

Positions = npt.NDArray[np.intp]


def deviations(used: Scores, added: Scores, here: Positions) -> Scores:
    """Return the standard deviation of all nodes' use."""
    variance = _variance(used[np.newaxis], added[np.newaxis], here, np.ones((1, 1)))
    return np.sqrt(np.maximum(variance, 0))


def variations(used: Scores, added: Scores, here: Positions) -> Scores:
    """Return the coefficient of variation of all nodes' use of several resources, in rows."""
    mean = used.mean(axis=1, keepdims=True) + added / used.shape[1]
    return coefficient(_variance(used, added, here, mean), (mean * mean).sum(axis=0))


def coefficient(variance: Scores, square: Scores) -> Scores:
    """Return the coefficient of variation by Albert and Zhang.

    Args:
        variance: That along the mean: the mean times the covariance times the mean.
        square: The square of the mean.
    """
    return np.sqrt(np.maximum(variance, 0)) / np.where(square > 0, square, 1)


def indecision(used: Scores, added: Scores, here: Positions) -> Scores:
    """Return how far nodes are from being full or empty, 0..1: 1 if all are used alike."""
    ordered = np.sort(used)
    sums, squares = _running(ordered), _running(ordered**2)
    mean = used.mean() + added / len(used)
    possible = (mean > 0) & (mean < 1)
    mean = np.where(possible, mean, 0.5)
    count = np.searchsorted(ordered, mean)
    below = _around(mean, count, sums[count], squares[count])
    above = _around(mean, len(used) - count, sums[-1] - sums[count], squares[-1] - squares[count])
    total = below / mean**2 + above / (1 - mean) ** 2
    total += _term(used[here] + added, mean) - _term(used[here], mean)
    total = np.where(possible, np.maximum(total, 0), 0)
    decided: Scores = np.sqrt(total / len(used))
    return np.maximum(1 - decided, 0)


def _variance(used: Scores, added: Scores, here: Positions, along: Scores) -> Scores:
    """Return the variance of all nodes' use in a direction of its own for each of *here*."""
    count = used.shape[1]
    away = used - used.mean(axis=1, keepdims=True)
    before = np.einsum("ri,rs,si->i", along, away @ away.T / count, along)
    moved = (along * added).sum(axis=0)
    change = (2 * (along * away[:, here]).sum(axis=0) * moved + moved**2) / count
    variance: Scores = before + change - (moved / count) ** 2
    return variance


def _running(values: Scores) -> Scores:
    return np.concatenate([[0.0], np.cumsum(values)])


def _around(mean: Scores, count: Positions, total: Scores, squares: Scores) -> Scores:
    """Return the sum of squared distances from *mean* of so many numbers with these sums."""
    return count * mean**2 - 2 * mean * total + squares


def _term(used: Scores, mean: Scores) -> Scores:
    return ((used - mean) / np.where(used < mean, mean, 1 - mean)) ** 2
