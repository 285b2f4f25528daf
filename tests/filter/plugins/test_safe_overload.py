from contextlib import suppress
from typing import Any

import pytest

from moorage import PluginFailedError, Rejection
from moorage.measurements import PrometheusSettings
from moorage.testing import make_pod, run_filter
from moorage_host.policy.checks import check_arguments
from services.filter.plugins.safe_overload import SafeOverload
from tests.annotated import loaded_node

OVERLOAD = Rejection("node would likely be overloaded", unresolvable=True)
NOT_MEASURED = Rejection("node has no measurements of its load", unresolvable=True)
GIB = 1024**3


def plugin(**args: Any) -> SafeOverload:
    return SafeOverload(check_arguments(args, SafeOverload.Args, "args"))


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "accepted"),
    [  # millicores of 4000
        (2500, 400, 500, True),
        (1000, 400, 500, False),
        (1000, 100, 500, True),
        (600, 800, 200, False),
        (4000, 0, 0, True),
        (0, 0, 500, False),
        (2000, 1990, 0, False),
    ],
)
def test_nodes_that_the_pod_would_likely_overload_are_rejected(
    free: float, deviation: float, demand: int, accepted: bool
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    verdicts = run_filter(plugin(), pod, loaded_node(free_cpu=free, std_cpu=deviation))
    assert verdicts == {"node": None if accepted else OVERLOAD}


def test_one_full_resource_is_enough() -> None:
    node = loaded_node(free_cpu=4000, free_memory=GIB)
    assert run_filter(plugin(), make_pod(requests={"memory": "1Gi"}), node) == {"node": OVERLOAD}


def test_the_limits_are_arguments() -> None:
    node = loaded_node(free_cpu=1000, std_cpu=100)  # a risk of 0.158
    pod = make_pod(requests={"cpu": "500m"})
    assert run_filter(plugin(safePercentile=15), pod, node) == {"node": OVERLOAD}
    assert run_filter(plugin(safePercentile=16), pod, node) == {"node": None}
    assert run_filter(plugin(safeUtilization=80), pod, node) == {"node": OVERLOAD}


def test_nodes_without_measurements_pass_unless_the_policy_says_otherwise() -> None:
    nodes = loaded_node("full", free_cpu=0), loaded_node("new")
    assert run_filter(plugin(), make_pod(), *nodes) == {"full": OVERLOAD, "new": None}
    assert run_filter(plugin(onMissing="worst"), make_pod(), *nodes) == {
        "full": OVERLOAD,
        "new": NOT_MEASURED,
    }
    with pytest.raises(PluginFailedError, match="there are nodes without measurements"):
        run_filter(plugin(onMissing="fail"), make_pod(), *nodes)


def test_all_nodes_pass_while_prometheus_is_silent_unless_that_is_a_failure() -> None:
    silent = PrometheusSettings(address="http://127.0.0.1:1")
    lenient = SafeOverload(SafeOverload.Args(prometheus=silent))
    assert run_filter(lenient, make_pod(), loaded_node()) == {"node": None}
    strict = SafeOverload(SafeOverload.Args(prometheus=silent, on_missing="fail"))
    with pytest.raises(PluginFailedError, match="cannot query Prometheus"):
        run_filter(strict, make_pod(), loaded_node())


def test_letting_nodes_pass_unseen_or_rejecting_them_leaves_a_note() -> None:
    for on_missing in ("neutral", "worst", "fail"):
        silent = PrometheusSettings(address="http://127.0.0.1:1")
        blind = SafeOverload(SafeOverload.Args(prometheus=silent, on_missing=on_missing))
        with suppress(PluginFailedError):
            run_filter(blind, make_pod(), loaded_node("a"), loaded_node("b"))
        assert blind.latest_note.startswith(
            f"2 of 2 nodes have no measurements (onMissing: {on_missing}); cannot query Prometheus "
        )
    seeing = plugin()
    run_filter(seeing, make_pod(), loaded_node(free_cpu=4000))
    assert seeing.latest_note == ""


def test_pods_that_are_not_measured_yet_count() -> None:
    node = loaded_node("node", free_cpu=2500, std_cpu=100)
    others = [make_pod(f"p{number}", requests={"cpu": "500m"}, node="node") for number in range(4)]
    pod = make_pod(requests={"cpu": "500m"})
    assert run_filter(plugin(), pod, node, new_pods=others[:1]) == {"node": None}
    assert run_filter(plugin(), pod, node, pods=others) == {"node": None}
    assert run_filter(plugin(inFlight="off"), pod, node, new_pods=others) == {"node": None}
    assert run_filter(plugin(), pod, node, new_pods=others) == {"node": OVERLOAD}
