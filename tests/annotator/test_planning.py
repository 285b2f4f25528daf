"""Which nodes the annotator finds worth a write."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.measurements import PRESETS, Preset
from moorage.models import NodeAddress, NodeManifest, NodeStatus
from moorage.testing import make_node
from services.annotator.planning import RESOURCE, Need, Planned, Planner

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MEASURED = {
    "mean-free-cpu": 2500.4,
    "std-free-cpu": 399.6,
    "mean-free-memory": 1e9,
    "std-free-memory": 0.0,
}


def planner(prefix: str = "", preset: Preset = "node") -> Planner:
    return Planner(prefix=prefix, threshold=0.01, refresh=300, layout=PRESETS[preset])


def plan(node: NodeManifest, prefix: str = "", **measured: float | None) -> Planned:
    """Plan for a node that measures MEASURED, but for what is given."""
    values = {**MEASURED, **{name.replace("_", "-"): value for name, value in measured.items()}}
    by_node = {name: {node.name: value} for name, value in values.items() if value is not None}
    (planned,) = planner(prefix).plan([node], by_node, NOW)
    return planned


def annotated(seconds_ago: float = 60, prefix: str = "", **changed: str) -> NodeManifest:
    """Make a node with 4 CPUs and 8 GB annotated with MEASURED, but for what is given."""
    stamp = (NOW - timedelta(seconds=seconds_ago)).isoformat()
    texts = {name: str(round(value)) for name, value in MEASURED.items()}
    texts |= {"load-measured-at": stamp} | {k.replace("_", "-"): v for k, v in changed.items()}
    return make_node(
        "a",
        allocatable={"cpu": "4", "memory": "8G"},
        annotations={prefix + name: text for name, text in texts.items() if text},
    )


def test_a_node_without_annotations_is_written_in_whole_numbers_with_the_time() -> None:
    planned = plan(make_node("a"))
    assert planned.need is Need.NEW
    assert planned.annotations == {
        "mean-free-cpu": "2500",
        "std-free-cpu": "400",
        "mean-free-memory": "1000000000",
        "std-free-memory": "0",
        "load-measured-at": "2026-11-21T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("change", "need"),
    [
        # 40 of 4000 millicores are 1 percent, as are 80 of 8000 megabytes.
        ({"mean_free_cpu": 2540.0}, Need.NONE),
        ({"mean_free_cpu": 2541.0}, Need.CHANGED),
        ({"mean_free_cpu": 2459.0}, Need.CHANGED),
        ({"std_free_cpu": 441.0}, Need.CHANGED),
        ({"mean_free_memory": 1e9 + 80e6}, Need.NONE),
        ({"mean_free_memory": 1e9 + 81e6}, Need.CHANGED),
        ({"std_free_memory": 81e6}, Need.CHANGED),
    ],
)
def test_a_change_counts_by_its_share_of_what_is_allocatable(
    change: dict[str, Any], need: Need
) -> None:
    assert plan(annotated(), **change).need is need


@pytest.mark.parametrize(
    ("seconds_ago", "need"),
    [(0, Need.NONE), (149, Need.NONE), (300, Need.AGED), (90_000, Need.AGED), (-60, Need.AGED)],
)
def test_annotations_are_renewed_when_they_are_old_or_from_the_future(
    seconds_ago: float, need: Need
) -> None:
    assert plan(annotated(seconds_ago)).need is need


def test_nodes_have_their_turns_so_that_not_all_are_written_at_once() -> None:
    def aged(seconds_ago: float) -> set[str]:
        node = annotated(seconds_ago)
        nodes = [
            NodeManifest(metadata=msgspec.structs.replace(node.metadata, name=f"n{number}"))
            for number in range(100)
        ]
        values = {name: {n.name: value for n in nodes} for name, value in MEASURED.items()}
        return {p.node for p in planner().plan(nodes, values, NOW) if p.need is Need.AGED}

    assert 35 < len(aged(225)) < 65
    assert aged(200) < aged(225) < aged(250)


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-11-21T12:00:00"])
def test_annotations_of_unknown_age_are_as_good_as_none(stamp: str) -> None:
    assert plan(annotated(load_measured_at=stamp)).need is Need.NEW


@pytest.mark.parametrize("text", ["", "many", "nan"])
def test_an_annotation_that_is_no_number_is_put_right(text: str) -> None:
    assert plan(annotated(mean_free_cpu=text)).need is Need.CHANGED


def test_what_is_not_measured_any_more_is_removed_beside_what_is() -> None:
    planned = plan(annotated(), mean_free_memory=None, std_free_memory=None)
    assert planned.need is Need.CHANGED
    assert planned.annotations["mean-free-memory"] is None
    assert planned.annotations["mean-free-cpu"] == "2500"
    without = annotated(mean_free_memory="", std_free_memory="")
    assert plan(without, mean_free_memory=None, std_free_memory=None).need is Need.NONE


def test_a_node_that_is_not_measured_at_all_keeps_what_it_has() -> None:
    nothing: dict[str, Any] = dict.fromkeys(name.replace("-", "_") for name in RESOURCE)
    planned = plan(annotated(3600), **nothing)
    assert (planned.need, planned.age) == (Need.NOT_MEASURED, 3600)


def test_nodes_are_found_by_what_prometheus_calls_them() -> None:
    address = NodeAddress(type="InternalIP", address="10.0.0.1")
    node = NodeManifest(metadata=make_node("a").metadata, status=NodeStatus(addresses=(address,)))
    by_address = planner(preset="instance-ip")
    values = {"mean-free-cpu": {"10.0.0.1": 1.0, "10.0.0.9": 2.0}}
    assert [p.need for p in by_address.plan([node, make_node("b")], values, NOW)] == [
        Need.NEW,
        Need.NOT_MEASURED,
    ]
    assert by_address.unknown_nodes([node, make_node("b")], values) == ["10.0.0.9"]


@given(st.dictionaries(st.sampled_from(list(RESOURCE)), st.floats(-1e18, 1e18), min_size=1))
def test_what_was_written_is_not_written_again(values: dict[str, float]) -> None:
    measured = {name: {"a": value} for name, value in values.items()}
    (first,) = planner().plan([make_node("a")], measured, NOW)
    texts = {name: text for name, text in first.annotations.items() if text is not None}
    assert all(int(texts[name]) >= 0 for name in values)
    (second,) = planner().plan([make_node("a", annotations=texts)], measured, NOW)
    assert second.need is Need.NONE
