"""The beta distribution: how likely a node's utilisation stays below a limit.

Utilisation lies between 0 and 1, so a beta distribution with the measured mean and deviation is its
usual model. In numpy for all nodes at once.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from moorage.plugin.normalization import Scores

MAX_TERMS: Final = 20_000
"""Terms of the continued fraction; it takes about the square root of the larger parameter."""

_PRECISION: Final = 1e-14
_TINY: Final = 1e-300
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def probability_below(limit: npt.ArrayLike, mean: Scores, deviation: Scores) -> Scores:
    """Return how likely a share with this mean and standard deviation is at most *limit*.

    All are shares, 0..1. Without deviation it is certain, one way or the other; a deviation too
    large for any distribution makes it impossible. NaN where mean or deviation is.
    """
    at, mean, deviation = np.broadcast_arrays(np.asarray(limit, np.float64), mean, deviation)
    result = np.where((mean == 0) | ((deviation == 0) & (mean <= at)) | (at >= 1), 1.0, 0.0)
    room = mean * (1 - mean) - deviation**2
    fits = (mean > 0) & (deviation > 0) & (room > 0) & (at > 0) & (at < 1)
    size = room[fits] / deviation[fits] ** 2
    result[fits] = beta_cdf(at[fits], mean[fits] * size, (1 - mean[fits]) * size)
    result[np.isnan(mean) | np.isnan(deviation) | np.isnan(at)] = np.nan
    return result


def beta_cdf(x: Scores, alpha: Scores, beta: Scores) -> Scores:
    """Return the regularised incomplete beta function of *x* in (0, 1) and positive parameters."""
    mirrored = x > (alpha + 1) / (alpha + beta + 2)  # the fraction is fast on one side only
    a, b = np.where(mirrored, beta, alpha), np.where(mirrored, alpha, beta)
    z = np.where(mirrored, 1 - x, x)
    logarithm = a * np.log(z) + b * np.log1p(-z)
    logarithm += _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    value: Scores = np.exp(logarithm) * _continued_fraction(z, a, b) / a
    return np.where(mirrored, 1 - value, value).clip(0, 1)


def _continued_fraction(x: Scores, a: Scores, b: Scores) -> Scores:
    """Evaluate the incomplete beta function's continued fraction by Lentz's method."""
    result = np.ones(len(x))
    open_ = np.arange(len(x))
    c, d = np.ones(len(x)), _inverse(1 - (a + b) * x / (a + 1))
    result *= d
    for term in range(1, MAX_TERMS):
        if not len(open_):
            break
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        change = np.ones(len(x))
        for numerator in (even, odd):
            d = _inverse(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            change = c * d
            result[open_] *= change
        going = np.abs(change - 1) > _PRECISION
        if not going.all():
            x, a, b, c, d = (array[going] for array in (x, a, b, c, d))
            open_ = open_[going]
    return result


def _inverse(values: Scores) -> Scores:
    return 1 / _away_from_zero(values)


def _away_from_zero(values: Scores) -> Scores:
    return np.where(np.abs(values) < _TINY, _TINY, values)
