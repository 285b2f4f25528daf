"""Plugin sets are merged as kube-scheduler does it, by recorded cases."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_host.policy.merge import Entry, EntrySet, expand, merge


def entries(text: str) -> tuple[Entry, ...]:
    """Read `A B=5` as entries."""
    pairs = (word.partition("=") for word in text.split())
    return tuple(Entry(name, int(weight or 0)) for name, _, weight in pairs)


def entry_set(enabled: str, disabled: str = "") -> EntrySet:
    return EntrySet(entries(enabled), frozenset(disabled.split()))


NAMES = st.lists(st.sampled_from("ABCDEFabc"), unique=True).map(lambda names: " ".join(names))


@given(point=NAMES, disabled=NAMES, multi_point=NAMES)
def test_expansion_loses_and_doubles_nothing(point: str, disabled: str, multi_point: str) -> None:
    expanded = expand(entry_set(point, disabled), entries(multi_point), str.isupper)
    from_multi_point = {n for n in multi_point.split() if n.isupper()} - set(disabled.split())
    names = [entry.name for entry in expanded]
    assert len(names) == len(set(names))
    assert set(names) == set(point.split()) | from_multi_point


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


def test_the_recording_covers_the_rules() -> None:
    for cases in RECORDINGS.values():
        assert len(cases) >= 20
        assert all(case["multiPoint"] for case in cases)
