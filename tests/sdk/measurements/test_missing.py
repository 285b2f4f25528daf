import numpy as np
import pytest

from moorage import Scores, normalize_by_maximum
from moorage.measurements import (
    MISSING,
    NoMeasurementsError,
    OnMissing,
    fill_missing,
    mark_missing,
)

NAN = float("nan")


def scores(*values: float) -> Scores:
    return np.array(values, np.float64)


@pytest.mark.parametrize(
    ("on_missing", "expected"),
    [("neutral", [94, 0, 36, 14]), ("worst", [94, 0, 0, 14])],
)
def test_nodes_without_measurements_get_the_mean_or_nothing(
    on_missing: OnMissing, expected: list[int]
) -> None:
    # Known are 1, 15 and 13 of 15: 94, 0 and 14, the mean of which is 36.
    marked = scores(1, 15, MISSING, 13)
    filled = fill_missing(marked, on_missing, lambda s: normalize_by_maximum(s, reverse=True))
    assert filled.tolist() == expected


@pytest.mark.parametrize(("on_missing", "all_alike"), [("neutral", 50), ("worst", 0)])
def test_nodes_are_alike_if_nothing_is_known_of_any(on_missing: OnMissing, all_alike: int) -> None:
    assert fill_missing(scores(MISSING, MISSING), on_missing).tolist() == [all_alike] * 2
    assert fill_missing(scores(), on_missing).tolist() == []


def test_missing_numbers_are_marked_so_that_scores_can_be_gathered() -> None:
    assert mark_missing(scores(0, NAN, 3), "neutral").tolist() == [0, MISSING, 3]
    assert mark_missing(scores(0, NAN, 3), "worst").tolist() == [0, MISSING, 3]


def test_a_missing_number_can_be_a_failure() -> None:
    assert mark_missing(scores(0, 3), "fail").tolist() == [0, 3]
    with pytest.raises(NoMeasurementsError, match="nodes without measurements"):
        mark_missing(scores(0, NAN), "fail")
