"""The queries of the plugins that look at load, evaluated by promtool on made-up series."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from moorage.measurements import PRESETS
from moorage.measurements.load import load_measures
from moorage.measurements.prometheus.query import query_text
from tests.promtool import check, close_to, nothing

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


@pytest.mark.parametrize("name", MEASURES)
def test_a_node_that_is_not_measured_any_more_has_no_value(tmp_path: Path, name: str) -> None:
    query = MEASURES[name].text(NODE)
    before = close_to(query, 0.375 if name == "cpu" else 0.75, 0.75, minute=20)
    check(tmp_path, DIED, [before, nothing(query, minute=27)])  # 7 of the 15 minutes are known


def test_a_long_window_keeps_dead_nodes_no_longer(tmp_path: Path) -> None:
    series = {name: f"{values[:-3]}x300 _x60" for name, values in STEADY.items()}
    query = load_measures("3h")["cpu"].text(NODE)
    check(tmp_path, series, [close_to(query, 0.375, 0.05, minute=304), nothing(query, minute=307)])


def test_the_death_of_one_node_hides_no_other(tmp_path: Path) -> None:
    others = {name.replace('"a"', '"b"'): values for name, values in STEADY.items()}
    query = f"count by (node) ({query_text(MEASURES, NODE)})"
    expected = [{"labels": '{node="b"}', "value": len(MEASURES)}]
    test = {"expr": query, "eval_time": "27m", "exp_samples": expected}
    check(tmp_path, {**DIED, **others}, [test])
