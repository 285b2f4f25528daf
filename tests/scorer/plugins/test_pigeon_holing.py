import asyncio
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage import ConfigurationError, Nodes, Pod
from moorage.testing import make_node, make_nodes, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.pigeon_holing import PigeonHoling
from tests.conftest import EXAMPLES

GPU = "nvidia.com/gpu"
NUMBERS = itertools.count()
NONE = -1.0
"""The raw score of nodes on which the pod does not fit."""


def plugin(objective: str = "A_BINPACK", **args: Any) -> PigeonHoling:
    return PigeonHoling(
        check_arguments({"policyObjective": objective, **args}, PigeonHoling.Args, "args")
    )


def cluster(*used: float, memory: Sequence[float] = (), cores: Sequence[int] = ()) -> Nodes:
    """Return nodes of ten cores and 1000 MiB, or as said, with so many percent requested."""
    memory, cores = memory or [0] * len(used), cores or [10] * len(used)
    names = [f"n{index}" for index in range(len(used))]
    nodes = (
        make_node(name, allocatable={"cpu": str(cpu), "memory": "1000Mi"})
        for name, cpu in zip(names, cores, strict=True)
    )
    pods = (
        make_pod(
            f"on-{name}",
            requests={"cpu": f"{round(cpu * 10 * n)}m", "memory": f"{round(10 * mib)}Mi"},
            node=name,
        )
        for name, n, mib, cpu in zip(names, used, memory, cores, strict=True)
    )
    return make_nodes(*nodes, pods=pods)


def asks(cpu: str = "1", memory: str = "100Mi") -> Pod:
    name = f"incoming-{next(NUMBERS)}"
    return make_pod(name, requests={"cpu": cpu, "memory": memory})


def scored(pigeon: PigeonHoling, nodes: Nodes, pod: Pod | None = None) -> np.ndarray[Any, Any]:
    pod = pod or asks()
    asyncio.run(pigeon.prepare(pod, nodes))
    return pigeon.score(pod, nodes)


def raw(pigeon: PigeonHoling, nodes: Nodes, pod: Pod | None = None) -> list[float]:
    """Return by how much each node misses the objective, or NONE."""
    scores = scored(pigeon, nodes, pod)
    return list(np.where(scores == NONE, NONE, pigeon.missed(scores)))


def normal(pigeon: PigeonHoling, nodes: Nodes, pod: Pod | None = None) -> list[float]:
    return list(pigeon.normalize(scored(pigeon, nodes, pod)))


def test_the_history_of_demand_is_a_mean_of_the_last_pods() -> None:
    # Remembering 2: 1 core, 3 cores: mean 2, squares 5. Then 2 cores: mean 2, squares 4.5.
    pigeon = plugin(resources=["cpu"], demandHistory=2)
    for cpu in ("1", "3"):
        raw(pigeon, cluster(20, 50), asks(cpu=cpu))
    varies = math.sqrt(4.5 - 4) / 2
    # (40, 50): 5/45; (20, 70): 25/45
    expected = [abs(5 / 45 - varies), abs(25 / 45 - varies)]
    assert raw(pigeon, cluster(20, 50), asks(cpu="2")) == pytest.approx(expected)


def test_a_pod_that_is_scored_again_is_kept_once() -> None:
    pigeon, pod = plugin(resources=["cpu"]), asks(cpu="3")
    raw(pigeon, cluster(20, 50))
    once = normal(pigeon, cluster(20, 50), pod)
    assert normal(pigeon, cluster(20, 50), pod) == once


def test_scores_go_from_10_to_100_and_are_0_where_the_pod_does_not_fit() -> None:
    nodes = cluster(20, 50, 80, 95)
    # The mean is 63.75 % wherever the pod goes.
    squares = [
        sum((x - 63.75) ** 2 for x in used)
        for used in ((30, 50, 80, 95), (20, 60, 80, 95), (20, 50, 90, 95))
    ]
    first, second, third = (math.sqrt(total / 4) for total in squares)
    middle = 10 + 90 * (third - second) / (third - first)
    assert normal(plugin("LOAD_BALANCE"), nodes) == pytest.approx([100, middle, 10, 0])
    packs = normal(plugin("CONSOLIDATE"), nodes)
    assert (packs[0], packs[2], packs[3]) == (10, 100, 0)


def test_what_has_to_fit_are_the_resources() -> None:
    nodes = cluster(0, 0, 0, memory=(0, 95, 0))
    assert [score == 0 for score in normal(plugin("LOAD_BALANCE"), nodes)] == [False, True, False]
    assert normal(plugin("LOAD_BALANCE", resources=["cpu"]), nodes) == [100, 100, 100]
    packed = make_node("packed", allocatable={"pods": "0"})
    scored = run_score(plugin(resources=["pods"]), asks(), packed, make_node("free"))
    assert scored == {"packed": 0, "free": 100}


