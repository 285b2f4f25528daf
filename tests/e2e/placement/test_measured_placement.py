"""Where pods land on a real kube-scheduler by what a real Prometheus knows of the nodes.

One node has been up for long and is idle, the other is new and busy. Each plugin has a profile of
its own, and kube-scheduler runs without any filter or score plugin of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from tests.prometheus import Counters, exporters, prometheus, wait_for_samples
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

IDLE, BUSY = "old-idle", "new-busy"
COUNTERS = Counters(
    bytes={IDLE: (1e12, 0.0), BUSY: (0.0, 10e6)}, idle_share={IDLE: 0.75, BUSY: 0.02}
)
TARGETS = {"nodes": [(f"/{name}", {"node": name}) for name in COUNTERS.bytes]}
RATES = 'rate(node_network_receive_bytes_total{device="eth0"}[9s])'

SETTLED = 'avg_over_time((1 - rate(node_cpu_seconds_total{mode="idle"}[3s]))[9s:600ms]) < 0.3'
"""What is measured of the idle node: the first rates, of part of their time, make it look busy."""

TRAFFIC = {"networkInterface": "eth0", "timeRange": "9s", "inFlight": "off"}
WINDOW = {"window": "9s", "inFlight": "off"}
CONGESTION = {"query": RATES, "maximum": 20e6}

SCORES: Mapping[str, tuple[str, Object]] = {
    "traffic": ("NetworkTraffic", TRAFFIC),
    "original": ("NetworkTraffic", {**TRAFFIC, "compat": "sumOverTime"}),
    "target": ("TargetLoadPacking", WINDOW),
    "variation": ("LoadVariationRiskBalancing", WINDOW),
    "commitment": ("LowRiskOverCommitment", WINDOW),
    "overload": ("SafeOverload", WINDOW),
    "balance": ("SafeBalance", WINDOW),
    "congestion": ("CongestionFactor", CONGESTION),
}
"""A profile for each plugin that scores."""


def policy(address: str) -> Object:
    """Return a policy whose plugins ask a Prometheus."""
    source = {"address": address, "interval": "100ms"}

    def profile(name: str, point: str, plugin: str, args: Object) -> Object:
        return {
            "schedulerName": name,
            "plugins": {
                "multiPoint": {"disabled": [{"name": "*"}]},
                point: {"enabled": [{"name": plugin}]},
            },
            "pluginConfig": [{"name": plugin, "args": {**args, "prometheus": source}}],
        }

    scoring = [profile(name, "score", *SCORES[name]) for name in SCORES]
    profiles = [*scoring, profile("safe", "filter", "SafeOverload", WINDOW)]
    head = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}
    return {**head, "profiles": profiles}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_world(
    bare: World, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        exporter = stack.enter_context(exporters(COUNTERS))
        folder = tmp_path_factory.mktemp("prometheus")
        server = stack.enter_context(prometheus(folder, exporter, TARGETS))
        await asyncio.to_thread(wait_for_samples, server.address, SETTLED, 1)
        yield await stack.enter_async_context(bare.with_moorage(policy(server.address)))


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world with the two nodes, and empty again afterwards."""
    try:
        await shared_world.nodes(node(IDLE), node(BUSY))
        yield shared_world
    finally:
        await shared_world.clear()


def without_plugins(*profiles: str) -> Object:
    """Build profiles of a kube-scheduler that decides nothing itself."""
    needed = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]
    plugins: Any = {"multiPoint": {"enabled": needed, "disabled": [{"name": "*"}]}}
    return {"profiles": [{"schedulerName": each, "plugins": plugins} for each in profiles]}


def half_of(name: str) -> Object:
    """Build a pod for which half of a node is set aside: the idle one uses less, the busy more."""
    resources = {"requests": {"cpu": "4", "memory": "16Gi"}}
    container = {"name": "main", "image": "app:1", "resources": resources}
    return pod(f"on-{name}", "nobody", spec={"nodeName": name, "containers": [container]})


async def test_pods_land_on_the_idle_node(world: World) -> None:
    await world.create(half_of(IDLE), half_of(BUSY))

    async def known() -> bool:
        return await world.metric("moorage_cache_size", type="pods") == 2

    await world.until(known)  # else LowRiskOverCommitment finds both nodes empty
    async with world.scheduler(top=without_plugins(*SCORES)):
        await world.create(*(pod(name, name) for name in SCORES))
        places = await world.bound(*SCORES)
    # Added up, the readings of a counter say how long a node has been up.
    assert {name: places[name] for name in SCORES} == {
        **dict.fromkeys(SCORES, IDLE),
        "original": BUSY,
    }


async def test_a_node_that_is_likely_overloaded_is_left_alone(world: World) -> None:
    async with world.scheduler(top=without_plugins("safe")):
        await world.create(*(pod(f"small-{number}", "safe") for number in range(4)))
        await world.create(pod("large", "safe", cpu="7"))
        places = await world.bound(*(f"small-{number}" for number in range(4)))
        message = await world.condition("large", "Unschedulable")
    assert {place for name, place in places.items() if name != "large"} == {IDLE}
    assert message.startswith("0/2 nodes are available: 2 node would likely be overloaded.")
