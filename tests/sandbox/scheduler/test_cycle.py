"""What a cycle knows, which nodes it looks at, and what it says when none fits."""

from typing import Any

import pytest

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler.attempt import summary
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.cycle import sample_size
from tests.sandbox.scheduler.support import World, known_pod, requesting
from tools.inprocess.extender import node_names
from tools.waiting import until

CPU = 1000  # millicores


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "pods": "110"}}
    return {"metadata": {"name": name}, "spec": {}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> KnownPod:
    return known_pod(name, **requesting(cpu=cpu), **spec)


def free(cache: SchedulerCache, name: str) -> int:
    nodes = cache.one(cache.nodes[name])
    return int(nodes.allocatable("cpu")[0] - nodes.requested("cpu")[0])


def test_nodes_keep_the_order_of_their_arrival_and_pods_survive_their_node() -> None:
    cache = SchedulerCache()
    for name in ("a", "b", "c"):
        cache.set_node(node(name))
    cache.set_pod(pod("web", nodeName="b"))
    cache.remove_node("b")
    assert cache.in_order(0).names == ["a", "c"]
    cache.set_node(node("d"))
    cache.set_node(node("b"))
    assert cache.in_order(0).names == ["a", "c", "d", "b"]
    assert cache.in_order(3).names == ["b", "a", "c", "d"]
    assert cache.rows_of(["d", "nobody"]).tolist() == [cache.nodes["d"].row, -1]
    assert free(cache, "b") == 3 * CPU
    cache.remove_pod("web")
    assert free(cache, "b") == 4 * CPU


def test_a_pod_that_is_assumed_or_gone_is_no_nominee_any_more() -> None:
    cache, other = SchedulerCache(), pod("other")
    for name in ("assumed", "gone"):
        cache.pods[name] = pod(name)
        cache.nominate(cache.pods[name], "a")
    assert {nominee.uid for nominee in cache.nominees("a", other)} == {"assumed", "gone"}
    cache.assume(cache.pods["assumed"], "a")
    cache.remove_pod("gone")
    assert cache.nominees("a", other) == []
    assert not cache.held_nodes


@pytest.mark.parametrize(
    ("nodes", "percentage", "sample"),
    [(99, 0, 99), (500, 0, 230), (5000, 0, 500), (6000, 0, 300), (5000, 100, 5000), (500, 10, 100)],
)
def test_a_sample_of_the_nodes_is_kube_schedulers(nodes: int, percentage: int, sample: int) -> None:
    assert sample_size(nodes, percentage) == sample


async def test_each_pod_starts_where_the_search_for_the_last_one_ended(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    for name in ("first", "second", "third"):
        world.pod(name)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(world.placed("first", "second", "third"))
    samples = [node_names(body) for body in world.extender.bodies("filter")]
    assert [len(names) for names in samples] == [100, 100, 100]
    assert [names[0] for names in samples] == ["n000", "n100", "n050"]
    assert [names[-1] for names in samples] == ["n099", "n049", "n149"]


async def test_a_percentage_of_100_shows_every_node(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    world.pod("web")
    async with world.scheduler(
        {"filterVerb": "filter", "nodeCacheCapable": True}, percentageOfNodesToScore=100
    ):
        await until(world.placed("web"))
    assert len(node_names(world.extender.calls[0].json)) == 150


def rejection(text: str, plugin: str = "Some") -> PluginRejection:
    return PluginRejection(plugin, text)


def test_nodes_without_a_reason_do_not_add_up() -> None:
    assert summary(5, {"a": rejection("no")}) == "0/5 nodes are available: 1 no."
    assert summary(5, {}) == "0/5 nodes are available:"
