import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.measurements.risk import beta_cdf, probability_below


def cdf(x: float, alpha: float, beta: float) -> float:
    return float(beta_cdf(np.array([x]), np.array([alpha]), np.array([beta]))[0])


def below(limit: float, mean: float, deviation: float) -> float:
    return float(probability_below(limit, np.array([mean]), np.array([deviation]))[0])


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "expected"),
    [
        # Closed forms: x**a, 1 - (1-x)**b, the arcsine law, and binomial sums.
        pytest.param(0.3, 1, 1, 0.3, id="uniform"),
        pytest.param(0.3, 4, 1, 0.3**4, id="a power"),
        pytest.param(0.3, 1, 5, 1 - 0.7**5, id="the other power"),
        pytest.param(0.3, 0.5, 0.5, 2 / math.pi * math.asin(math.sqrt(0.3)), id="arcsine"),
        pytest.param(0.25, 2, 3, 0.26171875, id="67/256"),
        pytest.param(0.5, 7.3, 7.3, 0.5, id="the middle of a symmetric one"),
        # Tables of F and t: F(4, 10) is below 3.47805 in 95 % of cases, |t(10)| above 2.22814 in 5.
        pytest.param(4 * 3.47805 / (4 * 3.47805 + 10), 2, 5, 0.95, id="F, 4 and 10 degrees"),
        pytest.param(10 / (10 + 2.2281388520**2), 5, 0.5, 0.05, id="t, 10 degrees"),
        pytest.param(1e-6, 0.01, 2, 1e-6**0.01 * (1 + 0.01 * (1 - 1e-6)), id="steep"),
    ],
)
def test_values_are_the_published_ones(
    x: float, alpha: float, beta: float, expected: float
) -> None:
    tolerance = 1e-5 if expected in (0.95, 0.05) else 1e-12
    assert cdf(x, alpha, beta) == pytest.approx(expected, rel=tolerance)


@given(st.floats(0.001, 0.999), st.integers(1, 60), st.integers(1, 60))
def test_whole_parameters_agree_with_a_sum_of_binomials(x: float, a: int, b: int) -> None:
    n = a + b - 1
    expected = sum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert cdf(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(st.floats(0.001, 0.999), st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_it_mirrors_itself(x: float, alpha: float, beta: float) -> None:
    assert cdf(x, alpha, beta) == pytest.approx(1 - cdf(1 - x, beta, alpha), abs=1e-9)


def test_many_are_reckoned_at_once() -> None:
    x, a, b = np.array([0.2, 0.9, 0.5]), np.array([2.0, 400.0, 1e6]), np.array([9.0, 50.0, 1e6])
    together = beta_cdf(x, a, b)
    assert together.tolist() == [cdf(*each) for each in zip(x, a, b, strict=True)]
    assert together[2] == pytest.approx(0.5, abs=1e-6)
    assert beta_cdf(x[:0], a[:0], b[:0]).tolist() == []


@pytest.mark.parametrize(
    ("limit", "mean", "deviation", "expected"),
    [
        pytest.param(0.9, 0, 0, 1, id="idle"),
        pytest.param(0.9, 0, 0.3, 1, id="idle, whatever the deviation"),
        pytest.param(0.9, 0.9, 0, 1, id="steady at the limit"),
        pytest.param(0.9, 0.91, 0, 0, id="steady above it"),
        pytest.param(0.9, 1, 0, 0, id="full"),
        pytest.param(0.9, 0.5, 0.5, 0, id="no distribution varies so much"),
        pytest.param(0.9, 1, 0.1, 0, id="full and yet varying"),
        pytest.param(1, 1, 0.1, 1, id="a limit of everything"),
        pytest.param(0, 0.5, 0.1, 0, id="a limit of nothing"),
        pytest.param(0.9, math.nan, 0.1, math.nan, id="unknown mean"),
    ],
)
def test_extremes_are_certain(limit: float, mean: float, deviation: float, expected: float) -> None:
    assert below(limit, mean, deviation) == pytest.approx(expected, nan_ok=True)


@given(st.floats(0.05, 0.95), st.floats(0.01, 0.99), st.floats(1e-5, 0.49))
def test_it_is_a_probability_that_falls_as_the_mean_rises(
    limit: float, mean: float, deviation: float
) -> None:
    here, higher = below(limit, mean, deviation), below(limit, min(mean + 0.01, 1), deviation)
    assert 0 <= here <= 1
    if deviation < 0.05 < mean < 0.95:
        assert higher <= here + 1e-3  # with the mean, tails change their form too
