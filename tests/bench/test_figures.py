"""Statistics."""

import pytest

from bench.edge import MAIN, REFERENCE, Question, summed_up
from bench.processes.load import LoadError
from bench.results import figure
from tests.bench.results import a_round


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert figure([4, 1, 3, 2]).p50 == 2.5


def test_p99_is_near_the_top_of_a_hundred() -> None:
    brief = figure(range(101))
    assert (brief.p50, brief.p99, brief.count) == (50, 99, 101)


def test_nothing_has_no_figure() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        figure([])


def question(*contenders: str) -> Question:
    return Question(nodes=500, contenders=contenders, rounds=3, seconds=1)


def test_ratios_are_those_of_medians_to_the_reference() -> None:
    rounds = [a_round(REFERENCE, ms) for ms in (1, 2, 90)] + [a_round(MAIN, 5)] * 3
    reference, mine = summed_up(question(REFERENCE, MAIN), rounds)
    assert (reference.ratio, reference.both.p50) == (1, 6)
    assert (mine.ratio, mine.ratio_answered, mine.both.p50) == (2.5, 2.5, 15)
    assert (mine.filter.p50, mine.prioritize.p50, mine.answered.p50) == (5, 10, 7.5)
    assert (mine.feasible, mine.processor) == (9, 5)


def test_failed_rounds_are_left_out() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1), a_round(REFERENCE, 500, "broken")]
    (reference,) = summed_up(question(REFERENCE), rounds)
    assert (reference.both.p99, reference.both.count) == (3, 2)


def test_who_fails_mostly_is_not_measured() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1, "broken"), a_round(REFERENCE, 1, "off")]
    with pytest.raises(LoadError, match="go nothing fails: broken"):
        list(summed_up(question(REFERENCE), rounds))
