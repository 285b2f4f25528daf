"""The budgets' verdicts."""

from collections.abc import Callable

import pytest

from bench import budgets
from bench.cluster import MOORAGE_UNLIKE
from bench.edge import MAIN, NUMBERED
from bench.results import Results
from tests.bench import results as made


def replaced(question: str, ratio: float, contender: str) -> Callable[[Results], None]:
    def change(results: Results) -> None:
        for index, one in enumerate(results.edge):
            if (one.question, one.contender, one.pause) == (question, contender, 0):
                results.edge[index] = made.edge_result(question, contender, ratio)

    return change


def slow_cluster(results: Results) -> None:
    results.scheduling.append(made.scheduling_result("moorage binds", 0.89))


def steep_growth(results: Results) -> None:
    results.growth[-1] = made.growth_result(10_000, 115)


def slow_join(results: Results) -> None:
    results.cliffs = made.cliffs(joining=21)


def large_process(results: Results) -> None:
    results.cliffs = made.cliffs(mebibytes=480)


def test_a_run_at_the_limits_keeps_all_budgets() -> None:
    judged = list(budgets.verdicts(made.results()))
    assert [one.kept for one in judged] == [True] * 7
    assert budgets.kept(judged)


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (replaced("5000 names", 0.61, NUMBERED), "5,000 names"),
        (replaced("500 names", 1.51, NUMBERED), "500 names"),
        (replaced("5000 whole nodes", 0.31, MAIN), "whole nodes"),
        (slow_cluster, "pods/s"),
        (steep_growth, "growth"),
        (slow_join, "while a scorer joins"),
        (large_process, "memory"),
    ],
)
def test_a_budget_that_is_missed_is_named(change: Callable[[Results], None], missed: str) -> None:
    results = made.results()
    change(results)
    judged = list(budgets.verdicts(results))
    (wrong,) = [one for one in judged if one.kept is False]
    assert missed in wrong.work
    assert not budgets.kept(judged)


def test_further_rows_are_not_judged() -> None:
    results = made.results()
    results.scheduling.append(made.scheduling_result(MOORAGE_UNLIKE, 0.1))
    results.edge += [made.edge_result(f"{n} names", MAIN, 99) for n in (500, 5000)]
    assert budgets.kept(list(budgets.verdicts(results)))


def test_what_was_not_measured_is_neither_kept_nor_missed() -> None:
    results = made.results()
    results.scheduling, results.growth, results.cliffs = [], results.growth[:1], None
    judged = list(budgets.verdicts(results))
    assert [one.kept for one in judged] == [True, True, True, None, None, None, None]
    assert budgets.kept(judged)
