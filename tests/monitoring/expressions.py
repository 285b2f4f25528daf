"""What PromQL expressions name: metrics, and the labels that they select, keep and join by."""

import re
from collections.abc import Iterator

from tests.monitoring.chart import recorded
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
