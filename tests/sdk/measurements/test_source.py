import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from moorage import ConfigurationError, Nodes
from moorage.measurements import Measure, NoMeasurementsError, PrometheusSettings, PrometheusSource
from moorage.testing import make_node, make_nodes
from tests.fake_prometheus import Answer, FakePrometheus, fake_prometheus
from tools.waiting import until

LOAD = {"load": Measure(series="node_load1")}


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        yield fake


def nodes(*names: str) -> Nodes:
    return make_nodes(*map(make_node, names))


def source(settings: PrometheusSettings, name: str = "test") -> PrometheusSource:
    return PrometheusSource(name, settings, LOAD)


def metric(name: str, fake: FakePrometheus, **labels: str) -> float | None:
    labels = {"source": "test", "address": fake.address, **labels}
    return REGISTRY.get_sample_value(f"moorage_metrics_{name}", labels)


async def test_one_query_answers_for_all_nodes(prometheus: FakePrometheus) -> None:
    prometheus.measures({"load": {"n1": 0.5, "n2": math.nan, "other": 7}})
    measured = source(prometheus.settings(interval="1h", max_age="1h"))
    await measured.start()
    values = measured.values(nodes("n1", "n2", "n3"), "load")
    await measured.stop()
    assert values[0] == 0.5
    assert [math.isnan(value) for value in values] == [False, True, True]
    assert len(prometheus.requests) == 1
    assert metric("polls_total", prometheus, result="ok") == 1
    assert metric("nodes", prometheus) == 2
    assert (metric("last_answer_timestamp_seconds", prometheus) or 0) > 0


async def test_equal_sources_share_their_queries(prometheus: FakePrometheus) -> None:
    prometheus.measures({"load": {"n1": 1}})
    hourly = prometheus.settings(interval="1h", max_age="1h")
    first, second = source(hourly), source(hourly)
    other = source(prometheus.settings(interval="1h", max_age="2h"))
    await first.start()
    await second.start()
    assert len(prometheus.requests) == 1
    await other.start()
    assert len(prometheus.requests) == 2
    await first.stop()
    assert second.values(nodes("n1"), "load").tolist() == [1]
    assert math.isinf(first.age)
    for each in (second, other):
        await each.stop()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("poll")]


async def test_a_failing_server_is_asked_again_and_the_answer_kept(
    prometheus: FakePrometheus,
) -> None:
    prometheus.measures({"load": {"n1": 1}})
    measured = source(prometheus.settings())
    await measured.start()
    with capture_logs() as logs:
        prometheus.status = 500
        await until(lambda: (metric("polls_total", prometheus, result="failed") or 0) > 2)
        assert measured.values(nodes("n1"), "load").tolist() == [1]
        measured.check()
        prometheus.status = 200
        prometheus.measures({"load": {"n1": 3}})
        await until(lambda: measured.values(nodes("n1"), "load")[0] == 3)
    await measured.stop()
    assert [log["event"] for log in logs] == ["No measurements.", "Prometheus answers again."]


async def test_an_answer_counts_until_it_is_too_old(prometheus: FakePrometheus) -> None:
    prometheus.measures({"load": {"n1": 1}})
    measured = source(prometheus.settings(max_age="20ms"))
    await measured.start()
    prometheus.status = 500
    await until(lambda: not measured.is_fresh and "500" in measured.problem)
    assert math.isnan(measured.values(nodes("n1"), "load")[0])
    with pytest.raises(NoMeasurementsError, match="HTTP status 500, bad_data: no such thing"):
        measured.check()
    await measured.stop()


async def test_a_stuck_server_holds_nobody_up_for_long(
    prometheus: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.measurements.prometheus.source.FIRST_ANSWER_SECONDS", 0.05)
    prometheus.stuck = True
    measured = source(prometheus.settings())
    await measured.start()
    with pytest.raises(NoMeasurementsError, match="has not been asked yet"):
        measured.check()
    await measured.stop()


async def test_an_answer_that_makes_no_sense_is_a_failure(prometheus: FakePrometheus) -> None:
    prometheus.answer = lambda query: [({"node": "n1"}, "many")]
    measured = source(prometheus.settings())
    await measured.start()
    with pytest.raises(NoMeasurementsError, match="could not convert string to float: 'many'"):
        measured.check()
    await measured.stop()


def kube_prometheus_stack(query: str) -> Answer:
    """Answer for exporters without a label for the node."""
    if "node_uname_info" in query:
        return [({"nodename": "n1"}, 1), ({"nodename": "n2"}, 1)]
    if "by (instance)" in query:
        return [({"instance": "10.0.0.1:9100"}, 1), ({"instance": "10.0.0.2:9100"}, 1)]
    return [({}, 1)]


async def test_an_empty_answer_says_once_which_presets_would_match(
    prometheus: FakePrometheus,
) -> None:
    prometheus.answer = kube_prometheus_stack
    with capture_logs() as logs:
        measured = source(prometheus.settings())
        await measured.start()
        await until(lambda: (metric("polls_total", prometheus, result="empty") or 0) > 2)
        problem = measured.problem
        await measured.stop()
    assert "knows no node" in problem
    (log,) = logs
    assert log["event"] == "Prometheus knows no node under this preset."
    assert log["nodes_by_preset"] == {"node-uname-info": 2, "instance-ip": 2}
    assert log["advice"] == "set preset to one of these"


async def test_an_empty_answer_under_every_preset_says_so(prometheus: FakePrometheus) -> None:
    with capture_logs() as logs:
        measured = source(prometheus.settings(interval="1h", max_age="1h"))
        await measured.start()
        await measured.stop()
    assert [(log["nodes_by_preset"], log["advice"]) for log in logs] == [
        ({}, "are nodes scraped at all?")
    ]


def test_a_source_needs_an_address() -> None:
    with pytest.raises(ConfigurationError, match="address of Prometheus is missing"):
        source(PrometheusSettings())


def test_measurements_need_no_prometheus_client() -> None:
    program = (
        "import sys\n"
        "sys.modules['prometheus_client'] = None\n"
        "import moorage.measurements\n"
        "from moorage.measurements.prometheus import gauges\n"
        "gauges.started('a', 'b'), gauges.answered('a', 'b', 1), gauges.failed('a', 'b')\n"
        "import moorage.measurements.prometheus.client\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
