"""When a cycle is scattered, and when a replica is slow."""

from typing import Any

import pytest

from gateway.replicas.latency import ENOUGH, LatencyTracker
from gateway.replicas.sharding import Sharding
from gateway.settings import GatewaySettings

SORT = ("moorage", "")


def limits(**more: Any) -> GatewaySettings:
    known = {
        "min_nodes_per_shard": 100,
        "min_shard_time": 0.005,
        "hedge_quantile": 0.95,
        "hedge_factor": 3.0,
        "hedge_floor": 0.05,
    }
    return GatewaySettings(**{**known, **more})


@pytest.mark.parametrize(
    ("nodes", "replicas", "microseconds", "shards"),
    [
        pytest.param(5000, 3, 10, 3, id="50 ms are worth three"),
        pytest.param(5000, 1, 10, 1, id="one replica"),
        pytest.param(5000, 0, 10, 1, id="none without work: the first to be done gets all"),
        pytest.param(5000, 9, 3, 3, id="15 ms make three of 5 ms"),
        pytest.param(5000, 3, 1.9, 1, id="9.5 ms are not two of 5 ms"),
        pytest.param(250, 9, 1000, 2, id="250 nodes are two of 100"),
        pytest.param(99, 9, 1000, 1, id="too few nodes"),
    ],
)
def test_shards_are_as_many_as_are_worth_their_messages(
    nodes: int, replicas: int, microseconds: float, shards: int
) -> None:
    sharding = Sharding(limits())
    sharding.observe(SORT, 1000, 1000 * microseconds / 1e6)
    assert sharding.count(SORT, nodes, replicas) == shards


def test_what_has_to_be_done_again_must_be_worth_it_too() -> None:
    sharding = Sharding(limits())
    sharding.observe(SORT, 1000, 0.05, again=0.0)
    assert sharding.count(SORT, 1000, 9) == 9
    for _ in range(100):
        sharding.observe(SORT, 1000, 0.05, again=0.01)
    assert sharding.count(SORT, 1000, 9) == 3
    for _ in range(100):
        sharding.observe(SORT, 1000, 0.05, again=0.03)
    assert sharding.count(SORT, 1000, 9) == 1


def test_what_is_not_known_yet_is_not_scattered() -> None:
    assert Sharding(limits()).count(SORT, 5000, 3) == 1
    assert Sharding(limits(min_shard_time=0)).count(SORT, 5000, 3) == 3


def test_the_newest_cycles_count_most_and_each_by_its_nodes() -> None:
    sharding = Sharding(limits())
    for _ in range(50):
        sharding.observe(SORT, 99, 10.0)  # never scattered, so it says nothing
        sharding.observe(SORT, 100, 0.00052)  # mostly fixed costs
    assert sharding.count(SORT, 5000, 9) == 5
    sharding.observe(SORT, 5000, 0.001)
    assert sharding.count(SORT, 5000, 9) == 1
    for _ in range(50):
        sharding.observe(SORT, 5000, 0.0502)
    assert sharding.count(SORT, 5000, 9) == 9


def test_an_answer_is_late_when_nearly_all_came_much_sooner() -> None:
    tracker = LatencyTracker(limits())
    for milliseconds in range(1, 101):
        tracker.observe(SORT, 1000, milliseconds / 1000)
    assert tracker.hedge_delay(SORT, 1000, 5) == pytest.approx(3 * 0.096)
    assert tracker.hedge_delay(SORT, 2000, 5) == pytest.approx(6 * 0.096)
    assert tracker.hedge_delay(SORT, 10, 5) == 0.05, "never sooner than the floor"


def test_without_experience_a_replica_has_a_quarter_of_the_time() -> None:
    tracker = LatencyTracker(limits())
    for _ in range(ENOUGH - 1):
        tracker.observe(SORT, 1000, 0.1)
    assert tracker.hedge_delay(SORT, 1000, 4) == 1
    tracker.observe(SORT, 1000, 0.1)
    assert tracker.hedge_delay(SORT, 1000, 4) == pytest.approx(0.3)


def test_few_nodes_are_not_taken_for_slow_ones() -> None:
    tracker = LatencyTracker(limits())
    for _ in range(ENOUGH):
        tracker.observe(SORT, 1, 0.002)
    assert tracker.hedge_delay(SORT, 100, 4) == 0.05
    assert tracker.hedge_delay(SORT, 5000, 4) == pytest.approx(3 * 0.1)
