"""The queries of dashboards and rules are PromQL about metrics that there are."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.monitoring.chart import DASHBOARDS, QUERIES, alerts, recorded
from tests.monitoring.expressions import TARGET_LABELS, filled, known, problems
from tests.needs import needed

COLUMNS = 24
"""Of Grafana's grid."""


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    promtool = needed("promtool")
    rules = [{"record": f"query:{n}", "expr": filled(q.text)} for n, q in enumerate(QUERIES)]
    file = tmp_path / "rules.yaml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_queries_are_about_metrics_and_labels_that_there_are() -> None:
    for query in QUERIES:
        assert not [*problems(query.text)], query.place
        shown = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
        kept = ", ".join(re.findall(r"by \(([^)]*)\)", query.text)).split(", ")
        assert shown <= set(kept), query.place


def test_rules_are_about_metrics_and_labels_that_there_are() -> None:
    expressions = {alert.name: alert.expression for alert in alerts()} | recorded()
    found = {name: [*problems(text)] for name, text in expressions.items()}
    assert not {name: each for name, each in found.items() if each}
    for alert in alerts():
        shown = set(re.findall(r"\$labels\.(\w+)", str(alert.annotations)))
        named = set(re.findall(r"\w+", alert.expression))
        assert shown - {"namespace"} <= named, alert.name


def test_no_label_of_ours_is_one_that_prometheus_adds() -> None:
    assert not {name for name, labels in known().items() if labels & TARGET_LABELS} - {"ALERTS"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_fill_rows_and_do_not_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    panels = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert max(columns) < COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"].endswith("."), panel["title"]
