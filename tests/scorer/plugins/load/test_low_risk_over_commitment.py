from collections.abc import Sequence
from typing import Any

import pytest

from moorage import Pod
from moorage.models import Container, Resources
from moorage.testing import make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.low_risk_over_commitment import LowRiskOverCommitment
from tests.annotated import loaded_node


def plugin(**args: Any) -> LowRiskOverCommitment:
    return LowRiskOverCommitment(check_arguments(args, LowRiskOverCommitment.Args, "args"))


def pod(name: str, request: int, limit: int, node: str = "") -> Pod:
    resources = Resources(requests={"cpu": f"{request}m"}, limits={"cpu": f"{limit}m"})
    return make_pod(name, node=node, containers=[Container(resources=resources)])


def score(
    placed: Pod, pods: Sequence[Pod] = (), free: float = 4000, deviation: float = 0, **args: Any
) -> float:
    node = loaded_node(free_cpu=free, std_cpu=deviation, free_memory=16 * 1024**3)
    return run_score(plugin(**args), placed, node, pods=pods)["node"]


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
    others = [pod("other", *on_node, node="node")]
    assert score(pod("new", request_, limit), others, **LIMITS_ONLY) == pytest.approx(expected)


def test_load_beyond_what_is_requested_is_a_risk() -> None:
    # Mean 0.5, deviation 0.1 * sqrt(1): beta(12, 12). F(0.5) = 0.5.
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [pod("other", 2000, 6000, node="node")]
    found = score(pod("new", 100, 100), others, **load, **LOAD_ONLY)
    assert found == pytest.approx(50)


def test_load_beyond_the_limits_cannot_be() -> None:
    # As above, but limits of 0.75 bound it: F(0.5) / F(0.75) = 0.5 / 0.99683
    load: dict[str, Any] = {"free": 2000, "deviation": 400, "smoothingWindowSize": 1}
    others = [pod("other", 2000, 3000, node="node")]
    found = score(pod("new", 100, 100), others, **load, **LOAD_ONLY)
    assert 50 < found < 51


def test_smoothing_widens_the_variation() -> None:
    others = [pod("other", 3000, 6000, node="node")]
    load: dict[str, Any] = {"free": 2000, "deviation": 200}
    narrow = score(pod("new", 1, 1), others, smoothingWindowSize=1, **load, **LOAD_ONLY)
    usual = score(pod("new", 1, 1), others, **load, **LOAD_ONLY)
    assert narrow > usual > 50


def test_more_variation_than_possible_counts_as_the_most_that_is() -> None:
    others = [pod("other", 3000, 6000, node="node")]
    huge = score(pod("new", 1, 1), others, free=2000, deviation=4000, **LOAD_ONLY)
    assert huge == pytest.approx(50, abs=1)  # all or nothing


def test_both_risks_count_by_their_weights() -> None:
    others = [pod("other", 1000, 2000, node="node")]
    new = pod("new", 1000, 4000)  # a risk of limits of 0.5
    # An idle node has no risk of load; a full one with few requests has all of it.
    assert score(new, others) == pytest.approx(75)
    assert score(new, others, free=0) == pytest.approx(25)
    weights = {"cpu": 0.2, "memory": 0.2}
    assert score(new, others, riskLimitWeights=weights) == pytest.approx(90)


def test_the_riskier_resource_counts() -> None:
    node = loaded_node(free_cpu=4000, free_memory=0)
    assert run_score(plugin(**LOAD_ONLY), pod("new", 100, 100), node) == {"node": 0}


def test_pods_without_requests_and_limits_are_skipped() -> None:
    assert run_score(plugin(), make_pod(), loaded_node(free_cpu=0)) == {}


def test_nodes_without_measurements_get_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    scores = run_score(plugin(), pod("new", 100, 100), *nodes)
    assert scores == {"a": 100, "new": 75, "b": 50}
