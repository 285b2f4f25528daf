"""Dashboards are current, and their queries are PromQL about metrics that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.monitoring.expressions import TARGET_LABELS, filled, known, problems
from tools.monitoring.dashboards.model import COLUMNS, Dashboard, Query
from tools.monitoring.generate import DASHBOARDS, files
from tools.monitoring.rules import FOLDER, alerts, recorded

QUERIES = [
    (f"{dashboard.name}: {panel.title}", query)
    for dashboard in DASHBOARDS
    for panel in dashboard.panels()
    for query in panel.queries
]


def test_the_dashboards_are_current() -> None:
    there = {file: file.read_text() for file in (FOLDER / "dashboards").iterdir()}
    assert there == dict(files()), "run `.venv/bin/python -m tools.monitoring.generate`"


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    rules = [{"record": f"query:{n}", "expr": filled(q.text)} for n, (_, q) in enumerate(QUERIES)]
    file = tmp_path / "rules.yaml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("place", "query"), QUERIES, ids=[place for place, _ in QUERIES])
def test_a_query_is_about_metrics_and_labels_that_there_are(place: str, query: Query) -> None:
    assert not [*problems(query.text)]
    shown = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
    kept = {
        name for names in re.findall(r"by \(([^)]*)\)", query.text) for name in names.split(", ")
    }
    assert shown <= kept


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


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.name)
def test_panels_fill_rows_and_do_not_overlap(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard.json()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert max(columns) < COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in dashboard.panels():
        assert panel.about.endswith("."), panel.title
