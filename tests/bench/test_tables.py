"""Statistics, verdicts of budgets, tables and JSON."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from bench import growth, report
from bench.cluster import GO, MOORAGE, MOORAGE_BINDS, MOORAGE_UNLIKE, SERIES
from bench.edge import GO_PLUGINS, MAIN, NUMBERED, PER_NODE, REFERENCE, Question, summed_up
from bench.processes.load import LoadError
from bench.report import COST, Results, figure
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
    assert (reference.ratio, reference.answered.p50) == (1, 6)
    assert (mine.ratio, mine.answered.p50) == (2.5, 15)
    assert (mine.feasible, mine.processor) == (9, 5)


def test_failed_rounds_are_left_out() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1), a_round(REFERENCE, 500, "broken")]
    (reference,) = summed_up(question(REFERENCE), rounds)
    assert (reference.answered.p99, reference.answered.count) == (3, 2)


def test_who_fails_mostly_is_not_measured() -> None:
    rounds = [a_round(REFERENCE, 1), a_round(REFERENCE, 1, "broken"), a_round(REFERENCE, 1, "off")]
    with pytest.raises(LoadError, match="go nothing fails: broken"):
        list(summed_up(question(REFERENCE), rounds))


def shown() -> str:
    results = made.results()
    results.notes = ["the cluster is left out"]
    console = Console(width=200, record=True, file=io.StringIO())
    report.show(results, console)
    return " ".join(console.export_text().split())  # captions are wrapped


def test_the_tables_have_everything_that_was_measured() -> None:
    text = shown()
    for part in (
        "500 names, filter then prioritize at once",
        "5000 whole nodes, filter then prioritize at once",
        "moorage 3+3",
        "Pods/s, heavy cluster, 5,000 nodes",
        "Pods/s, light cluster, 5,000 nodes",
        "kube-scheduler takes 5.00 / 5.00 ms from filter to prioritize",
        "gateway 1.25, filter 0.75",
        "Kubernetes v1.",
        "10,000 nodes, 300,000 pods",
        "at most 0.5 x",
        "at least 0.9 x",
        "1,234 (70)",
        "2.00 (2.0)",
        "the cluster is left out",
    ):
        assert part in text, part


def test_who_was_not_asked_about_a_size_has_no_figure_there() -> None:
    results, first = made.empty(), made.size(1000, 10)
    first.asked[GO_PLUGINS] = made.asked(GO_PLUGINS, 5)
    growth.report(results, [first, *made.SIZES[1:]])
    table = results.tables[0]
    place = list(table.head).index(GO_PLUGINS)
    assert [row[place] for row in table.rows] == ["5.00 / 10.00 (1.5)", "-", "-"]


def test_verdicts_are_words() -> None:
    assert shown().count("kept") == sum(v.part != COST for v in made.results().verdicts)
    assert "MISSED" not in shown()


def test_the_json_holds_everything(tmp_path: Path) -> None:
    results = made.results()
    results.notes = ["the cluster is left out"]
    report.write(results, tmp_path / "out" / "latest.json")
    assert report.read(tmp_path / "out" / "latest.json") == results


def test_a_run_at_the_limits_keeps_all_budgets() -> None:
    assert [one.work for one in made.results().verdicts if not one.kept] == []


HEAVY, LIGHT = SERIES


def edge(question: str, contender: str, ratio: float) -> Callable[[Results], None]:
    return lambda results: made.add_edge(results, {question: {contender: ratio}})


def rate(contender: str, pods: float) -> Callable[[Results], None]:
    return lambda results: made.add_cluster(results, HEAVY, {**made.RATES, contender: pods})


def spent(contender: str, milliseconds: float) -> Callable[[Results], None]:
    times = {**made.SPENT, contender: {"gateway": milliseconds}}
    return lambda results: made.add_cluster(results, LIGHT, spent=times)


def sizes(*found: growth.Size) -> Callable[[Results], None]:
    return lambda results: growth.report(results, found)


@pytest.mark.parametrize(
    ("add", "missed"),
    [
        (edge("5000 names", NUMBERED, 0.51), "5000 names, moorage 3+3, numbered pods"),
        (edge("5000 names", MAIN, 0.71), "5000 names, moorage 3+3"),
        (edge("500 names", NUMBERED, 0.81), "500 names, moorage 3+3, numbered pods"),
        (edge("500 names", MAIN, 1.31), "500 names, moorage 3+3"),
        (edge("500 names", PER_NODE, 1.51), "moorage per node 3+3"),
        (edge("5000 whole nodes", MAIN, 0.29), "whole nodes"),
        (rate(MOORAGE, 89), "heavy cluster, moorage"),
        (rate(MOORAGE_UNLIKE, 74), "heavy cluster, moorage, unlike pods"),
        (rate(MOORAGE_BINDS, 89), "heavy cluster, moorage, bindVerb"),
        (spent(MOORAGE_BINDS, 3.6), "processor time a pod"),
        (sizes(made.size(1000, 10), made.size(10_000, 115)), "growth"),
        (sizes(made.size(5000, 50, mebibytes=340)), "memory"),
    ],
)
def test_a_budget_that_is_missed_is_named(add: Callable[[Results], None], missed: str) -> None:
    results = made.empty()
    add(results)
    (wrong,) = [one for one in results.verdicts if not one.kept]
    assert missed in wrong.work


def test_further_rows_are_not_judged() -> None:
    results = made.empty()
    made.add_edge(results, {"800 names": {MAIN: 99}, "5000 names": {PER_NODE: 99}})
    assert results.verdicts == []
    made.add_cluster(results, HEAVY, {**made.RATES, GO: 100.0})
    assert all(one.kept for one in results.verdicts)
