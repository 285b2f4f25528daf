"""The load of nodes in all layouts: queries, distributions, and what is missing."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Scores, normalize_by_maximum
from moorage.errors import ConfigurationError
from moorage.measurements import (
    MISSING,
    PRESETS,
    Layout,
    Measure,
    NoMeasurementsError,
    OnMissing,
    Preset,
    fill_missing,
    mark_missing,
)
from moorage.measurements.load import Load, LoadArguments, LoadMeter, load_measures
from moorage.measurements.risk import beta_cdf, probability_below
from moorage.models import NodeAddress, NodeManifest, NodeStatus
from moorage.models.base import Metadata
from moorage.testing import make_node, make_nodes
from moorage_host.policy.checks import check_arguments
from tests.annotated import loaded_node
from tests.fake_prometheus import fake_prometheus
from tests.promtool import check, close_to, nothing

GIB = 1024**3


def annotated(*nodes: NodeManifest, forecast_weight: float = 0, **args: Any) -> Load:
    meter = LoadMeter(check_arguments(args, LoadArguments, "args"))
    return meter.load(make_nodes(*nodes), "cpu", forecast_weight=forecast_weight)


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "1 000"])
def test_what_is_no_number_is_not_known(text: str) -> None:
    assert math.isnan(annotated(loaded_node(free_cpu=text)).used[0])
    assert annotated(loaded_node(free_cpu=1000, std_cpu=text)).deviation[0] == 0


def test_a_forecast_counts_by_its_weight_where_there_is_one() -> None:
    nodes = (
        loaded_node("a", free_cpu=1000, forcasted_free_cpu="2000"),
        loaded_node("b", free_cpu=1000, forcasted_free_cpu="soon"),
    )
    assert annotated(*nodes, forecast_weight=0.2).used.tolist() == [2800, 3000]
    assert annotated(*nodes).used.tolist() == [3000, 3000]


def stamp(age: timedelta, form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return (datetime.now(UTC) - age).strftime(form)


def test_annotations_that_are_too_old_count_no_more() -> None:
    nodes = (
        loaded_node("fresh", free_cpu=1000, load_measured_at=stamp(timedelta(minutes=14))),
        loaded_node("old", free_cpu=1000, load_measured_at=stamp(timedelta(minutes=16))),
        loaded_node("ahead", free_cpu=1000, load_measured_at=stamp(timedelta(minutes=-1))),
        loaded_node("of unknown age", free_cpu=1000),
        loaded_node("of no age", free_cpu=1000, load_measured_at="yesterday"),
    )
    used = annotated(*nodes, forecast_weight=0.2).used.tolist()
    assert used == pytest.approx([3000, math.nan, math.nan, 3000, math.nan], nan_ok=True)
    assert not math.isnan(annotated(nodes[1], annotationMaxAge="17m").used[0])
    assert math.isnan(annotated(nodes[0], annotationMaxAge="13m").used[0])


def test_a_time_without_zone_is_of_greenwich_and_a_zone_counts() -> None:
    old = timedelta(minutes=16)
    without = loaded_node("a", free_cpu=1000, load_measured_at=stamp(old, "%Y-%m-%dT%H:%M:%S"))
    west = datetime.now(timezone(timedelta(hours=-5))).isoformat()
    zoned = loaded_node("b", free_cpu=1000, load_measured_at=west)
    assert [math.isnan(x) for x in annotated(without, zoned).used] == [True, False]


def test_the_age_limit_is_a_time() -> None:
    with pytest.raises(ConfigurationError, match="must be longer than"):
        check_arguments({"annotationMaxAge": "0s"}, LoadArguments, "args")


def test_shares_are_of_the_capacity_with_the_pod() -> None:
    load = annotated(
        loaded_node("a", free_cpu=3000, std_cpu=400),
        loaded_node("b", free_cpu=100, std_cpu=9000),
        loaded_node("none", cpu="0", free_cpu=0, std_cpu=10),
        loaded_node("unknown"),
    )
    assert load.mean_with(500).tolist() == pytest.approx(
        [0.375, 1, math.nan, math.nan], nan_ok=True
    )
    assert load.deviation_share.tolist() == pytest.approx([0.1, 1, math.nan, 0], nan_ok=True)


async def test_prometheus_tells_shares_of_the_node() -> None:
    answer: Mapping[str, Mapping[str, float]] = {
        "cpu": {"a": 0.25},
        "cpu_deviation": {"a": 0.1},
        "memory": {"a": 0.5, "b": 0.75},
        "memory_deviation": {"a": 0.2},
    }
    nodes = make_nodes(loaded_node("a", memory="8Gi", free_cpu=0), make_node("b"))
    async with fake_prometheus() as prometheus:
        prometheus.measures(answer)
        settings = prometheus.settings(interval="1h", max_age="1h")
        meter = LoadMeter(LoadArguments(prometheus=settings, window="3m"))
        await meter.start()
        cpu, memory = meter.load(nodes, "cpu"), meter.load(nodes, "memory")
        await meter.stop()
    assert (cpu.used[0], cpu.deviation[0]) == (1000, 400)
    assert math.isnan(cpu.used[1])
    assert memory.used.tolist() == [4 * GIB, 12 * GIB]
    assert memory.deviation[0] == pytest.approx(0.2 * 8 * GIB)
    (query,) = prometheus.queries
    assert (
        'stddev_over_time((1 - avg by (node) ((rate(node_cpu_seconds_total{mode="idle"}[1m]))))'
        "[3m:12s])"
    ) in query
    assert (
        "avg_over_time((avg by (node) ((1 - node_memory_MemAvailable_bytes / "
        "node_memory_MemTotal_bytes)))[3m:12s])"
    ) in query


def node(name: str = "worker-1", **addresses: str) -> NodeManifest:
    listed = tuple(NodeAddress(type=kind, address=a) for kind, a in addresses.items())
    return NodeManifest(metadata=Metadata(name=name), status=NodeStatus(addresses=listed))


WORKER = node(InternalIP="10.0.0.7", Hostname="worker-1.example.com")


@pytest.mark.parametrize(
    ("preset", "labels"),
    [
        ("node", {"node": "worker-1", "instance": "10.0.0.7:9100"}),
        ("kubernetes-node", {"kubernetes_node": "worker-1", "instance": "10.42.0.3:9100"}),
        ("node-uname-info", {"nodename": "worker-1.example.com"}),
        ("kube-pod-info", {"node": "worker-1"}),
        ("instance-name", {"instance": "worker-1"}),
        ("instance-name", {"instance": "worker-1:9100"}),
        ("instance-ip", {"instance": "10.0.0.7:9100"}),
        ("instance-ip", {"instance": "10.0.0.7"}),
    ],
)
def test_a_preset_recognises_the_node_of_a_series(
    preset: Preset, labels: Mapping[str, str]
) -> None:
    assert PRESETS[preset].key_of(labels) == PRESETS[preset].key_of_node(WORKER)


@pytest.mark.parametrize(
    ("preset", "labels"),
    [
        ("node", {"instance": "10.0.0.7:9100"}),
        ("instance-name", {"instance": "10.0.0.7:9100"}),
        ("instance-ip", {"instance": "worker-1:9100"}),
        ("instance-ip", {}),
    ],
)
def test_a_series_of_another_layout_names_no_node(
    preset: Preset, labels: Mapping[str, str]
) -> None:
    assert PRESETS[preset].key_of(labels) == ""


def test_addresses_of_ipv6_are_recognised_with_and_without_a_port() -> None:
    layout = PRESETS["instance-ip"]
    expected = layout.key_of_node(node(InternalIP="fd00::7"))
    assert layout.key_of({"instance": "[fd00::7]:9100"}) == expected == "fd00::7"
    assert layout.key_of({"instance": "fd00::7"}) == expected


def test_a_port_counts_only_if_the_format_has_one() -> None:
    layout = Layout(label="target", format="{internalIP}:9100")
    assert layout.key_of_node(WORKER) == layout.key_of({"target": "10.0.0.7:9100"})
    assert layout.key_of_node(WORKER) != layout.key_of({"target": "10.0.0.7:9200"})
    assert Layout(label="target").key_of({"target": "worker-1:1"}) == "worker-1"


@pytest.mark.parametrize("wrong", ["constant", "{nome}", "{name", "{}", "{name.x}"])
def test_a_format_must_tell_nodes_apart(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"must contain \{name\}"):
        Layout(label="node", format=wrong).check()


def cdf(x: float, alpha: float, beta: float) -> float:
    return float(beta_cdf(np.array([x]), np.array([alpha]), np.array([beta]))[0])


def below(limit: float, mean: float, deviation: float) -> float:
    return float(probability_below(limit, np.array([mean]), np.array([deviation]))[0])


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "expected"),
    [
        # Closed forms: x**a, 1 - (1-x)**b, the arcsine law, and binomial sums.
        pytest.param(0.3, 1, 1, 0.3, id="uniform"),
        pytest.param(0.3, 4, 1, 0.3**4, id="a power"),
        pytest.param(0.3, 1, 5, 1 - 0.7**5, id="the other power"),
        pytest.param(0.3, 0.5, 0.5, 2 / math.pi * math.asin(math.sqrt(0.3)), id="arcsine"),
        pytest.param(0.25, 2, 3, 0.26171875, id="67/256"),
        pytest.param(0.5, 7.3, 7.3, 0.5, id="the middle of a symmetric one"),
        # Tables of F and t: F(4, 10) is below 3.47805 in 95 % of cases, |t(10)| above 2.22814 in 5.
        pytest.param(4 * 3.47805 / (4 * 3.47805 + 10), 2, 5, 0.95, id="F, 4 and 10 degrees"),
        pytest.param(10 / (10 + 2.2281388520**2), 5, 0.5, 0.05, id="t, 10 degrees"),
        pytest.param(1e-6, 0.01, 2, 1e-6**0.01 * (1 + 0.01 * (1 - 1e-6)), id="steep"),
    ],
)
def test_values_are_the_published_ones(
    x: float, alpha: float, beta: float, expected: float
) -> None:
    tolerance = 1e-5 if expected in (0.95, 0.05) else 1e-12
    assert cdf(x, alpha, beta) == pytest.approx(expected, rel=tolerance)


@given(st.floats(0.001, 0.999), st.integers(1, 60), st.integers(1, 60))
def test_whole_parameters_agree_with_a_sum_of_binomials(x: float, a: int, b: int) -> None:
    n = a + b - 1
    expected = sum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert cdf(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("limit", "mean", "deviation", "expected"),
    [
        pytest.param(0.9, 0, 0, 1, id="idle"),
        pytest.param(0.9, 0, 0.3, 1, id="idle, whatever the deviation"),
        pytest.param(0.9, 0.9, 0, 1, id="steady at the limit"),
        pytest.param(0.9, 0.91, 0, 0, id="steady above it"),
        pytest.param(0.9, 1, 0, 0, id="full"),
        pytest.param(0.9, 0.5, 0.5, 0, id="no distribution varies so much"),
        pytest.param(0.9, 1, 0.1, 0, id="full and yet varying"),
        pytest.param(1, 1, 0.1, 1, id="a limit of everything"),
        pytest.param(0, 0.5, 0.1, 0, id="a limit of nothing"),
        pytest.param(0.9, math.nan, 0.1, math.nan, id="unknown mean"),
    ],
)
def test_extremes_are_certain(limit: float, mean: float, deviation: float, expected: float) -> None:
    assert below(limit, mean, deviation) == pytest.approx(expected, nan_ok=True)


NAN = float("nan")


def scores(*values: float) -> Scores:
    return np.array(values, np.float64)


@pytest.mark.parametrize(
    ("on_missing", "expected"),
    [("neutral", [94, 0, 36, 14]), ("worst", [94, 0, 0, 14])],
)
def test_nodes_without_measurements_get_the_mean_or_nothing(
    on_missing: OnMissing, expected: list[int]
) -> None:
    # Known are 1, 15 and 13 of 15: 94, 0 and 14, the mean of which is 36.
    marked = scores(1, 15, MISSING, 13)
    filled = fill_missing(marked, on_missing, lambda s: normalize_by_maximum(s, reverse=True))
    assert filled.tolist() == expected


def test_a_missing_number_can_be_a_failure() -> None:
    assert mark_missing(scores(0, 3), "fail").tolist() == [0, 3]
    with pytest.raises(NoMeasurementsError, match="nodes without measurements"):
        mark_missing(scores(0, NAN), "fail")


MEASURES = load_measures("15m")
NODE = PRESETS["node"]

STEADY = {
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "1000+30x40",
    'node_cpu_seconds_total{node="a",cpu="1",mode="idle"}': "5+45x40",
    'node_cpu_seconds_total{node="a",cpu="1",mode="user"}': "0+15x40",
    'node_memory_MemAvailable_bytes{node="a"}': "2048x40",
    'node_memory_MemTotal_bytes{node="a"}': "8192x40",
}
SWINGING = {  # an idle quarter of an hour, a busy one
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "0+60x15 900+0x25",
    'node_memory_MemAvailable_bytes{node="a"}': "8192x15 4096x25",
    'node_memory_MemTotal_bytes{node="a"}': "8192x40",
}
RESTARTED = {'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "9000+30x19 0+30x20"}
DIED = {name: values.replace("x40", "x20") for name, values in STEADY.items()}


@pytest.mark.parametrize(
    ("series", "name", "expected", "tolerance"),
    [
        (STEADY, "cpu", 0.375, 1e-9),
        (STEADY, "cpu_deviation", 0, 1e-9),
        (STEADY, "memory", 0.75, 0),
        (STEADY, "memory_deviation", 0, 0),
        # At minute 23 half of the readings are from before; rates follow in the course of five.
        (SWINGING, "cpu", 0.4, 0.06),
        (SWINGING, "cpu_deviation", 0.43, 0.04),
        (SWINGING, "memory", 0.25, 0.04),
        (SWINGING, "memory_deviation", 0.25, 0.01),
        (RESTARTED, "cpu", 0.5, 0.03),
    ],
)
def test_golden_vectors(
    tmp_path: Path, series: Mapping[str, str], name: str, expected: float, tolerance: float
) -> None:
    query = MEASURES[name].text(NODE)
    check(tmp_path, series, [close_to(query, expected, tolerance, minute=23)])


@pytest.mark.parametrize(
    ("preset", "own", "beside", "found"),
    [
        ("node", 'node="{n}"', "", 'node="{n}"'),
        ("kubernetes-node", 'kubernetes_node="{n}"', "", 'kubernetes_node="{n}"'),
        (
            "node-uname-info",
            'instance="10.{n}:9100"',
            'node_uname_info{instance="10.{n}:9100",nodename="{n}"}',
            'nodename="{n}"',
        ),
        (
            "kube-pod-info",
            'namespace="m",pod="x-{n}"',
            'kube_pod_info{namespace="m",pod="x-{n}",node="{n}"}',
            'node="{n}"',
        ),
        ("instance-name", 'instance="{n}"', "", 'instance="{n}"'),
        ("instance-ip", 'instance="10.{n}:9100"', "", 'instance="10.{n}:9100"'),
    ],
)
def test_an_old_idle_node_has_less_traffic_than_a_new_busy_one_that_is_scraped_twice(
    tmp_path: Path, preset: Preset, own: str, beside: str, found: str
) -> None:
    traffic = {"idle": ("1000000000000x40", 0), "busy": ("0+600000000x40", 10_000_000)}
    series, expected = {}, []
    for name, (values, rate) in traffic.items():
        for job in ("node", "again"):
            labels = f'{own.replace("{n}", name)},device="eth0",job="{job}"'
            series[f"node_network_receive_bytes_total{{{labels}}}"] = values
        if beside:
            series[beside.replace("{n}", name)] = "1x40"
        expected.append({"labels": f"{{{found.replace('{n}', name)}}}", "value": rate})
    received = 'rate(node_network_receive_bytes_total{device="eth0"}[5m])'
    measure = Measure(series=received, aggregate="sum", distinct=("device",))
    query = f"round({measure.text(PRESETS[preset])})"
    check(tmp_path, series, [{"expr": query, "eval_time": "30m", "exp_samples": expected}])


@pytest.mark.parametrize("name", MEASURES)
def test_a_node_that_is_not_measured_any_more_has_no_value(tmp_path: Path, name: str) -> None:
    query = MEASURES[name].text(NODE)
    before = close_to(query, 0.375 if name == "cpu" else 0.75, 0.75, minute=20)
    check(tmp_path, DIED, [before, nothing(query, minute=27)])  # 7 of the 15 minutes are known


def test_a_long_window_keeps_dead_nodes_no_longer(tmp_path: Path) -> None:
    series = {name: f"{values[:-3]}x300 _x60" for name, values in STEADY.items()}
    query = load_measures("3h")["cpu"].text(NODE)
    check(tmp_path, series, [close_to(query, 0.375, 0.05, minute=304), nothing(query, minute=307)])
