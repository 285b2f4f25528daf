import math
from typing import Any

import pytest

from moorage import ConfigurationError, PluginFailedError
from moorage.measurements import PrometheusSettings
from moorage.testing import make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.safe_overload import SafeOverload
from tests.annotated import loaded_node

POD = make_pod(requests={"cpu": "500m", "memory": "1Gi"})
GIB = 1024**3


def plugin(**args: Any) -> SafeOverload:
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
    (score,) = run_score(plugin(), pod, loaded_node(free_cpu=free, std_cpu=deviation)).values()
    assert score // 10 == original
    assert score == pytest.approx(100 * (1 - math.sqrt(min(risk / 0.3, 1))), abs=0.2)


def test_the_riskier_resource_counts() -> None:
    nodes = (
        loaded_node("safe", free_cpu=3000, free_memory=15 * GIB),
        loaded_node("full", free_cpu=3000, free_memory=GIB // 2),
        loaded_node("cpu-only", free_cpu=3000),
    )
    assert run_score(plugin(), POD, *nodes) == {"safe": 100, "full": 0, "cpu-only": 100}


def test_the_limits_are_arguments() -> None:
    node = loaded_node(free_cpu=1500, std_cpu=400)  # mean 0.75 with the pod
    (usual,) = run_score(plugin(), POD, node).values()
    (strict,) = run_score(plugin(safePercentile=10), POD, node).values()
    (lower,) = run_score(plugin(safeUtilization=76), POD, node).values()
    assert usual > strict > lower == 0
    assert run_score(plugin(safePercentile=0), POD, node) == {"node": 0}
    assert run_score(plugin(safePercentile=0), POD, loaded_node(free_cpu=3000)) == {"node": 100}


def test_a_forecast_counts_a_fifth() -> None:
    def score(**args: Any) -> float:
        node = loaded_node(free_cpu=3000, std_cpu=0, forcasted_free_cpu="-20000")
        return run_score(plugin(**args), POD, node)["node"]

    assert score() == 0  # 0.8 * 3000 - 0.2 * 20000 is less than nothing
    assert score(safeForecastWeight=0) == 100


@pytest.mark.parametrize(("on_missing", "score"), [("neutral", 50), ("worst", 0)])
def test_nodes_without_annotations_get_what_the_policy_says(on_missing: str, score: float) -> None:
    nodes = loaded_node("idle", free_cpu=4000), loaded_node("full", free_cpu=0), loaded_node("new")
    scores = run_score(plugin(onMissing=on_missing), POD, *nodes)
    assert scores == {"idle": 100, "full": 0, "new": score}


def test_without_an_answer_of_prometheus_the_plugin_fails() -> None:
    args = SafeOverload.Args(prometheus=PrometheusSettings(address="http://127.0.0.1:1"))
    with pytest.raises(PluginFailedError, match="cannot query Prometheus"):
        run_score(SafeOverload(args), POD, loaded_node())


@pytest.mark.parametrize("wrong", [{"safeUtilization": 101}, {"safePercentile": 0.5}])
def test_percentages_are_whole_numbers_up_to_100(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"args.{next(iter(wrong))}"):
        plugin(**wrong)