def test_another_resource_may_be_the_one_to_balance() -> None:
    nodes = cluster(10, 70, memory=(70, 10))
    assert normal(plugin("LOAD_BALANCE"), nodes) == [100, 10]
    assert normal(plugin("LOAD_BALANCE", policyResourceIndex=1), nodes) == [10, 100]


def test_resources_that_nodes_do_not_have_are_not_used_there() -> None:
    nodes = [make_node("gpu", allocatable={GPU: "4"}), make_node("plain")]
    pigeon = plugin("LOAD_BALANCE", resources=["cpu", GPU], policyResourceIndex=1)
    wants = make_pod("incoming", requests={"cpu": "1", GPU: "1"})
    assert run_score(pigeon, wants, *nodes) == {"gpu": 100, "plain": 0}
    assert run_score(pigeon, asks(), *nodes) == {"gpu": 100, "plain": 100}


@pytest.mark.parametrize("objective", ["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"])
def test_edges_of_each_objective(objective: str) -> None:
    for used, scores in (
        ((30,), [100]),
        ((30,) * 5, [100] * 5),
        ((95, 99), [0, 0]),  # it fits nowhere
        ((0, 0, 0), [100] * 3),
        ((90, 100), [100, 0]),
    ):
        assert normal(plugin(objective), cluster(*used)) == scores
    nodes = cluster(20, 50, 80)
    small = make_pod("incoming", requests={"cpu": "10m", "memory": "16Mi"})
    without = raw(plugin(objective), nodes, make_pod("incoming"))
    assert without == raw(plugin(objective), nodes, small)
    whole = raw(plugin(objective), nodes)
    part = raw(plugin(objective), nodes.where(np.array([True, False, True])))
    assert part == pytest.approx([whole[0], whole[2]]), "what is scored is the whole cluster"


def test_mistakes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="policyResourceIndex"):
        plugin(policyResourceIndex=2)
    with pytest.raises(ConfigurationError, match=r"args\.policyObjective"):
        plugin("BEST")
    with pytest.raises(ConfigurationError, match=r"args\.resources"):
        plugin(resources=[])


# An oracle that places the pod on each node and looks at the whole cluster.


def objective_of(name: str, use: np.ndarray[Any, Any], demand: np.ndarray[Any, Any]) -> float:
    """Return the objective of shares by resource and node, and of demands by pod."""
    first = use[0]
    if name == "LOAD_BALANCE":
        return float(np.std(first))
    if name == "A_BINPACK":
        return abs(variation(use) - variation(demand))
    mean = first.mean()
    if not 0 < mean < 1:
        return 1
    terms = [(mean - x) / mean if x < mean else (x - mean) / (1 - mean) for x in first]
    return 1 - math.sqrt(sum(term**2 for term in terms) / len(terms))


def variation(shares: np.ndarray[Any, Any]) -> float:
    mean = shares.mean(axis=1)
    along = mean @ np.cov(shares, bias=True) @ mean
    return math.sqrt(max(float(along), 0)) / float(mean @ mean) if mean @ mean else 0.0


shares = st.integers(0, 100)
cases = st.integers(1, 6).flatmap(
    lambda count: st.tuples(
        st.lists(st.tuples(shares, shares, st.integers(1, 12)), min_size=count, max_size=count),
        st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=4),
        st.sampled_from(("A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE")),
    )
)


@settings(max_examples=2 * EXAMPLES)
@given(cases)
def test_agrees_with_placing_the_pod_on_each_node(
    case: tuple[list[tuple[int, int, int]], list[tuple[int, int]], str],
) -> None:
    nodes_, pods, objective = case
    cpu, memory, cores = (list(column) for column in zip(*nodes_, strict=True))
    nodes, pigeon = cluster(*cpu, memory=memory, cores=cores), plugin(objective)
    for each in pods:
        found = raw(pigeon, nodes, asks(f"{each[0]}00m", f"{each[1] * 10}Mi"))
    capacity = np.array([[1000 * c for c in cores], [1000] * len(cores)], float)
    use = np.array(
        [[10 * c * u for c, u in zip(cores, cpu, strict=True)], [10 * m for m in memory]]
    )
    demands = np.array([[100 * c, 10 * m] for c, m in pods], float).T
    relative = demands / capacity.mean(axis=1, keepdims=True)
    for index, score in enumerate(found):
        placed = use.astype(float)
        placed[:, index] += demands[:, -1]
        if (placed[:, index] > capacity[:, index]).any():
            assert score == NONE
        else:
            expected = objective_of(objective, placed / capacity, relative)
            assert score == pytest.approx(expected, abs=1e-6)
