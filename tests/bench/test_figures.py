"""Statistics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.edge.contenders import MAIN, REFERENCE
from bench.edge.measure import Question, summed_up
from bench.figures import figure, growth_exponent, quantile
from bench.processes.load import LoadError
from tests.bench.results import a_round

values = st.lists(st.floats(0, 1e9), min_size=1)


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert figure([4, 1, 3, 2]).p50 == 2.5


def test_p99_is_near_the_top_of_a_hundred() -> None:
    brief = figure(range(101))
    assert (brief.p50, brief.p99, brief.mean, brief.count) == (50, 99, 50, 101)


def test_nothing_has_no_figure() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        figure([])


@given(values, st.floats(0, 1))
def test_quantiles_lie_between_the_least_and_the_most(sample: list[float], share: float) -> None:
    ordered = sorted(sample)
    assert ordered[0] <= quantile(ordered, share) * (1 + 1e-12)
    assert quantile(ordered, share) <= ordered[-1] * (1 + 1e-12)


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power_is_found(power: float) -> None:
    exponent = growth_exponent({size: 3 * size**power for size in (1000, 5000, 50_000)})
    assert exponent == pytest.approx(power)


def test_one_size_has_no_growth() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        growth_exponent({1000: 5})


def question(*contenders: str) -> Question:
    return Question(nodes=500, contenders=contenders, rounds=3, seconds=1)


def test_ratios_are_those_of_medians_to_the_reference() -> None:
    rounds = [a_round(REFERENCE, ms) for ms in (1, 2, 90)] + [a_round(MAIN, 5)] * 3
    reference, mine = summed_up(question(REFERENCE, MAIN), rounds)
    assert (reference.ratio, reference.both.p50) == (1, 6)
    assert (mine.ratio, mine.ratio_answered, mine.both.p50) == (2.5, 2.5, 15)
    assert (mine.filter.p50, mine.prioritize.p50, mine.answered.p50) == (5, 10, 7.5)
    assert (mine.feasible, mine.sent, mine.received, mine.processor) == (9, 2000, 1000, 5)


def test_failed_rounds_are_counted_and_left_out() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1), a_round(REFERENCE, 500, "broken")]
    (reference,) = summed_up(question(REFERENCE), rounds)
    assert (reference.both.p99, reference.failures, reference.both.count) == (3, 1, 2)


def test_who_fails_mostly_is_not_measured() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1, "broken"), a_round(REFERENCE, 1, "off")]
    with pytest.raises(LoadError, match="go nothing fails: broken"):
        list(summed_up(question(REFERENCE), rounds))
