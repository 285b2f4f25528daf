"""Tables, JSON and plots."""

import io
from pathlib import Path
from xml.etree import ElementTree

from msgspec.structs import replace
from rich.console import Console

from bench import budgets
from bench.edge.contenders import GO_PLUGINS, MAIN
from bench.parts import GROWTH
from bench.report import files, plots, tables
from cli.shared.drawing import svg
from tests.bench import results as made

NAMESPACE = "{http://www.w3.org/2000/svg}"


def shown() -> str:
    results = made.results()
    results.verdicts = list(budgets.verdicts(results))
    results.notes = ["the cluster is left out"]
    console = Console(width=200, record=True, file=io.StringIO())
    tables.show(results, console)
    return " ".join(console.export_text().split())  # captions are wrapped


def test_the_tables_have_everything_that_was_measured() -> None:
    text = shown()
    for part in (
        "500 names, filter then prioritize at once",
        "5000 names, filter then prioritize after 10 ms",
        "moorage 3+3",
        "9.00 (0.60)",
        "Pods/s, heavy cluster, sampling default, 5,000 nodes",
        "Pods/s, light cluster, sampling default, 5,000 nodes",
        "Pods/s, heavy cluster, sampling 100 %, 5,000 nodes",
        "kube-scheduler takes 5.00 / 10.00 ms from filter to prioritize",
        "gateway 1.25, filter 0.25",
        "Kubernetes v1.37.2",
        "Binds on a real API server",
        "10,000 nodes, 300,000 pods",
        "at most 0.6 x",
        "Cliffs: 5,000 nodes with 150,000 pods",
        "a scorer joins",
        "20.00 / 40.00 (+20.00)",
        "50 (1.23%)",
        "500 / 470",
        "5,000 names, 1 us for each",
        "7.50 / 15.00 (0.75)",
        "at most 20 ms",
        "492.83 MB",
        "the cluster is left out",
    ):
        assert part in text, part


def test_who_was_not_asked_about_a_size_has_no_figure_there() -> None:
    results = made.results()
    extra = made.edge_result("all", GO_PLUGINS, 5)
    results.growth[0] = replace(results.growth[0], edge=[extra, *results.growth[0].edge])
    table, *_ = tables.of_part(results, GROWTH)
    cells = {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}
    assert cells[GO_PLUGINS] == ["5.00 / 10.00 (1.5)", "-"]
    assert cells[MAIN][1].startswith("100.00")


def test_verdicts_are_words() -> None:
    assert shown().count("kept") == len(budgets.BUDGETS)
    assert "MISSED" not in shown()


def test_the_json_holds_everything(tmp_path: Path) -> None:
    results = made.results()
    files.write(results, tmp_path / "out" / "latest.json")
    assert files.read(tmp_path / "out" / "latest.json") == results


def test_every_measurement_is_drawn(tmp_path: Path) -> None:
    files = plots.draw_all(made.results(), tmp_path)
    assert {file.stem for file in files} == {
        "edge-50-names",
        "edge-500-names",
        "edge-5000-names",
        "edge-5000-names-pause",
        "edge-5000-whole-nodes",
        "growth-memory",
        "growth-time",
        "replicas-5000-names",
        "pods-heavy-cluster-sampling-100",
        "pods-heavy-cluster-sampling-default",
        "pods-light-cluster-sampling-default",
    }
    assert all(ElementTree.parse(file).getroot().tag == f"{NAMESPACE}svg" for file in files)


def test_bars_have_the_colour_of_their_kind() -> None:
    names = ("go nothing", "go 3+3", "moorage 3+3", "moorage 10+10", "moorage per node 3+3")
    drawn = ElementTree.fromstring(svg.bars("t", dict.fromkeys(names, (1, 2)), "ms"))
    go, go_3, moorage, moorage_10, per_node = [
        bar.get("fill") for bar in drawn.findall(f"{NAMESPACE}rect")[1:]
    ]
    assert (go, moorage) == (go_3, moorage_10)
    assert len({go, moorage, per_node}) == 3


def test_bars_are_as_long_as_their_values() -> None:
    drawn = ElementTree.fromstring(svg.bars("t", {"a": (10, 20), "<b>": (5, 5)}, "ms"))
    widths = [float(bar.get("width", "0")) for bar in drawn.findall(f"{NAMESPACE}rect")[1:]]
    assert widths[0] == 2 * widths[1]
    assert "<b>" in [text.text for text in drawn.findall(f"{NAMESPACE}text")]


def test_what_is_linear_looks_so() -> None:
    drawn = ElementTree.fromstring(svg.lines("t", {"a": [(1, 10), (2, 20), (4, 40)]}, "ms"))
    places = [
        (float(c.get("cx", "")), float(c.get("cy", ""))) for c in drawn.iter(f"{NAMESPACE}circle")
    ]
    (x1, y1), (x2, y2), (x3, y3) = places
    assert abs((y2 - y1) / (x2 - x1) - (y3 - y2) / (x3 - x2)) < 0.01
    assert y3 < y2 < y1
