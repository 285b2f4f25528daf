"""The queries of the annotator, evaluated by Prometheus' own promtool on made-up series."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from moorage.measurements import PRESETS, Preset
from moorage.measurements.prometheus.query import query_text
from services.annotator.planning import measures
from tests.promtool import check, close_to, nothing

WINDOW = 900.0
MEASURES = measures(WINDOW)
NODE = PRESETS["node"]
GIB = 1024**3

STEADY = {
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "1000+30x40",
    'node_cpu_seconds_total{node="a",cpu="1",mode="idle"}': "5+45x40",
    'node_cpu_seconds_total{node="a",cpu="1",mode="user"}': "0+15x40",
    'node_memory_MemAvailable_bytes{node="a"}': "2048x40",
}
SWINGING = {  # an idle quarter of an hour, a busy one
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "0+60x15 900+0x25",
    'node_memory_MemAvailable_bytes{node="a"}': f"{8 * GIB}x15 {4 * GIB}x25",
}
RESTARTED = {'node_cpu_seconds_total{node="a",cpu="0",mode="idle"}': "9000+30x19 0+30x20"}
TWICE = {
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle",instance="1"}': "0+30x40",
    'node_cpu_seconds_total{node="a",cpu="0",mode="idle",instance="2"}': "0+30x40",
    'node_memory_MemAvailable_bytes{node="a",instance="1"}': "2048x40",
    'node_memory_MemAvailable_bytes{node="a",instance="2"}': "2048x40",
}


@pytest.mark.parametrize(
    ("series", "name", "expected", "tolerance"),
    [
        (STEADY, "mean-free-cpu", 1250, 1e-6),
        (STEADY, "std-free-cpu", 0, 1e-6),
        (STEADY, "mean-free-memory", 2048, 0),
        (STEADY, "std-free-memory", 0, 0),
        # At minute 23 half of the readings are from before; rates follow in the course of five.
        (SWINGING, "mean-free-cpu", 600, 60),
        (SWINGING, "std-free-cpu", 430, 40),
        (SWINGING, "mean-free-memory", 6 * GIB, 0.3 * GIB),
        (SWINGING, "std-free-memory", 2 * GIB, 0.1 * GIB),
        (RESTARTED, "mean-free-cpu", 500, 30),
        (RESTARTED, "std-free-cpu", 0, 60),
        (TWICE, "mean-free-cpu", 500, 1e-6),
        (TWICE, "std-free-cpu", 0, 1e-6),
        (TWICE, "mean-free-memory", 2048, 0),
    ],
)
def test_golden_vectors(
    tmp_path: Path, series: Mapping[str, str], name: str, expected: float, tolerance: float
) -> None:
    query = MEASURES[name].text(NODE)
    check(tmp_path, series, [close_to(query, expected, tolerance, minute=23)])


def test_a_node_that_is_not_measured_any_more_has_no_value(tmp_path: Path) -> None:
    series = {name: values.replace("x40", "x20") for name, values in STEADY.items()}
    for name in MEASURES:
        query = MEASURES[name].text(NODE)
        check(tmp_path, series, [nothing(query, minute=27)])  # 7 of the 15 minutes are known


@pytest.mark.parametrize("preset", PRESETS)
def test_one_query_brings_everything_under_every_preset(tmp_path: Path, preset: Preset) -> None:
    layout = PRESETS[preset]
    labels = 'instance="10.0.0.1:9100",namespace="m",pod="p"'
    own = "" if layout.join else f'{layout.label}="a",'
    labels = labels.replace("instance=", "other=") if own.startswith("instance") else labels
    series = {
        f'node_cpu_seconds_total{{{own}{labels},cpu="0",mode="idle"}}': "0+30x40",
        f"node_memory_MemAvailable_bytes{{{own}{labels}}}": "2048x40",
        f'node_uname_info{{{labels},nodename="a"}}': "1x40",
        'kube_pod_info{namespace="m",pod="p",node="a"}': "1x40",
    }
    expected = {"mean-free-cpu": 500, "std-free-cpu": 0, "mean-free-memory": 2048}
    samples = [
        {"labels": f'{{{layout.label}="a",moorage_measure="{name}"}}', "value": value}
        for name, value in {**expected, "std-free-memory": 0}.items()
    ]
    query = f"round({query_text(MEASURES, layout)}, 0.001)"
    test = {"expr": query, "eval_time": "30m", "exp_samples": samples}
    check(tmp_path, series, [test])
