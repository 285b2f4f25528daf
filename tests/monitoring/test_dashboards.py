"""The queries of dashboards and rules are PromQL about metrics that there are."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitoring.chart import DASHBOARDS, QUERIES, alerts, recorded
from tests.needs import needed
from tests.promtool import check
from tools.docs.pages import DOCS

TARGET_LABELS = {"namespace", "pod", "container", "job"}
"""What a PodMonitor adds to each series."""

OTHERS = {
    "ALERTS": {"alertname", "alertstate", "severity", "namespace"},
    "process_cpu_seconds_total": set(),
    "process_resident_memory_bytes": set(),
    "process_open_fds": set(),
}
"""Metrics of Prometheus itself and of its client, with their labels."""

_ROW = re.compile(r"^\| `([a-z_]+)` \| (\w+) \| (.*?) ?\| ", re.M)
_SELECTOR = re.compile(r"(?<![\w:\"$.])((?:moorage_|grpc_server_|process_|ALERTS)\w*)(\{[^}]*\})?")
_GROUPING = re.compile(r"\b(?:by|on|group_left|ignoring|without) \(([^)]*)\)")
_RECORDED = re.compile(r"(?<![\w:])(\w+:\w+:\w+)(\{[^}]*\})?")
_MATCHER = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")
_VALUES = re.compile(r"(\w+)(=~|!~|!=|=)\"([^\"]*)\"")

GRAFANA = {
    "$__rate_interval": "5m",
    "$namespace": ".*",
    "$pod": ".*",
    "$profile": ".*",
}
"""What Grafana puts in for its variables, with everything chosen."""


def filled(text: str) -> str:
    """Return a dashboard's expression as Grafana sends it."""
    for variable, value in GRAFANA.items():
        text = text.replace(variable, value)
    assert "$" not in text, text
    return text


def known() -> dict[str, set[str]]:
    """Return the labels of each metric, from the generated tables of the documentation."""
    found = {name: set(labels) for name, labels in OTHERS.items()}
    page = (DOCS / "reference" / "metrics.md").read_text()
    for name, kind, labels in _ROW.findall(page):
        own = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {f"{name}_bucket": own | {"le"}, f"{name}_sum": own, f"{name}_count": own}
        else:
            found[name] = own
    return found


def selectors(text: str) -> list[str]:
    """Return the selectors of our own metrics, with their matchers."""
    return [f"{name}{matchers}" for name, matchers in _SELECTOR.findall(text)]


def problems(text: str) -> Iterator[str]:
    """Yield what an expression names that no process has."""
    metrics, rules = known(), recorded()
    allowed = {"le"}
    for name, matchers in _SELECTOR.findall(text):
        labels = metrics.get(name, set()) | TARGET_LABELS
        allowed |= labels
        if name not in metrics:
            yield f"there is no metric {name}"
        yield from (f"{name} has no {x}" for x in _MATCHER.findall(matchers) if x not in labels)
    for name, matchers in _RECORDED.findall(text):
        labels = set(name.partition(":")[0].split("_"))
        allowed |= labels
        if name not in rules:
            yield f"there is no rule {name}"
        yield from (f"{name} has no {x}" for x in _MATCHER.findall(matchers) if x not in labels)
    for names in _GROUPING.findall(text):
        yield from (f"nothing has {x}" for x in names.split(", ") if x and x not in allowed)


COLUMNS = 24
"""Of Grafana's grid."""


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    promtool = needed("promtool")
    rules = [{"record": f"query:{n}", "expr": filled(q.text)} for n, q in enumerate(QUERIES)]
    file = tmp_path / "rules.yaml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def series_of(text: str) -> Iterator[str]:
    """Yield series of all metrics in an expression, with the values of labels that it asks for."""
    metrics = known()
    for name, matchers in (*_SELECTOR.findall(text), *_RECORDED.findall(text)):
        own = metrics.get(name, set(name.partition(":")[0].split("_")))
        labels = dict.fromkeys(sorted(own | TARGET_LABELS), "x")
        for label, operator, value in _VALUES.findall(matchers):
            if operator in ("=", "=~") and value != ".*":
                labels[label] = value.split("|")[0].replace(".*", "x")
        for bound in ("0.1", "+Inf") if "le" in labels else ("",):
            labels |= {"le": bound} if bound else {}
            inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
            yield f"{name}{{{inside}}}"


def test_every_query_finds_data_where_its_metrics_have_some(tmp_path: Path) -> None:
    texts = [filled(query.text) for query in QUERIES]
    series = {each: "0+60x119" for text in texts for each in series_of(text)}
    found = [{"labels": "{}", "value": 1}]
    check(
        tmp_path,
        series,
        [
            {"expr": f"count({text}) > bool 0", "eval_time": "60m", "exp_samples": found}
            for text in texts
        ],
    )


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
