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
    pytest.param(version, case, id=f"{version} {case['case']}")
    for version, cases in RECORDINGS.items()
    for case in cases
]


def default(version: str) -> dict[str, Any]:
    """Return the profile without plugins: its multiPoint set is the default set."""
    return RECORDINGS[version][0]


def recorded_entries(pairs: list[list[Any]]) -> tuple[Entry, ...]:
    return tuple(Entry(name, weight) for name, weight in pairs)


def written(plugins: dict[str, Any], point: str) -> EntrySet:
    part = plugins.get(point, {})
    enabled = tuple(Entry(p["name"], p.get("weight", 0)) for p in part.get("enabled", ()))
    return EntrySet(enabled, frozenset(p["name"] for p in part.get("disabled", ())))


@pytest.mark.parametrize(("version", "case"), CASES)
def test_multi_point_is_merged_as_kube_scheduler_does(version: str, case: dict[str, Any]) -> None:
    defaults = EntrySet(recorded_entries(default(version)["multiPoint"]))
    merged = merge(defaults, written(case["plugins"], "multiPoint"))
    assert merged.enabled == recorded_entries(case["multiPoint"])


@pytest.mark.parametrize(("version", "case"), CASES)
@pytest.mark.parametrize("point", ["filter", "score"])
def test_points_are_expanded_as_kube_scheduler_does(
    version: str, case: dict[str, Any], point: str
) -> None:
    implementing = {name for name, _ in default(version)[point]}
    expanded = expand(
        written(case["plugins"], point),
        recorded_entries(case["multiPoint"]),
        implementing.__contains__,
    )
    got = [(entry.name, entry.weight or 1) for entry in expanded]
    # Weights have a meaning for scores only.
    wanted = [(name, weight or 1) for name, weight in case[point]]
    if point == "filter":
        got, wanted = [(name, 1) for name, _ in got], [(name, 1) for name, _ in wanted]
    assert got == wanted
