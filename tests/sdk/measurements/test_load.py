import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from moorage.errors import ConfigurationError
from moorage.measurements import NoMeasurementsError, PrometheusSettings
from moorage.measurements.load import Load, LoadArguments, LoadMeter
from moorage.models import NodeManifest
from moorage.testing import make_node, make_nodes
from moorage_host.policy.checks import check_arguments
from tests.annotated import loaded_node
from tests.fake_prometheus import fake_prometheus

GIB = 1024**3


def annotated(*nodes: NodeManifest, forecast_weight: float = 0, **args: Any) -> Load:
    meter = LoadMeter(check_arguments(args, LoadArguments, "args"))
    return meter.load(make_nodes(*nodes), "cpu", forecast_weight=forecast_weight)


def test_annotations_tell_what_is_free() -> None:
    load = annotated(loaded_node(free_cpu=1000, std_cpu="400.5"))
    assert (load.capacity[0], load.used[0], load.deviation[0]) == (4000, 3000, 400.5)


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "1 000"])
def test_what_is_no_number_is_not_known(text: str) -> None:
    assert math.isnan(annotated(loaded_node(free_cpu=text)).used[0])
    assert annotated(loaded_node(free_cpu=1000, std_cpu=text)).deviation[0] == 0


def test_more_free_than_there_is_means_nothing_is_used() -> None:
    assert annotated(loaded_node(free_cpu=5000)).used[0] == 0


def test_a_forecast_counts_by_its_weight_where_there_is_one() -> None:
    nodes = (
        loaded_node("a", free_cpu=1000, forcasted_free_cpu="2000"),
        loaded_node("b", free_cpu=1000, forcasted_free_cpu="soon"),
    )
    assert annotated(*nodes, forecast_weight=0.2).used.tolist() == [2800, 3000]
    assert annotated(*nodes).used.tolist() == [3000, 3000]


def test_annotations_may_have_a_prefix() -> None:
    load = annotated(
        loaded_node("a", free_cpu=1000),
        loaded_node("b", free_cpu=1000, prefix="example.com/"),
        annotationPrefix="example.com/",
    )
    assert math.isnan(load.used[0])
    assert load.used[1] == 3000


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
    assert used == pytest.approx([3000, math.nan, 3000, 3000, 3000], nan_ok=True)
    assert not math.isnan(annotated(nodes[1], annotationMaxAge="17m").used[0])
    assert math.isnan(annotated(nodes[0], annotationMaxAge="13m").used[0])


def test_a_time_without_zone_is_of_greenwich_and_a_zone_counts() -> None:
    old = timedelta(minutes=16)
    without = loaded_node("a", free_cpu=1000, load_measured_at=stamp(old, "%Y-%m-%dT%H:%M:%S"))
    west = datetime.now(timezone(timedelta(hours=-5))).isoformat()
    zoned = loaded_node("b", free_cpu=1000, load_measured_at=west)
    assert [math.isnan(x) for x in annotated(without, zoned).used] == [True, False]


def test_an_old_forecast_counts_no_more_either() -> None:
    node = loaded_node(
        free_cpu=1000, forcasted_free_cpu="9", load_measured_at=stamp(timedelta(hours=1))
    )
    assert math.isnan(annotated(node, forecast_weight=1).used[0])


def test_the_time_has_the_prefix_too() -> None:
    node = loaded_node(free_cpu=1000, prefix="x/", load_measured_at=stamp(timedelta(hours=1)))
    assert annotated(node, annotationPrefix="x/").used[0] == 3000


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


def test_prometheus_is_to_have_answered() -> None:
    LoadMeter(LoadArguments()).check()
    silent = LoadMeter(LoadArguments(prometheus=PrometheusSettings(address="http://nowhere")))
    with pytest.raises(NoMeasurementsError, match="has not been started"):
        silent.check()
