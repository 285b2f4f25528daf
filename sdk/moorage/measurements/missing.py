"""What becomes of nodes about which nothing is known.

Scores are gathered from several replicas before they are normalised, and must be numbers. So a
plugin scores such nodes `MISSING`, and `normalize` settles what that means among the others.
"""

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from moorage.measurements.errors import NoMeasurementsError
from moorage.plugin.normalization import MAX_SCORE, Scores

OnMissing = Literal["neutral", "worst", "fail"]
"""Nodes without measurements get the mean of the others' scores, or 0, or the plugin fails."""

MISSING: Final = -1.0
"""The score, before normalisation, of nodes without measurements; real ones are not negative."""


def mark_missing(scores: Scores, on_missing: str) -> Scores:
    """Return *scores* with `MISSING` in place of NaN.

    Raises:
        NoMeasurementsError: There is a NaN, and *on_missing* is "fail".
    """
    missing = np.isnan(scores)
    if on_missing == "fail" and missing.any():
        raise NoMeasurementsError("there are nodes without measurements")
    return np.where(missing, MISSING, scores)


def fill_missing(
    scores: Scores, on_missing: str, normalize: Callable[[Scores], Scores] = lambda x: x
) -> Scores:
    """Normalise the scores of nodes that have one, and fill in those of the others.

    If no node has one, all are alike.
    """
    known = scores != MISSING
    filled = np.zeros(len(scores))
    if known.any():
        filled[known] = normalize(scores[known])
    if on_missing != "worst":
        filled[~known] = filled[known].mean() if known.any() else MAX_SCORE / 2
    return filled
