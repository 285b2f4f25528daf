"""Statistics, verdicts of budgets, tables and JSON."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from bench import budgets, report
from bench.cluster.cases import (
    GO,
    MOORAGE,
    MOORAGE_BINDS,
    MOORAGE_UNLIKE,
    SERIES,
    Series,
)
from bench.edge import GO_PLUGINS, MAIN, NUMBERED, PER_NODE, REFERENCE, Question, summed_up
from bench.processes.load import LoadError
from bench.results import GROWTH, Results, figure
from tests.bench import results as made
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


def shown() -> str:
    results = made.results()
    results.verdicts = list(budgets.verdicts(results))
    results.notes = ["the cluster is left out"]
    console = Console(width=200, record=True, file=io.StringIO())
    report.show(results, console)
    return " ".join(console.export_text().split())  # captions are wrapped


def test_the_tables_have_everything_that_was_measured() -> None:
    text = shown()
    for part in (
        "500 names, filter then prioritize at once",
        "5000 names, filter then prioritize after 10 ms",
        "moorage 3+3",
        "Pods/s, heavy cluster, 5,000 nodes",
        "Pods/s, light cluster, 5,000 nodes",
        "kube-scheduler takes 5.00 / 10.00 ms from filter to prioritize",
        "gateway 1.25, filter 0.25",
        "Kubernetes v1.37.2",
        "10,000 nodes, 300,000 pods",
        "at most 0.5 x",
        "gateway 150, binder 78",
        "1.50 (2.0)",
        "the cluster is left out",
    ):
        assert part in text, part


def test_who_was_not_asked_about_a_size_has_no_figure_there() -> None:
    results = made.results()
    extra = made.edge_result("all", GO_PLUGINS, 5)
    results.growth[0] = replace(results.growth[0], edge=[extra, *results.growth[0].edge])
    table, *_ = report.of_part(results, GROWTH)
    cells = {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}
    assert cells[GO_PLUGINS] == ["5.00 / 10.00 (1.5)", "-", "-"]
    assert cells[MAIN][2].startswith("100.00")


def test_verdicts_are_words() -> None:
    assert shown().count("kept") == len(list(budgets.verdicts(made.results())))
    assert "MISSED" not in shown()


def test_the_json_holds_everything(tmp_path: Path) -> None:
    results = made.results()
    report.write(results, tmp_path / "out" / "latest.json")
    assert report.read(tmp_path / "out" / "latest.json") == results


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
