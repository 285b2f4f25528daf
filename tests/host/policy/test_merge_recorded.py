"""Our merge gives what a real kube-scheduler gave for the same profiles (`make e2e` proves it)."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage_host.policy.merge import Entry, EntrySet, expand, merge

RECORDED = Path(__file__).parents[2] / "data" / "policy-merge-1.36.json"
CASES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]
DEFAULT = CASES[0]
"""The profile that says nothing: its multiPoint set is the default set."""


def entries(pairs: list[list[Any]]) -> tuple[Entry, ...]:
    return tuple(Entry(name, weight) for name, weight in pairs)


def written(plugins: dict[str, Any], point: str) -> EntrySet:
    part = plugins.get(point, {})
    enabled = tuple(Entry(p["name"], p.get("weight", 0)) for p in part.get("enabled", ()))
    return EntrySet(enabled, frozenset(p["name"] for p in part.get("disabled", ())))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_multi_point_is_merged_as_kube_scheduler_does(case: dict[str, Any]) -> None:
    merged = merge(EntrySet(entries(DEFAULT["multiPoint"])), written(case["plugins"], "multiPoint"))
    assert merged.enabled == entries(case["multiPoint"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
@pytest.mark.parametrize("point", ["filter", "score"])
def test_points_are_expanded_as_kube_scheduler_does(case: dict[str, Any], point: str) -> None:
    implementing = {name for name, _ in DEFAULT[point]}
    expanded = expand(
        written(case["plugins"], point), entries(case["multiPoint"]), implementing.__contains__
    )
    got = [(entry.name, entry.weight or 1) for entry in expanded]
    # Weights have a meaning for scores only.
    wanted = [(name, weight or 1) for name, weight in case[point]]
    if point == "filter":
        got, wanted = [(name, 1) for name, _ in got], [(name, 1) for name, _ in wanted]
    assert got == wanted


def test_the_recording_covers_the_rules() -> None:
    assert len(CASES) >= 20
    assert all(case["multiPoint"] for case in CASES)
