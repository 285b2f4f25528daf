import asyncio
from typing import Any

import pytest

from moorage import ConfigurationError, PluginFailedError
from moorage.measurements import PrometheusSettings
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.congestion_factor import CongestionFactor
from tests.fake_prometheus import fake_prometheus


def plugin(**args: Any) -> CongestionFactor:
    return CongestionFactor(check_arguments(args, CongestionFactor.Args, "args"))


def annotated(factor: str | None, **args: Any) -> float:
    annotations = {} if factor is None else {"congestion-factor": factor}
    return run_score(plugin(**args), make_pod(), make_node(annotations=annotations))["node"]


@pytest.mark.parametrize(
    ("factor", "score"),
    [("0", 100), ("25", 75), ("100", 0), ("250", 0), ("-5", 100), (None, 100), ("much", 100)],
)
def test_scores_fall_with_the_factor(factor: str | None, score: float) -> None:
    assert annotated(factor) == score


def test_the_maximum_and_the_annotation_are_arguments() -> None:
    assert annotated("2.5", maximum=10) == 75
    node = make_node(annotations={"example.com/busy": "60"})
    assert run_score(plugin(annotation="example.com/busy"), make_pod(), node) == {"node": 40}


@pytest.mark.parametrize(("on_missing", "score"), [("idle", 100), ("neutral", 35), ("worst", 0)])
def test_nodes_without_a_factor_get_what_the_policy_says(on_missing: str, score: float) -> None:
    factors = {"a": {"congestion-factor": "50"}, "b": {"congestion-factor": "80"}, "new": {}}
    nodes = [make_node(name, annotations=each) for name, each in factors.items()]
    found = run_score(plugin(onMissing=on_missing), make_pod(), *nodes)
    assert found == pytest.approx({"a": 50, "b": 20, "new": score})


async def test_the_factor_can_be_a_query() -> None:
    async with fake_prometheus() as prometheus:
        prometheus.measures({"factor": {"a": 40}})
        running = plugin(query="node_load5", prometheus={"address": prometheus.address})
        nodes = make_node("a", annotations={"congestion-factor": "90"}), make_node("b")
        scores = await asyncio.to_thread(run_score, running, make_pod(), *nodes)
    assert scores == {"a": 60, "b": 100}
    assert "max by (node) ((node_load5))" in prometheus.queries[0]


def test_a_silent_prometheus_is_a_failure_unless_nodes_then_count_as_idle() -> None:
    args: dict[str, Any] = {
        "query": "x",
        "prometheus": PrometheusSettings(address="http://127.0.0.1:1"),
    }
    neutral = CongestionFactor(CongestionFactor.Args(on_missing="neutral", **args))
    with pytest.raises(PluginFailedError, match="cannot query Prometheus at"):
        run_score(neutral, make_pod(), make_node())
    idle = CongestionFactor(CongestionFactor.Args(**args))
    assert run_score(idle, make_pod(), make_node()) == {"node": 100}


def test_a_query_needs_a_prometheus() -> None:
    with pytest.raises(ConfigurationError, match=r"query and prometheus\.address need each other"):
        plugin(query="node_load5")
