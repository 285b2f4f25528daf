"""The Prometheus rules and Grafana dashboards that the chart installs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "chart" / "moorage" / "files" / "monitoring"
RULES = FOLDER / "rules.yaml"
DASHBOARDS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in sorted((FOLDER / "dashboards").iterdir())
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of a panel; `legend` names series by their labels, as in `{{pod}}`."""

    place: str
    text: str
    legend: str


QUERIES = [
    Query(place=f"{name}: {panel['title']}", text=query["expr"], legend=query["legendFormat"])
    for name, dashboard in DASHBOARDS.items()
    for panel in dashboard["panels"]
    for query in panel.get("targets", ())
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alerting rule; rules of one name differ in their severity."""

    name: str
    severity: str
    expression: str
    wait: str
    annotations: dict[str, str]

    def __str__(self) -> str:
        return f"{self.name}-{self.severity}"


def alerts() -> list[Alert]:
    """Return all alerting rules."""
    return [
        Alert(
            name=rule["alert"],
            severity=rule["labels"]["severity"],
            expression=rule["expr"],
            wait=rule.get("for", "0m"),
            annotations=rule["annotations"],
        )
        for rule in _rules()
        if "alert" in rule
    ]


def recorded() -> dict[str, str]:
    """Return the expression of each recording rule by its name."""
    return {rule["record"]: rule["expr"] for rule in _rules() if "record" in rule}


def _rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]
