"""The budgets' verdicts."""

from collections.abc import Callable

import pytest

from bench import budgets
from bench.cluster.cases import (
    GO,
    MOORAGE,
    MOORAGE_BINDS,
    MOORAGE_UNLIKE,
    SERIES,
    Series,
)
from bench.edge import MAIN, NUMBERED, PER_NODE
from bench.results import Results
from tests.bench import results as made

HEAVY, LIGHT = SERIES


def replaced(question: str, ratio: float, contender: str) -> Callable[[Results], None]:
    def change(results: Results) -> None:
        for index, one in enumerate(results.edge):
            if (one.question, one.contender, one.pause) == (question, contender, 0):
                results.edge[index] = made.edge_result(question, contender, ratio)

    return change


def with_row(
    series: Series, contender: str, ratio: float = 0.9, processor_ratio: float = 2.0
) -> Callable[[Results], None]:
    row = made.scheduling_result(series, contender, ratio, processor_ratio)

    def change(results: Results) -> None:
        results.scheduling = [
            row if (one.series, one.contender) == (row.series, contender) else one
            for one in results.scheduling
        ]

    return change


def steep_growth(results: Results) -> None:
    results.growth[-1] = made.growth_result(10_000, 115)


def large_process(results: Results) -> None:
    results.growth[1] = made.growth_result(5000, 50, mebibytes=340)


def test_a_run_at_the_limits_keeps_all_budgets() -> None:
    judged = list(budgets.verdicts(made.results()))
    assert [one.kept for one in judged] == [True] * len(judged)
    assert budgets.kept(judged)


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (replaced("5000 names", 0.51, NUMBERED), "5000 names, moorage 3+3, numbered pods"),
        (replaced("5000 names", 0.71, MAIN), "5000 names, moorage 3+3"),
        (replaced("500 names", 0.81, NUMBERED), "500 names, moorage 3+3, numbered pods"),
        (replaced("500 names", 1.31, MAIN), "500 names, moorage 3+3"),
        (replaced("500 names", 1.51, PER_NODE), "moorage per node 3+3"),
        (replaced("5000 whole nodes", 0.29, MAIN), "whole nodes"),
        (with_row(HEAVY, MOORAGE, 0.89), "heavy cluster, moorage"),
        (with_row(HEAVY, MOORAGE_UNLIKE, 0.74), "heavy cluster, moorage, unlike pods"),
        (with_row(LIGHT, MOORAGE_BINDS, 0.89), "light cluster, moorage, bindVerb"),
        (with_row(LIGHT, MOORAGE_BINDS, processor_ratio=3.6), "processor time a pod"),
        (steep_growth, "growth"),
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
    results.edge += [
        made.edge_result("800 names", MAIN, 99),
        made.edge_result("50 names", MAIN, 99),
    ]
    with_row(HEAVY, GO, 0.1)(results)
    assert budgets.kept(list(budgets.verdicts(results)))


def test_what_was_not_measured_is_neither_kept_nor_missed() -> None:
    results = made.results()
    results.scheduling, results.growth = [], results.growth[:1]
    judged = list(budgets.verdicts(results))
    assert [one.kept for one in judged] == [True] * 6 + [None] * (len(judged) - 6)
    assert budgets.kept(judged)
