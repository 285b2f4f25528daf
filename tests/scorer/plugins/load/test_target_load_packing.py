from typing import Any

import pytest

from moorage import ConfigurationError, Pod
from moorage.models import Container, Resources
from moorage.testing import make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.load.target_load_packing import TargetLoadPacking
from tests.annotated import loaded_node


def plugin(**args: Any) -> TargetLoadPacking:
    return TargetLoadPacking(check_arguments(args, TargetLoadPacking.Args, "args"))


def pod(limit: str | None = None, request: str | None = None, **others: Any) -> Pod:
    limits = {} if limit is None else {"cpu": limit}
    requests = {} if request is None else {"cpu": request}
    resources = Resources(limits=limits, requests=requests)
    return make_pod(requests={"cpu": "0"}, containers=[Container(resources=resources)], **others)


def percent(expected: float, target: float = 40) -> float:
    """Score a node that would be so busy, with a pod that uses nothing."""
    node = loaded_node(free_cpu=4000 - 40 * expected)
    return run_score(plugin(targetUtilization=target), pod(limit="0"), node)["node"]


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
    (score,) = run_score(plugin(targetUtilization=50), placed, node).values()
    assert score == int(50 * millicores / 2000 + 50 + 0.5)


def test_what_is_taken_for_granted_is_an_argument() -> None:
    usual: dict[str, Any] = {"targetUtilization": 50, "defaultRequests": {"cpu": "400m"}}
    running = plugin(defaultRequestsMultiplier=2, **usual)
    node = loaded_node(free_cpu=4000)
    assert run_score(running, pod(), node) == {"node": 60}  # 400m: 50 * 10/50 + 50
    assert run_score(running, pod(request="400m"), node) == {"node": 70}  # 800m


def test_nodes_without_measurements_get_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=2400)
    assert run_score(plugin(), pod(limit="0"), *nodes) == {"a": 40, "new": 70, "b": 100}


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
        plugin(**wrong)
