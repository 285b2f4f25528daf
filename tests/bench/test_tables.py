"""Tables and JSON."""

import io
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from bench import budgets, report
from bench.edge import GO_PLUGINS, MAIN
from bench.results import GROWTH
from tests.bench import results as made


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
        "9.00 (0.50)",
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
