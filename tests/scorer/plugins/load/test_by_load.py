"""Plugins that score by measured load, each with numbers worked out by hand."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from moorage import ConfigurationError, PluginFailedError, Pod
from moorage.measurements import PrometheusSettings
from moorage.models import Container, Resources
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.congestion_factor import CongestionFactor
from services.scorer.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from services.scorer.plugins.load.low_risk_over_commitment import LowRiskOverCommitment
from services.scorer.plugins.load.safe_balance import SafeBalance
from services.scorer.plugins.load.safe_overload import SafeOverload
from services.scorer.plugins.load.target_load_packing import TargetLoadPacking
from tests.annotated import loaded_node
from tests.fake_prometheus import fake_prometheus


def packing(**args: Any) -> TargetLoadPacking:
    return TargetLoadPacking(check_arguments(args, TargetLoadPacking.Args, "args"))


def pod(limit: str | None = None, request: str | None = None, **others: Any) -> Pod:
    limits = {} if limit is None else {"cpu": limit}
    requests = {} if request is None else {"cpu": request}
    resources = Resources(limits=limits, requests=requests)
    return make_pod(requests={"cpu": "0"}, containers=[Container(resources=resources)], **others)


def percent(expected: float, target: float = 40) -> float:
    """Score a node that would be so busy, with a pod that uses nothing."""
    node = loaded_node(free_cpu=4000 - 40 * expected)
    return run_score(packing(targetUtilization=target), pod(limit="0"), node)["node"]


@pytest.mark.parametrize(
    ("load", "score"),
    [
        pytest.param(0, 40, id="idle: the target"),
        pytest.param(20, 70, id="60 * 20/40 + 40"),
        pytest.param(40, 100, id="at the target"),
        pytest.param(40.1, 40, id="just above: 40 * 59.9/60 = 39.93"),
        pytest.param(70, 20, id="40 * 30/60"),
        pytest.param(100, 0, id="full"),
        pytest.param(150, 0, id="more than full"),
    ],
)
def test_nodes_are_packed_up_to_the_target(load: float, score: float) -> None:
    assert percent(load) == score


def test_the_target_is_an_argument() -> None:
    assert [percent(80, 80), percent(90, 80), percent(100, 100), percent(0, 100)] == [
        100, 40, 100, 100,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("placed", "millicores"),
    [
        pytest.param(pod(limit="300m", request="100m"), 300, id="the limit"),
        pytest.param(pod(request="200m"), 300, id="1.5 times the request"),
        pytest.param(pod(), 1000, id="neither"),
        pytest.param(pod(limit="0", overhead={"cpu": "40m"}), 40, id="overhead"),
        pytest.param(
            pod(limit="0", init_containers=[Container()]), 0, id="init containers do not count"
        ),
    ],
)
def test_the_pod_is_taken_to_use(placed: Pod, millicores: int) -> None:
    # Far below the target of 100 % the score is the expected load turned round.
    node = loaded_node(free_cpu=4000)
    (score,) = run_score(packing(targetUtilization=50), placed, node).values()
    assert score == int(50 * millicores / 2000 + 50 + 0.5)


def test_what_is_taken_for_granted_is_an_argument() -> None:
    usual: dict[str, Any] = {"targetUtilization": 50, "defaultRequests": {"cpu": "400m"}}
    running = packing(defaultRequestsMultiplier=2, **usual)
    node = loaded_node(free_cpu=4000)
    assert run_score(running, pod(), node) == {"node": 60}  # 400m: 50 * 10/50 + 50
    assert run_score(running, pod(request="400m"), node) == {"node": 70}  # 800m


def test_nodes_without_measurements_get_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=2400)
    assert run_score(packing(), pod(limit="0"), *nodes) == {"a": 40, "new": 70, "b": 100}


@pytest.mark.parametrize(
    "wrong",
    [
        {"targetUtilization": 0},
        {"targetUtilization": 101},
        {"defaultRequests": {"cpu": "much"}},
        {"defaultRequestsMultiplier": 0.5},
    ],
)
def test_mistakes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"args.{next(iter(wrong))}"):
        packing(**wrong)


def congestion(**args: Any) -> CongestionFactor:
    return CongestionFactor(check_arguments(args, CongestionFactor.Args, "args"))


def annotated(factor: str | None, **args: Any) -> float:
    annotations = {} if factor is None else {"congestion-factor": factor}
    return run_score(congestion(**args), make_pod(), make_node(annotations=annotations))["node"]


@pytest.mark.parametrize(
    ("factor", "score"),
    [("0", 100), ("25", 75), ("100", 0), ("250", 0), ("-5", 100), (None, 100), ("much", 100)],
)
def test_scores_fall_with_the_factor(factor: str | None, score: float) -> None:
    assert annotated(factor) == score


def test_the_maximum_and_the_annotation_are_arguments() -> None:
    assert annotated("2.5", maximum=10) == 75
    node = make_node(annotations={"example.com/busy": "60"})
    assert run_score(congestion(annotation="example.com/busy"), make_pod(), node) == {"node": 40}


@pytest.mark.parametrize(("on_missing", "score"), [("idle", 100), ("neutral", 35), ("worst", 0)])
def test_nodes_without_a_factor_get_what_the_policy_says(on_missing: str, score: float) -> None:
    factors = {"a": {"congestion-factor": "50"}, "b": {"congestion-factor": "80"}, "new": {}}
    nodes = [make_node(name, annotations=each) for name, each in factors.items()]
    found = run_score(congestion(onMissing=on_missing), make_pod(), *nodes)
    assert found == pytest.approx({"a": 50, "b": 20, "new": score})


async def test_the_factor_can_be_a_query() -> None:
    async with fake_prometheus() as prometheus:
        prometheus.measures({"factor": {"a": 40}})
        running = congestion(query="node_load5", prometheus={"address": prometheus.address})
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
        congestion(query="node_load5")


POD = make_pod(requests={"cpu": "400m"})
GIB = 1024**3


@pytest.mark.parametrize(
    ("free", "deviation", "margin", "sensitivity", "score"),
    [  # millicores of 4000; 100 * (1 - (mean + min(margin * deviation ** (1/sensitivity), 1)) / 2)
        pytest.param(4000, 0, 1, 1, 95, id="idle: (0.1 + 0) / 2"),
        pytest.param(2400, 400, 1, 1, 70, id="(0.5 + 0.1) / 2"),
        pytest.param(2400, 400, 1, 2, 59, id="(0.5 + 0.3162) / 2"),
        pytest.param(2400, 400, 2, 1, 65, id="(0.5 + 0.2) / 2"),
        pytest.param(2400, 400, 20, 1, 25, id="(0.5 + 1) / 2"),
        pytest.param(2400, 400, 0, 1, 75, id="(0.5 + 0) / 2"),
        pytest.param(0, 4000, 1, 1, 0, id="full"),
        pytest.param(2390, 0, 1, 1, 75, id="74.875 is rounded"),
    ],
)
def test_low_and_steady_load_is_preferred(
    free: float, deviation: float, margin: float, sensitivity: float, score: float
) -> None:
    args = LoadVariationRiskBalancing.Args(
        safe_variance_margin=margin, safe_variance_sensitivity=sensitivity
    )
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    assert run_score(LoadVariationRiskBalancing(args), POD, node) == {"node": score}


def test_the_riskier_resource_counts_and_one_is_enough() -> None:
    plugin = LoadVariationRiskBalancing()
    both = loaded_node("both", free_cpu=4000, free_memory=8 * GIB)
    memory = loaded_node("memory", free_memory=8 * GIB, std_memory=4 * GIB)
    assert run_score(plugin, POD, both, memory) == {"both": 75, "memory": 63}


def test_variation_without_measurements_is_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    scores = run_score(LoadVariationRiskBalancing(), POD, *nodes)
    assert scores == {"a": 95, "new": 72.5, "b": 50}


def low_risk(**args: Any) -> LowRiskOverCommitment:
    return LowRiskOverCommitment(check_arguments(args, LowRiskOverCommitment.Args, "args"))


def committed(name: str, request: int, limit: int, node: str = "") -> Pod:
    resources = Resources(requests={"cpu": f"{request}m"}, limits={"cpu": f"{limit}m"})
    return make_pod(name, node=node, containers=[Container(resources=resources)])


def score(
    placed: Pod, pods: Sequence[Pod] = (), free: float = 4000, deviation: float = 0, **args: Any
) -> float:
    node = loaded_node(free_cpu=free, std_cpu=deviation, free_memory=16 * 1024**3)
    return run_score(low_risk(**args), placed, node, pods=pods)["node"]


LIMITS_ONLY: dict[str, Any] = {"riskLimitWeights": {"cpu": 1, "memory": 1}}
LOAD_ONLY: dict[str, Any] = {"riskLimitWeights": {"cpu": 0, "memory": 0}}


@pytest.mark.parametrize(
    ("request_", "limit", "on_node", "expected"),
    [
        pytest.param(1000, 2000, (1000, 2000), 100, id="limits fit"),
        pytest.param(1000, 4000, (1000, 2000), 50, id="(6000-4000)/(6000-2000)"),
        pytest.param(2000, 4000, (3000, 4000), 0, id="requests fill it: (8000-4000)/(8000-4000)"),
        pytest.param(5000, 0, (0, 0), 0, id="requests count as limits where they are higher"),
    ],
)
def test_limits_that_promise_too_much_are_a_risk(
    request_: int, limit: int, on_node: tuple[int, int], expected: float
) -> None:
    others = [committed("other", *on_node, node="node")]
    assert score(committed("new", request_, limit), others, **LIMITS_ONLY) == pytest.approx(
        expected
    )


def test_load_beyond_what_is_requested_is_a_risk() -> None:
    # Mean 0.5, deviation 0.1 * sqrt(1): beta(12, 12). F(0.5) = 0.5.
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [committed("other", 2000, 6000, node="node")]
    found = score(committed("new", 100, 100), others, **load, **LOAD_ONLY)
    assert found == pytest.approx(50)


def test_load_beyond_the_limits_cannot_be() -> None:
    # As above, but limits of 0.75 bound it: F(0.5) / F(0.75) = 0.5 / 0.99683
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [committed("other", 2000, 3000, node="node")]
    found = score(committed("new", 100, 100), others, **load, **LOAD_ONLY)
    assert 50 < found < 51


def test_smoothing_widens_the_variation() -> None:
    others = [committed("other", 3000, 6000, node="node")]
    load: dict[str, Any] = {"free": 2000, "deviation": 200}
    narrow = score(committed("new", 1, 1), others, smoothingWindowSize=1, **load, **LOAD_ONLY)
    usual = score(committed("new", 1, 1), others, **load, **LOAD_ONLY)
    assert narrow > usual > 50


def test_more_variation_than_possible_counts_as_the_most_that_is() -> None:
    others = [committed("other", 3000, 6000, node="node")]
    huge = score(committed("new", 1, 1), others, free=2000, deviation=4000, **LOAD_ONLY)
    assert huge == pytest.approx(50, abs=1)  # all or nothing


def test_both_risks_count_by_their_weights() -> None:
    others = [committed("other", 1000, 2000, node="node")]
    new = committed("new", 1000, 4000)  # a risk of limits of 0.5
    # An idle node has no risk of load; a full one with few requests has all of it.
    assert score(new, others) == pytest.approx(75)
    assert score(new, others, free=0) == pytest.approx(25)
    weights = {"cpu": 0.2, "memory": 0.2}
    assert score(new, others, riskLimitWeights=weights) == pytest.approx(90)


def test_the_riskier_resource_counts() -> None:
    node = loaded_node(free_cpu=4000, free_memory=0)
    assert run_score(low_risk(**LOAD_ONLY), committed("new", 100, 100), node) == {"node": 0}


def test_pods_without_requests_and_limits_are_skipped() -> None:
    assert run_score(low_risk(), make_pod(), loaded_node(free_cpu=0)) == {}


def test_risk_without_measurements_is_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    scores = run_score(low_risk(), committed("new", 100, 100), *nodes)
    assert scores == {"a": 100, "new": 75, "b": 50}


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "original"),
    [  # millicores of 4000; the original's score, 0..10
        (2500, 400, 500, 6),
        (1000, 400, 500, 4),
        (1000, 100, 500, 5),
        (600, 800, 200, 3),
        (4000, 0, 0, 10),
        (0, 0, 500, 5),
        (2000, 1990, 0, 4),
    ],
)
def test_low_and_steady_load_is_preferred_as_in_the_original(
    free: float, deviation: float, demand: int, original: int
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    (score,) = run_score(SafeBalance(), pod, node).values()
    assert math.floor(score / 10 + 0.5) == original
    mean, share = min((4000 - free + demand) / 4000, 1), deviation / 4000
    assert score == pytest.approx(100 * (1 - (mean + math.sqrt(share)) / 2))


def test_the_busier_resource_counts() -> None:
    node = loaded_node(free_cpu=4000, free_memory=8 * GIB)
    assert run_score(SafeBalance(), make_pod(), node) == {"node": 75}


def test_balance_without_measurements_is_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    assert run_score(SafeBalance(), make_pod(), *nodes) == {"a": 100, "new": 75, "b": 50}


OVERLOADING = make_pod(requests={"cpu": "500m", "memory": "1Gi"})


def overload(**args: Any) -> SafeOverload:
    return SafeOverload(check_arguments(args, SafeOverload.Args, "args"))


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "risk", "original"),
    [  # millicores of 4000; the risk to use more than 90 %; the original's score, 0..10
        (2500, 400, 500, 0.000000, 9),
        (1000, 400, 500, 0.499682, 0),
        (1000, 100, 500, 0.158015, 2),
        (600, 800, 200, 0.765312, 0),
        (4000, 0, 0, 0, 10),
        (0, 0, 500, 1, 0),
        (2000, 1990, 0, 0.494514, 0),
    ],
)
def test_scores_fall_with_the_risk_as_in_the_original(
    free: float, deviation: float, demand: int, risk: float, original: int
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    (score,) = run_score(overload(), pod, loaded_node(free_cpu=free, std_cpu=deviation)).values()
    assert score // 10 == original
    assert score == pytest.approx(100 * (1 - math.sqrt(min(risk / 0.3, 1))), abs=0.2)


def test_the_more_overloaded_resource_counts() -> None:
    nodes = (
        loaded_node("safe", free_cpu=3000, free_memory=15 * GIB),
        loaded_node("full", free_cpu=3000, free_memory=GIB // 2),
        loaded_node("cpu-only", free_cpu=3000),
    )
    assert run_score(overload(), OVERLOADING, *nodes) == {"safe": 100, "full": 0, "cpu-only": 100}


def test_the_limits_are_arguments() -> None:
    node = loaded_node(free_cpu=1500, std_cpu=400)  # mean 0.75 with the pod
    (usual,) = run_score(overload(), OVERLOADING, node).values()
    (strict,) = run_score(overload(safePercentile=10), OVERLOADING, node).values()
    (lower,) = run_score(overload(safeUtilization=76), OVERLOADING, node).values()
    assert usual > strict > lower == 0
    assert run_score(overload(safePercentile=0), OVERLOADING, node) == {"node": 0}
    assert run_score(overload(safePercentile=0), OVERLOADING, loaded_node(free_cpu=3000)) == {
        "node": 100
    }


def test_a_forecast_counts_a_fifth() -> None:
    def score(**args: Any) -> float:
        node = loaded_node(free_cpu=3000, std_cpu=0, forcasted_free_cpu="-20000")
        return run_score(overload(**args), OVERLOADING, node)["node"]

    assert score() == 0  # 0.8 * 3000 - 0.2 * 20000 is less than nothing
    assert score(safeForecastWeight=0) == 100


@pytest.mark.parametrize(("on_missing", "score"), [("neutral", 50), ("worst", 0)])
def test_nodes_without_annotations_get_what_the_policy_says(on_missing: str, score: float) -> None:
    nodes = loaded_node("idle", free_cpu=4000), loaded_node("full", free_cpu=0), loaded_node("new")
    scores = run_score(overload(onMissing=on_missing), OVERLOADING, *nodes)
    assert scores == {"idle": 100, "full": 0, "new": score}


def test_without_an_answer_of_prometheus_the_plugin_fails() -> None:
    args = SafeOverload.Args(prometheus=PrometheusSettings(address="http://127.0.0.1:1"))
    with pytest.raises(PluginFailedError, match="cannot query Prometheus"):
        run_score(SafeOverload(args), OVERLOADING, loaded_node())


@pytest.mark.parametrize("wrong", [{"safeUtilization": 101}, {"safePercentile": 0.5}])
def test_percentages_are_whole_numbers_up_to_100(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"args.{next(iter(wrong))}"):
        overload(**wrong)
