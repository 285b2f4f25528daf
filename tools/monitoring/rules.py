"""The Prometheus rules that the chart installs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "chart" / "moorage" / "files" / "monitoring"
RULES = FOLDER / "rules.yaml"


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
