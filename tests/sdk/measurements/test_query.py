import pytest

from moorage.measurements import PRESETS, Measure, Preset, quoted, time_range
from moorage.measurements.prometheus.query import query_text

RATE = Measure(series="rate(bytes[5m])", aggregate="sum", distinct=("device",))


@pytest.mark.parametrize(
    ("preset", "text"),
    [
        ("node", "sum by (node) (max by (node, device) ((rate(bytes[5m]))))"),
        (
            "node-uname-info",
            (
                "sum by (nodename) (max by (nodename, device) ((rate(bytes[5m])) * on (instance) "
                "group_left (nodename) max by (instance, nodename) (node_uname_info)))"
            ),
        ),
        (
            "kube-pod-info",
            (
                "sum by (node) (max by (node, device) ((rate(bytes[5m])) * on (namespace, pod) "
                'group_left (node) max by (namespace, pod, node) (kube_pod_info{node!=""})))'
            ),
        ),
    ],
)
def test_a_layout_adds_how_nodes_are_named(preset: Preset, text: str) -> None:
    assert RATE.text(PRESETS[preset]) == text


def test_the_form_is_put_around_the_number_of_the_node() -> None:
    idle = Measure(series="idle", form="1 - {}")
    assert idle.text(PRESETS["node"]) == "1 - avg by (node) ((idle))"


def test_several_measures_are_one_query() -> None:
    text = query_text({"a": Measure(series="x"), "b": Measure(series="y")}, PRESETS["node"])
    first, second = text.split(" or ")
    assert first == 'label_replace(avg by (node) ((x)), "moorage_measure", "a", "__name__", "")'
    assert '"b"' in second


def test_text_cannot_leave_its_quotes() -> None:
    assert quoted('a"b\\c\nd') == r'"a\"b\\c\nd"'


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "1s"), (1.5, "2s"), (90, "1m30s"), (7200, "2h")]
)
def test_times_have_no_fractions(seconds: float, text: str) -> None:
    assert time_range(seconds) == text
