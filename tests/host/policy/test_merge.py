"""Plugin sets are merged as kube-scheduler does it, by recorded cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage_host.policy.merge import Entry, EntrySet, expand, merge

DATA = Path(__file__).parents[2] / "data"
RECORDINGS: dict[str, list[dict[str, Any]]] = {
    file.stem.rpartition("-")[2]: json.loads(file.read_text())["cases"]
    for file in sorted(DATA.glob("policy-merge-*.json"))
}
"""Cases by the minor version of kube-scheduler."""

CASES = [
    pytest.param(cases[0], case, id=f"{version} {case['case']}")
    for version, cases in RECORDINGS.items()
    for case in cases
]
"""The profile without plugins, whose multiPoint set is the default set, and another."""


def recorded(pairs: list[list[Any]]) -> tuple[Entry, ...]:
    return tuple(Entry(name, weight) for name, weight in pairs)


def written(plugins: dict[str, Any], point: str) -> EntrySet:
    part = plugins.get(point, {})
    enabled = tuple(Entry(p["name"], p.get("weight", 0)) for p in part.get("enabled", ()))
    return EntrySet(enabled, frozenset(p["name"] for p in part.get("disabled", ())))


@pytest.mark.parametrize(("default", "case"), CASES)
def test_plugins_are_merged_and_expanded_as_kube_scheduler_does(
    default: dict[str, Any], case: dict[str, Any]
) -> None:
    merged = merge(
        EntrySet(recorded(default["multiPoint"])), written(case["plugins"], "multiPoint")
    )
    assert merged.enabled == recorded(case["multiPoint"])
    for point in ("filter", "score"):
        implementing = {name for name, _ in default[point]}
        own, multi_point = written(case["plugins"], point), recorded(case["multiPoint"])
        expanded = expand(own, multi_point, implementing.__contains__)
        assert [entry.name for entry in expanded] == [name for name, _ in case[point]]
        if point == "score":  # where weights have a meaning
            weights = [entry.weight or 1 for entry in expanded]
            assert weights == [weight or 1 for _, weight in case[point]]
