import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from moorage import ConfigurationError, PluginFailedError
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.network_traffic import NetworkTraffic
from tests.fake_prometheus import FakePrometheus, fake_prometheus


def plugin(args: Mapping[str, Any]) -> NetworkTraffic:
    return NetworkTraffic(check_arguments(args, NetworkTraffic.Args, "args"))


async def scores(
    traffic: Mapping[str, float], *nodes: str, answer: int = 200, **args: Any
) -> dict[str, float]:
    """Score nodes by the traffic that Prometheus knows of."""
    async with fake_prometheus() as prometheus:
        prometheus.measures({"traffic": traffic})
        prometheus.status = answer
        running = plugin({"prometheusAddress": prometheus.address, **args})
        made = [make_node(name) for name in nodes or traffic]
        return await asyncio.to_thread(run_score, running, make_pod(), *made)


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        pytest.param([1, 15, 10, 13], [94, 0, 34, 14], id="the original's first test"),
        pytest.param([1, 15, 15, 13], [94, 0, 0, 14], id="its second: two busiest"),
        pytest.param([1_000_000, 1_200_000, 1_400_000], [29, 15, 0], id="the article's example"),
        pytest.param([0, 0, 0], [100, 100, 100], id="all idle"),
        pytest.param([0, 7], [100, 0], id="an idle one"),
        pytest.param([5, 5], [0, 0], id="equally busy"),
        pytest.param([7], [0], id="one node"),
        pytest.param([0], [100], id="one idle node"),
        pytest.param([1e17, 3e17], [67, 0], id="too large for 100 times as much in 64 bits"),
        pytest.param([1.9, 2.1], [50, 0], id="whole bytes count"),
    ],
)
async def test_quiet_nodes_are_preferred(traffic: list[float], expected: list[float]) -> None:
    by_node = {f"n{i}": bytes_per_second for i, bytes_per_second in enumerate(traffic)}
    assert list((await scores(by_node)).values()) == expected


@pytest.mark.parametrize(("on_missing", "score"), [("neutral", 36), ("worst", 0)])
async def test_a_node_without_measurements_does_not_stop_the_others(
    on_missing: str, score: float
) -> None:
    known = {"a": 1, "b": 15, "c": 13}  # 94, 0, 14: 36 on average
    found = await scores(known, "a", "new", "b", "c", onMissing=on_missing)
    assert found == {"a": 94, "new": score, "b": 0, "c": 14}


async def test_nodes_are_alike_if_none_of_them_is_measured() -> None:
    assert await scores({"elsewhere": 9}, "a", "b") == {"a": 50, "b": 50}


async def test_missing_measurements_of_a_node_can_be_a_failure() -> None:
    with pytest.raises(PluginFailedError, match="there are nodes without measurements"):
        await scores({"a": 1}, "a", "new", onMissing="fail")


@pytest.mark.parametrize("on_missing", ["neutral", "fail"])
async def test_without_any_measurements_the_plugin_fails_so_that_its_weight_does_not_count(
    on_missing: str,
) -> None:
    with pytest.raises(PluginFailedError, match="HTTP status 500"):
        await scores({"a": 1}, answer=500, onMissing=on_missing)


async def test_without_any_measurements_all_nodes_may_be_the_worst() -> None:
    assert await scores({"a": 1}, answer=500, onMissing="worst") == {"a": 0}


async def sent_query(prometheus: FakePrometheus, args: Mapping[str, Any]) -> str:
    """Return what is summed up by node and device, and nothing of the form around it."""
    prometheus.measures({"traffic": {"n1": 1}})
    running = plugin({"prometheus": {"address": prometheus.address}, **args})
    await running.start()
    await running.stop()
    found = re.search(
        r"sum by \(node\) \(max by \(node, device\) \(\((.*)\)\)\)", prometheus.queries[-1]
    )
    assert found is not None, prometheus.queries
    return found[1]


@pytest.mark.parametrize(
    ("args", "query"),
    [
        ({}, 'rate(node_network_receive_bytes_total{device="ens192"}[5m])'),
        (
            {"networkInterface": "eth0.100", "timeRangeInMinutes": 60},
            (
                '(rate(node_network_receive_bytes_total{device="eth0.100"}[1h]) and '
                'last_over_time(node_network_receive_bytes_total{device="eth0.100"}[5m]))'
            ),
        ),
        (
            {"networkInterface": "eth.*|en.+", "timeRange": "1.5m"},
            'rate(node_network_receive_bytes_total{device=~"eth.*|en.+"}[1m30s])',
        ),
        (
            {"networkInterface": "!lo|veth.*", "direction": "transmit"},
            'rate(node_network_transmit_bytes_total{device!~"lo|veth.*"}[5m])',
        ),
        (
            {"direction": "both"},
            (
                'rate(node_network_receive_bytes_total{device="ens192"}[5m]) + '
                'rate(node_network_transmit_bytes_total{device="ens192"}[5m])'
            ),
        ),
        (
            {"compat": "sumOverTime"},
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])',
        ),
        (
            {"networkInterface": 'x"} or up{a="'},
            r'rate(node_network_receive_bytes_total{device=~"x\"} or up{a=\""}[5m])',
        ),
    ],
)
async def test_the_arguments_say_what_is_measured(args: Mapping[str, Any], query: str) -> None:
    async with fake_prometheus() as prometheus:
        assert await sent_query(prometheus, args) == query


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "address of Prometheus is missing"),
        ({"prometheusAddress": "localhost"}, "args.prometheusAddress: expected an address"),
        ({"prometheusAddress": "http://a", "prometheus": {"address": "http://a"}}, "exclude"),
        ({"timeRangeInMinutes": 0}, "args.timeRangeInMinutes"),
        ({"timeRange": "0s"}, "must be longer"),
        ({"timeRange": "5 min"}, "expected a duration such as"),
        ({"networkInterface": ""}, "args.networkInterface"),
        ({"networkInterfaces": "eth0"}, "did you mean `networkInterface`?"),
        ({"onMissing": "ignore"}, 'expected "neutral" or "worst" or "fail"'),
    ],
)
def test_mistakes_are_refused(args: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        plugin(args)
    assert problem in str(error.value)
