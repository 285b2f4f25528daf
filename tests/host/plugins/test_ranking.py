"""From scores to a ranking: the mean by weight, and the best of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_host.plugins.ranking import FEW, best, compact, weighted_mean

few_values = st.lists(st.sampled_from((0.0, 1.5, 50.0, 99.5, 100.0)), max_size=60)


@given(totals=few_values, count=st.integers(0, 3 * FEW))
def test_the_best_come_first_and_equal_ones_in_their_order(totals: list[float], count: int) -> None:
    by_total = sorted(range(len(totals)), key=lambda index: (-totals[index], index))
    given_totals = np.array(totals, np.float64)
    assert best(given_totals, count) == by_total[:count]
    assert given_totals.tolist() == totals, "they are left as they were"


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1])
def test_of_nothing_nothing_is_best(count: int) -> None:
    assert best(np.zeros(0), count) == []


@given(
    scores=st.lists(
        st.tuples(st.integers(1, 100), st.lists(st.floats(0, 100), min_size=3, max_size=3)),
        min_size=1,
        max_size=5,
    )
)
def test_the_mean_counts_each_score_by_its_weight(scores: list[tuple[int, list[float]]]) -> None:
    arrays = [(weight, np.array(values)) for weight, values in scores]
    copies = [values.copy() for _, values in arrays]
    total = weighted_mean(arrays)
    assert total is not None
    weights = [weight for weight, _ in scores]
    expected = np.average([values for _, values in scores], axis=0, weights=weights)
    assert total == pytest.approx(expected)
    for copy, (_, values) in zip(copies, arrays, strict=True):
        assert (values == copy).all(), "they are left as they were"


@given(values=st.lists(st.floats(0, 1e300) | st.integers(0, 100), max_size=20))
def test_compact_scores_are_the_same(values: list[float]) -> None:
    raw = np.array(values, np.float64)
    normalized = np.minimum(raw, 100)
    kept, rounded = compact(raw, normalized)
    assert kept.astype(np.float64).tolist() == raw.tolist()
    assert rounded.tolist() == normalized.astype(np.float32).tolist()
    if all(value <= 100 and value == int(value) for value in values):
        assert kept is rounded, "whole scores that nothing normalises take 4 bytes"


def test_without_scores_there_is_no_mean() -> None:
    assert weighted_mean([]) is None


def test_a_single_score_is_not_changed_by_its_weight() -> None:
    total = weighted_mean([(7, np.array([0.0, 33.0, 100.0]))])
    assert total is not None
    assert total.tolist() == [0.0, 33.0, 100.0]
